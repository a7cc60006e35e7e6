/* Added tokens: texts that are cut out of the input before anything else is done with it. */
#ifndef RRL_DATA_ADDED_TOKENS_H
#define RRL_DATA_ADDED_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct rrl_added_tokens rrl_added_tokens;
rrl_status rrl_added_tokens_open(rrl_added_tokens **out);
void rrl_added_tokens_close(rrl_added_tokens **a);
/** normalized: matched in the text after normalisation, else before. content is not empty. */
rrl_status rrl_added_tokens_add(rrl_added_tokens *a, const char *content, int32_t id, bool special,
                                bool normalized);
/** After the last add, before the first find. */
void rrl_added_tokens_sort(rrl_added_tokens *a);
/** The first match at or after `from`, the longest one there: its id, place and length; false if there is
 * none. */
bool rrl_added_tokens_find(const rrl_added_tokens *a, bool normalized, const char *text, size_t len,
                           size_t from, int32_t *id, size_t *at, size_t *match_len);
/** Whether an id is that of an added token marked special. */
bool rrl_added_tokens_special(const rrl_added_tokens *a, int32_t id);

#endif

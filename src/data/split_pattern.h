/* Patterns of tokenizer.json: written for Oniguruma, run by PCRE2. */
#ifndef RRL_DATA_SPLIT_PATTERN_H
#define RRL_DATA_SPLIT_PATTERN_H

#include <stdbool.h>

#include "base/memory.h"

typedef struct rrl_split_pattern rrl_split_pattern;
/** literal: the text itself is looked for, else it is a regular expression. Errors: RRL_ERR_DATA with the
 * place in the expression. */
rrl_status rrl_split_pattern_open(rrl_split_pattern **out, const char *pattern, bool literal,
                                  const char *where);
void rrl_split_pattern_close(rrl_split_pattern **p);

/* One text being searched; a pattern may serve many at once. */
typedef struct rrl_split_search rrl_split_search;
rrl_status rrl_split_search_open(rrl_split_search **out, const rrl_split_pattern *p);
void rrl_split_search_close(rrl_split_search **s);
/** The first match at or after `from` in text[len] of valid UTF-8; *found false if there is none. */
rrl_status rrl_split_search_next(bool *found, size_t *at, size_t *match_len, rrl_split_search *s,
                                 const char *text, size_t len, size_t from);

#endif

/* The strict look at a JSON text before cJSON builds its tree (used by json.c only). */
#ifndef RRL_BASE_JSON_SCAN_H
#define RRL_BASE_JSON_SCAN_H

#include <stddef.h>

#include "rrl/status.h"

enum { RRL_JSON_DEPTH = 64, RRL_JSON_NUMBER_CHARS = 63 };

/** An integer literal of 16 digits or more: a double does not hold all of these, cJSON keeps only doubles. */
typedef struct {
    size_t ordinal; /* among all numbers of the text, from 0 */
    const char *text;
    size_t len;
} rrl_json_long;

/** Check text[len] against RFC 8259 and list its long integers; the caller frees *list. Errors: RRL_ERR_DATA, with
 *  `where`, the position, and what was expected. */
rrl_status rrl_json_scan(rrl_json_long **list, size_t *n, const char *text, size_t len, const char *where);

#endif

/* Text as code points: what the answer parser works on once a candidate of bounded length is chosen. */
#ifndef RRL_VERIFY_POINTS_H
#define RRL_VERIFY_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct {
    uint32_t *cp;
    size_t n, capacity;
} rrl_points;

rrl_status rrl_points_put(rrl_points *p, uint32_t cp);
/** Append points; `from` may not lie in p. */
rrl_status rrl_points_add(rrl_points *p, const uint32_t *from, size_t n);
/** Decode bytes, appended; invalid UTF-8 becomes U+FFFD (maximal subparts). */
rrl_status rrl_points_decode(rrl_points *p, const char *text, size_t len);
/** Encode as UTF-8, appended. */
rrl_status rrl_points_encode(rrl_buffer *out, const uint32_t *cp, size_t n);
void rrl_points_free(rrl_points *p);

/** White space of Unicode, and the invisible format characters that a reader cannot tell from nothing
 * (zero-width space and joiners, direction marks, byte order mark). */
bool rrl_point_white(uint32_t cp);
/** A letter or a mark on one. */
bool rrl_point_letter(uint32_t cp);
/** Value 0..9 of a decimal digit (category Nd) of any script, -1 otherwise. */
int rrl_point_digit(uint32_t cp);
/** A currency sign (category Sc). */
bool rrl_point_currency(uint32_t cp);
/** The first point of p[i..n) that is no blank, n if there is none. */
static inline size_t rrl_skip_blanks(const uint32_t *p, size_t n, size_t i) {
    while (i < n && p[i] == ' ') i++;
    return i;
}

#endif

/* Text helpers that do not depend on the locale: numbers, UTF-8, nearest name. */
#ifndef RRL_BASE_TEXT_H
#define RRL_BASE_TEXT_H

#include <stdbool.h>
#include <locale.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/** This thread alone in the C locale until rrl_c_locale_leave, for library calls that read or write numbers. */
typedef struct {
    locale_t c, before;
} rrl_c_locale;
rrl_c_locale rrl_c_locale_enter(void);
void rrl_c_locale_leave(rrl_c_locale l);

enum { RRL_NUMBER_CHARS = 32 };
/** Shortest decimal that reads back to the same double ("0.2", "1e-06", "nan", "inf"); a point in every locale. As
 *  Python's repr, but without ".0" behind a whole number: "100", "1e+16", "-0". */
void rrl_format_double(char out[RRL_NUMBER_CHARS], double v);
/** %g with 6 digits and a point in every locale (names of level folders). */
void rrl_format_g(char out[RRL_NUMBER_CHARS], double v);
/** Whole-string conversions with a point in every locale; false if anything is left over or out of range. Decimal
 *  forms with an optional sign, for doubles also "nan", "inf", "-inf"; no spaces, no hexadecimal. Too small a double
 *  is 0. */
bool rrl_parse_double(double *out, const char *text);
bool rrl_parse_int64(int64_t *out, const char *text);

/** Length in bytes of valid UTF-8 at the start (== len if all of it is). No surrogates, no overlong forms. */
size_t rrl_utf8_valid(const char *text, size_t len);
/** Append bytes as UTF-8; each maximal invalid subpart becomes U+FFFD, as Python's errors="replace" does. */
rrl_status rrl_utf8_replace(rrl_buffer *b, const char *bytes, size_t len);
/** Decode one code point of valid UTF-8 at *text and move on; *text < end. (Invalid bytes read as U+FFFD.) */
uint32_t rrl_utf8_next(const char **text, const char *end);
/** Append one code point. Errors: RRL_ERR_RANGE (surrogate, above U+10FFFF). */
rrl_status rrl_utf8_put(rrl_buffer *b, uint32_t cp);

/** Append text as lines of at most `columns` bytes, broken at spaces, each with a newline. The first one continues a line
 *  that stands at column `indent`, the others are indented by it. A longer word gets a line of its own. */
rrl_status rrl_buffer_wrap(rrl_buffer *b, const char *text, int indent, int columns);

/** The name of names[n] with the smallest edit distance to text (at most 3 and below its length); NULL if none. */
const char *rrl_nearest_name(const char *text, const char *const *names, size_t n);

#endif

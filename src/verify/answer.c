/* Where the answer of a completion stands: markers, boxes, the closing sentence. One pass over the bytes;
 * what lies between is settled by settle.c. Nothing here looks for "the last number". */
#include "verify/answer.h"

#include <stdlib.h>
#include <string.h>

#include "rrl/verify.h"
#include "verify/boxed.h"
#include "verify/context.h"

typedef struct {
    const char *p;
    size_t n;
} text_view;

typedef struct {
    size_t begin, end; /* bytes; begin == end = empty */
} span;

/* ---- bytes ---- */

/* Bytes of the white-space character at i, 0 if there is none. Works on any bytes. */
static size_t white_at(text_view t, size_t i) {
    if (i >= t.n) return 0;
    unsigned char c = (unsigned char)t.p[i];
    if (c < 0x80) return rrl_point_white(c);
    if (c == 0xC2 && t.n - i >= 2) return rrl_point_white((unsigned char)t.p[i + 1]) ? 2 : 0;
    if (((c >= 0xE1 && c <= 0xE3) || c == 0xEF) && t.n - i >= 3) {
        uint32_t b = (unsigned char)t.p[i + 1], d = (unsigned char)t.p[i + 2];
        if ((b & 0xC0) != 0x80 || (d & 0xC0) != 0x80) return 0;
        return rrl_point_white((uint32_t)(c & 0x0F) << 12 | (b & 0x3F) << 6 | (d & 0x3F)) ? 3 : 0;
    }
    return 0;
}

/* Bytes of the line end at i: LF, CR, VT, FF, NEL, LS, PS. */
static size_t line_end_at(text_view t, size_t i) {
    if (i >= t.n) return 0;
    if (t.p[i] >= '\n' && t.p[i] <= '\r') return 1;
    if (t.n - i >= 2 && memcmp(t.p + i, "\xC2\x85", 2) == 0) return 2;
    return t.n - i >= 3 &&
                   (memcmp(t.p + i, "\xE2\x80\xA8", 3) == 0 || memcmp(t.p + i, "\xE2\x80\xA9", 3) == 0)
               ? 3
               : 0;
}

static bool letter_at(text_view t, size_t i) {
    return i < t.n && ((t.p[i] | 32) >= 'a' && (t.p[i] | 32) <= 'z');
}

static bool starts(text_view t, size_t i, const char *bytes) {
    size_t len = strlen(bytes);
    return i <= t.n && t.n - i >= len && memcmp(t.p + i, bytes, len) == 0;
}

/* The lower-case word at i, in any case; *at moves behind it. */
static bool word_at(text_view t, size_t *at, const char *word) {
    size_t i = *at;
    for (; *word; word++, i++)
        if (i >= t.n || (t.p[i] | 32) != *word) return false;
    *at = i;
    return true;
}

/* White space and emphasis marks between the words of a marker; true if there was white space. */
static bool skip_gap(text_view t, size_t *at) {
    bool white = false;
    for (size_t w; *at < t.n; *at += w ? w : 1) {
        w = white_at(t, *at);
        if (w)
            white = true;
        else if (t.p[*at] != '*' && t.p[*at] != '_')
            break;
    }
    return white;
}

/* ---- markers ---- */

/* ':' or '=' (or a full-width colon) behind a gap, or a dash between blanks. */
static bool separator_at(text_view t, size_t *at, bool dash_too) {
    size_t i = *at;
    bool white = skip_gap(t, &i);
    size_t len = i < t.n && (t.p[i] == ':' || t.p[i] == '=') ? 1 : starts(t, i, "\xEF\xBC\x9A") ? 3 : 0;
    if (!len && dash_too && white) {
        len = i < t.n && t.p[i] == '-'                                       ? 1
              : starts(t, i, "\xE2\x80\x93") || starts(t, i, "\xE2\x80\x94") ? 3
                                                                             : 0;
        if (len && !white_at(t, i + len)) len = 0; /* "final answer -12" states no separator */
    }
    if (!len) return false;
    *at = i + len;
    return true;
}

/* final answer [:=] */
static bool final_marker(text_view t, size_t *at) {
    size_t i = *at;
    if (!word_at(t, &i, "final") || !skip_gap(t, &i) || !word_at(t, &i, "answer") ||
        !separator_at(t, &i, true))
        return false;
    *at = i;
    return true;
}

/* the [final] answer is [:=] */
static bool the_marker(text_view t, size_t *at) {
    size_t i = *at;
    if (!word_at(t, &i, "the") || !skip_gap(t, &i)) return false;
    if (word_at(t, &i, "final") && !skip_gap(t, &i)) return false;
    if (!word_at(t, &i, "answer") || !skip_gap(t, &i) || !word_at(t, &i, "is") || letter_at(t, i))
        return false;
    separator_at(t, &i, false);
    *at = i;
    return true;
}

/* The last marker. Each run of white space is looked at by the few words before it, so this is linear. */
static bool last_marker(span *out, text_view t) {
    bool found = false;
    for (size_t i = 0; i < t.n;) {
        size_t end = i;
        bool here = false;
        if ((t.p[i] | 32) == 'f') {
            here = final_marker(t, &end);
        } else if ((t.p[i] | 32) == 't') {
            here = the_marker(t, &end);
        } else if (t.p[i] == '#' && starts(t, i, "####")) {
            here = true;
            for (end = i + 4; end < t.n && t.p[end] == '#';) end++;
        }
        if (here) *out = (span){i, end};
        found |= here;
        i = here ? end : i + 1;
    }
    return found;
}

/* ---- boxes ---- */

typedef struct {
    size_t begin, content, end; /* \boxed, behind its brace, at the closing brace */
    size_t depth;
} box;

/* \boxed{ or \fbox{, blanks before the brace allowed; *at moves behind the brace. */
static bool box_at(text_view t, size_t *at) {
    size_t i = *at;
    if (starts(t, i, "\\boxed"))
        i += 6;
    else if (starts(t, i, "\\fbox"))
        i += 5;
    else
        return false;
    for (size_t w; (w = white_at(t, i)) > 0;) i += w;
    if (i >= t.n || t.p[i] != '{') return false;
    *at = i + 1;
    return true;
}

/* The last box that starts at or behind `from`, or the outermost that encloses it; *closed is false if it is
 * open when the text ends. One pass with a stack of open boxes. */
static rrl_status last_box(box *out, bool *found, bool *closed, text_view t, size_t from) {
    rrl_status rc = RRL_OK;
    box *open = NULL, best = {0};
    size_t n_open = 0, capacity = 0, depth = 0, last = 0;
    bool any = false;
    for (size_t i = from; i < t.n;) {
        size_t content = i;
        if (box_at(t, &content)) {
            RRL_GOTO(rrl_grow(&open, &capacity, n_open + 1, sizeof *open, "open boxes"));
            open[n_open++] = (box){.begin = i, .content = content, .depth = depth++};
            last = i;
            any = true;
            i = content;
        } else if (t.p[i] == '\\' && i + 1 < t.n) {
            i += 2; /* \{ and \} are no braces */
        } else {
            if (t.p[i] == '{') depth++;
            if (t.p[i] == '}' && depth > 0) {
                depth--;
                if (n_open && open[n_open - 1].depth == depth) {
                    best = open[--n_open];
                    best.end = i;
                }
            }
            i++;
        }
    }
    *found = any;
    *closed = any && best.end > last;
    *out = best;
    if (any && !*closed) out->begin = last;
done:
    free(open);
    return rc;
}

/* ---- lines ---- */

/* A line of blanks, emphasis marks, code fences and math delimiters says nothing. */
static bool line_is_empty(text_view t, span line) {
    for (size_t i = line.begin, w; i < line.end; i += w) {
        w = white_at(t, i);
        if (w) continue;
        if (strchr("*_`", t.p[i]) && t.p[i])
            w = 1;
        else if (starts(t, i, "\\[") || starts(t, i, "\\(") || starts(t, i, "$$"))
            w = 2;
        else
            return false;
    }
    return true;
}

/* The first line from `from` on that says something. */
static span answer_line(text_view t, size_t from) {
    while (from < t.n) {
        size_t end = from, w = 0;
        while (end < t.n && (w = line_end_at(t, end)) == 0) end++;
        span line = {from, end};
        if (!line_is_empty(t, line)) return line;
        from = end + w;
    }
    return (span){t.n, t.n};
}

/* The last line that is not blank. */
static span last_line(text_view t) {
    size_t end = t.n, begin;
    while (end > 0 && (white_at(t, end - 1) == 1 || line_end_at(t, end - 1) == 1)) end--;
    for (begin = end; begin > 0 && t.p[begin - 1] != '\n' && t.p[begin - 1] != '\r';) begin--;
    while (begin < end && white_at(t, begin)) begin += white_at(t, begin);
    return (span){begin, end};
}

/* ---- texts without a marker ---- */

/* A line that begins with Therefore, Thus or So and ends with **x**, closing punctuation allowed: x. */
static bool conclusion(span *x, text_view t) {
    span line = last_line(t);
    size_t i = line.begin, end = line.end;
    if (!word_at(t, &i, "therefore") && !word_at(t, &i, "thus") && !word_at(t, &i, "so")) return false;
    if (letter_at(t, i) || i >= end || (unsigned char)t.p[i] >= 0x80) return false;
    if (starts(t, end - 2, "..")) return false; /* **0.333**... */
    while (end > i && strchr(".!;:", t.p[end - 1]) && t.p[end - 1]) end--;
    if (end < i + 5 || t.p[end - 1] != '*' || t.p[end - 2] != '*') return false;
    end -= 2;
    size_t begin = end;
    while (begin > i && t.p[begin - 1] != '*') begin--;
    if (begin == end || begin < i + 2 || t.p[begin - 2] != '*') return false;
    *x = (span){begin, end};
    return true;
}

/* Whether the line before x speaks against it, or has another emphasised number. */
static rrl_status conclusion_doubtful(bool *doubtful, text_view t, span x) {
    rrl_status rc = RRL_OK;
    rrl_points line = {0}, cleaned = {0};
    size_t begin = last_line(t).begin, bold = 0;
    RRL_GOTO(rrl_points_decode(&line, t.p + begin, x.begin - 2 - begin));
    RRL_GOTO(rrl_latex_clean(&cleaned, line.cp, line.n));
    *doubtful = !rrl_lead_in_plain(cleaned.cp, cleaned.n);
    for (size_t i = 0; i + 1 < line.n; i++) {
        if (line.cp[i] == '*' && line.cp[i + 1] == '*') bold++, i++;
        if (bold % 2 && rrl_point_digit(line.cp[i]) >= 0) *doubtful = true;
    }
done:
    rrl_points_free(&line);
    rrl_points_free(&cleaned);
    return rc;
}

static rrl_status bare_scalar(bool *is_scalar, text_view t) {
    char *value = NULL;
    RRL_TRY(rrl_answer_rational(&value, t.p, t.n));
    *is_scalar = value != NULL;
    free(value);
    return RRL_OK;
}

/* ---- the whole ---- */

/* The bytes that hold the answer; found is false for none. *marker_at as the contract says. */
static rrl_status locate(span *answer, bool *found, bool *scalar_only, size_t *marker_at, text_view t) {
    span marker = {0, 0}, line = {0, 0};
    box b;
    bool boxed, closed, doubtful = false, bare;
    bool marked = last_marker(&marker, t);
    *found = true;
    *scalar_only = false;
    if (marked) line = answer_line(t, marker.end);
    RRL_TRY(last_box(&b, &boxed, &closed, t, marked ? marker.end : 0));
    if (boxed) {
        *answer = (span){b.content, b.end};
        *marker_at = marked && b.begin < line.end ? marker.begin : b.begin;
        *found = closed;
        if (closed) RRL_TRY(rrl_box_plain(found, t.p, t.n, b.begin, b.end + 1));
        if (*found) *found = !rrl_taken_back(t.p, t.n, b.end + 1);
        return RRL_OK;
    }
    if (marked) {
        *answer = line;
        *marker_at = marker.begin;
        *found = !rrl_taken_back(t.p, t.n, line.end);
        return RRL_OK;
    }
    *marker_at = t.n;
    *scalar_only = true;
    RRL_TRY(bare_scalar(&bare, t));
    if (bare) {
        *answer = (span){0, t.n};
        return RRL_OK;
    }
    *found = conclusion(answer, t) && answer->end - last_line(t).begin <= 4 * RRL_ANSWER_CHARS;
    if (*found) RRL_TRY(conclusion_doubtful(&doubtful, t, *answer));
    if (doubtful) *found = false;
    return RRL_OK;
}

rrl_status rrl_answer_extract(char **out, size_t *out_len, size_t *marker_at, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_points points = {0};
    rrl_buffer bytes = {0};
    rrl_settled kind = RRL_SETTLED_NONE;
    text_view t = {text, len};
    span answer = {0, 0};
    bool found, scalar_only;
    size_t at = len;
    RRL_GOTO(locate(&answer, &found, &scalar_only, &at, t));
    if (found) RRL_GOTO(rrl_answer_settle(&kind, &points, text + answer.begin, answer.end - answer.begin));
    if (scalar_only && kind != RRL_SETTLED_SCALAR) kind = RRL_SETTLED_NONE;
    if (kind != RRL_SETTLED_NONE) {
        RRL_GOTO(rrl_points_encode(&bytes, points.cp, points.n));
        if (scalar_only && answer.begin > 0) at = answer.begin - 2; /* the emphasised conclusion */
    }
    *out = bytes.data;
    *out_len = bytes.len;
    *marker_at = at;
    bytes = (rrl_buffer){0};
done:
    rrl_points_free(&points);
    rrl_buffer_free(&bytes);
    return rc;
}

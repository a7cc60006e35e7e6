#include "rrl/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_CHARS = 2048, PLACE_CHARS = 96 };

/* Per thread like errno: the one piece of mutable state with static storage that the project allows. */
static _Thread_local char message[MESSAGE_CHARS];
static _Thread_local char place[PLACE_CHARS];

const char *rrl_status_text(rrl_status rc) {
    switch (rc) {
#define X(name, code, text)                                                                                  \
    case name:                                                                                               \
        return text;
        RRL_STATUS_LIST(X)
#undef X
    default:
        return "unknown status";
    }
}

int rrl_status_exit_code(rrl_status rc) {
    switch (rc) {
#define X(name, code, text)                                                                                  \
    case name:                                                                                               \
        return code;
        RRL_STATUS_LIST(X)
#undef X
    default:
        return 1;
    }
}

/* A message is one line whatever was formatted into it (a file name may hold a newline). */
static void set_message(const char *text) {
    size_t n = strnlen(text, sizeof message - 1);
    for (size_t i = 0; i < n; i++) message[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    message[n] = 0;
}

rrl_status rrl_fail(rrl_status rc, const char *file, int line, const char *fmt, ...) {
    char text[MESSAGE_CHARS]; /* an argument may be rrl_error_message() itself, so never format in place */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    set_message(text);

    const char *name = strrchr(file, '/');
    snprintf(place, sizeof place, "%s:%d", name ? name + 1 : file, line);
    return rc;
}

rrl_status rrl_context(rrl_status rc, const char *fmt, ...) {
    if (rc == RRL_OK) return rc;
    char before[MESSAGE_CHARS], text[2 * MESSAGE_CHARS + 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(before, sizeof before, fmt, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", before, message);
    set_message(text);
    return rc;
}

const char *rrl_error_message(void) {
    return message;
}

const char *rrl_error_place(void) {
    return place;
}

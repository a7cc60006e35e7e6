/* A few dozen texts at most: candidates are looked up by their first byte and tried longest first. */
#include "data/added_tokens.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    char *content;
    size_t len;
    int32_t id;
    bool special, normalized;
} added_token;

struct rrl_added_tokens {
    added_token *tokens; /* by normalized, first byte, length descending */
    size_t n, capacity;
    size_t start[2][257]; /* tokens of [normalized] that begin with byte b: start[.][b] to start[.][b + 1] */
};

rrl_status rrl_added_tokens_open(rrl_added_tokens **out) {
    return rrl_alloc(out, 1, sizeof **out, "added tokens");
}

void rrl_added_tokens_close(rrl_added_tokens **a) {
    if (!a || !*a) return;
    for (size_t i = 0; i < (*a)->n; i++) free((*a)->tokens[i].content);
    free((*a)->tokens);
    free(*a);
    *a = NULL;
}

rrl_status rrl_added_tokens_add(rrl_added_tokens *a, const char *content, int32_t id, bool special,
                                bool normalized) {
    RRL_TRY(rrl_grow(&a->tokens, &a->capacity, a->n + 1, sizeof *a->tokens, "added tokens"));
    added_token t = {.len = strlen(content), .id = id, .special = special, .normalized = normalized};
    RRL_TRY(rrl_strdup(&t.content, content));
    a->tokens[a->n++] = t;
    return RRL_OK;
}

static int by_group_then_longest(const void *a, const void *b) {
    const added_token *x = a, *y = b;
    int gx = 256 * x->normalized + (uint8_t)x->content[0], gy = 256 * y->normalized + (uint8_t)y->content[0];
    if (gx != gy) return gx - gy;
    return (x->len < y->len) - (x->len > y->len);
}

void rrl_added_tokens_sort(rrl_added_tokens *a) {
    if (a->n) qsort(a->tokens, a->n, sizeof *a->tokens, by_group_then_longest);
    size_t i = 0;
    for (int normalized = 0; normalized < 2; normalized++) {
        for (int byte = 0; byte < 256; byte++) {
            a->start[normalized][byte] = i;
            while (i < a->n && a->tokens[i].normalized == (normalized != 0) &&
                   (uint8_t)a->tokens[i].content[0] == byte)
                i++;
        }
        a->start[normalized][256] = i;
    }
}

bool rrl_added_tokens_find(const rrl_added_tokens *a, bool normalized, const char *text, size_t len,
                           size_t from, int32_t *id, size_t *at, size_t *match_len) {
    const size_t *start = a->start[normalized];
    if (start[0] == start[256]) return false;
    for (size_t i = from; i < len; i++) {
        uint8_t byte = (uint8_t)text[i];
        for (size_t k = start[byte]; k < start[byte + 1]; k++) {
            const added_token *t = &a->tokens[k];
            if (t->len > len - i || memcmp(text + i, t->content, t->len) != 0) continue;
            *id = t->id;
            *at = i;
            *match_len = t->len;
            return true;
        }
    }
    return false;
}

bool rrl_added_tokens_special(const rrl_added_tokens *a, int32_t id) {
    for (size_t i = 0; i < a->n; i++)
        if (a->tokens[i].id == id) return a->tokens[i].special;
    return false;
}

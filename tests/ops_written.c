#include "ops_written.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(void *array, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return array;
    *capacity = 2 * need;
    return realloc(array, *capacity * size);
}

void ops_written_add(ops_written *w, const void *p, size_t bytes, double bound) {
    w->data = room(w->data, &w->capacity, w->len + bytes, 1);
    w->stretches = room(w->stretches, &w->stretch_capacity, w->n_stretches + 1, sizeof *w->stretches);
    w->stretches[w->n_stretches++] = (struct stretch){w->len, bytes / sizeof(float), bound};
    if (bytes) memcpy(w->data + w->len, p, bytes);
    w->len += bytes;
}

void ops_written_free(ops_written *w) {
    free(w->data);
    free(w->stretches);
    *w = (ops_written){0};
}

static float float_at(const ops_written *w, size_t byte) {
    float x;
    memcpy(&x, w->data + byte, sizeof x);
    return x;
}

static bool differ(const ops_written *want, const ops_written *got, size_t byte, const char *name, int round,
                   const char *who) {
    fprintf(stderr, "  %s, round %d, %s: word %zu of %zu is %.9g, reference %.9g\n", name, round, who, byte / 4,
            want->len / 4, (double)float_at(got, byte), (double)float_at(want, byte));
    return false;
}

static bool differ_in_size(const ops_written *want, const ops_written *got, const char *name, int round,
                           const char *who) {
    fprintf(stderr, "  %s, round %d, %s: %zu bytes in %zu stretches, reference %zu in %zu\n", name, round, who, got->len,
            got->n_stretches, want->len, want->n_stretches);
    return false;
}

bool ops_written_equal(const ops_written *want, const ops_written *got, const char *name, int round, const char *who) {
    if (want->len == got->len && memcmp(want->data, got->data, want->len) == 0) return true;
    size_t at = 0;
    if (want->len != got->len) return differ_in_size(want, got, name, round, who);
    while (want->data[at] == got->data[at]) at++;
    return differ(want, got, at / 4 * 4, name, round, who);
}

bool ops_written_near(const ops_written *want, const ops_written *got, const char *name, int round, const char *who) {
    if (want->len != got->len || want->n_stretches != got->n_stretches)
        return differ_in_size(want, got, name, round, who);
    for (size_t s = 0; s < want->n_stretches; ++s) {
        const struct stretch *x = &want->stretches[s];
        for (size_t at = x->first; at < x->first + x->count * sizeof(float); at += sizeof(float)) {
            const float a = float_at(want, at), b = float_at(got, at);
            if (isinf(x->bound)) break;
            if (x->bound == 0 ? memcmp(&a, &b, sizeof a) == 0 : fabs((double)a - (double)b) <= x->bound) continue;
            return differ(want, got, at, name, round, who);
        }
    }
    return true;
}

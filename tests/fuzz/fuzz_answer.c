/* The answer parser on a completion, and on a pair of answers divided by the last NUL. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "rrl/verify.h"

static void compare(const char *a, size_t na, const char *b, size_t nb) {
    bool equal = false, turned = false, counts = false;
    if (rrl_answer_equal(&equal, "rule", a, na, b, nb) == RRL_OK && rrl_answer_equal(&turned, "rule", b, nb, a, na) == RRL_OK)
        fuzz_want(equal == turned, "equality is symmetric");
    (void)rrl_answer_equal(&equal, "exact", a, na, b, nb);
    (void)rrl_answer_counts(&counts, a, na, b, nb);
}

static void normalise(const char *text, size_t n) {
    char *normal = NULL, *rational = NULL;
    (void)rrl_answer_normal(&normal, text, n);
    (void)rrl_answer_rational(&rational, text, n);
    free(normal);
    free(rational);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = size ? (const char *)data : "", *cut = size ? memrchr(text, 0, size) : NULL;
    char *answer = NULL;
    size_t n = 0, marker = 0;
    if (rrl_answer_extract(&answer, &n, &marker, text, size) == RRL_OK) {
        fuzz_want(marker <= size, "the marker lies in the text");
        if (answer) normalise(answer, n);
    }
    normalise(text, size);
    if (cut) compare(text, (size_t)(cut - text), cut + 1, size - 1 - (size_t)(cut - text));
    else if (answer) compare(answer, n, text, size);
    free(answer);
    return 0;
}

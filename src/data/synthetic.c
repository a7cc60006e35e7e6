/* Questions of our own: enough for tests and the fixture, with answers that need exact fractions. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/question_set.h"

enum {
    RANGE = 100,
    MAX_QUESTIONS = 20000
}; /* half of what there is: each question is found in a few draws */

static const struct {
    char op;
    const char *klass;
} KINDS[] = {{'+', "addition"}, {'-', "subtraction"}, {'*', "multiplication"}, {'/', "division"}};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void answer(char *out, size_t size, char op, int64_t a, int64_t b) {
    int64_t p = op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a, q = op == '/' ? b : 1;
    int64_t d = gcd(p < 0 ? -p : p, q);
    if (q / d == 1)
        snprintf(out, size, "%lld", (long long)(p / d));
    else
        snprintf(out, size, "%lld/%lld", (long long)(p / d), (long long)(q / d));
}

/* Question i: kinds take turns, operands are drawn until they are new. A divisor is never 0. */
static rrl_status make_row(rrl_question *row, bool *taken, int64_t i, uint64_t seed, const char *id_prefix) {
    int kind = (int)(i % N_KINDS);
    rrl_rng_key key = {.seed = seed, .purpose = RRL_RNG_FIXTURE, .question = (uint64_t)i};
    int64_t a, b, place;
    uint32_t draw = 0;
    do {
        int64_t low = KINDS[kind].op == '/';
        a = (int64_t)(rrl_rng_uniform(&key, draw) * RANGE);
        b = low + (int64_t)(rrl_rng_uniform(&key, draw + 1) * (double)(RANGE - low));
        draw += 2;
        place = (kind * RANGE + a) * RANGE + b;
    } while (taken[place]);
    taken[place] = true;

    char id[32], question[64], reference[32], metadata[64];
    snprintf(id, sizeof id, "%05lld", (long long)i);
    snprintf(question, sizeof question, "What is %lld %c %lld?", (long long)a, KINDS[kind].op, (long long)b);
    answer(reference, sizeof reference, KINDS[kind].op, a, b);
    snprintf(metadata, sizeof metadata, "{\"class\": \"%s\"}", KINDS[kind].klass);
    rrl_buffer full = {0};
    RRL_TRY(rrl_buffer_puts(&full, id_prefix ? id_prefix : ""));
    rrl_status rc = rrl_buffer_puts(&full, id);
    row->id = full.data; /* the row owns it now, also on failure */
    RRL_TRY(rc);
    RRL_TRY(rrl_strdup(&row->question, question));
    RRL_TRY(rrl_strdup(&row->reference, reference));
    RRL_TRY(rrl_strdup(&row->metadata, metadata));
    return rrl_strdup(&row->klass, KINDS[kind].klass);
}

rrl_status rrl_questions_synthetic(rrl_questions **out, int64_t n, uint64_t seed, const char *id_prefix) {
    rrl_status rc = RRL_OK;
    rrl_questions *q = NULL;
    bool *taken = NULL;
    if (n < 1 || n > MAX_QUESTIONS) {
        rc = RRL_FAIL(RRL_ERR_RANGE, "%lld synthetic questions, expected 1 to %d", (long long)n,
                      MAX_QUESTIONS);
        goto done;
    }
    RRL_GOTO(rrl_alloc(&taken, N_KINDS * RANGE * RANGE, sizeof *taken, "synthetic questions"));
    RRL_GOTO(rrl_alloc(&q, 1, sizeof *q, "questions"));
    RRL_GOTO(rrl_alloc(&q->rows, (size_t)n, sizeof *q->rows, "questions"));
    q->n = n; /* rows not made yet are empty */
    for (int64_t i = 0; i < n; i++) RRL_GOTO(make_row(&q->rows[i], taken, i, seed, id_prefix));
    RRL_GOTO(rrl_questions_seal(q));
    *out = q;
    q = NULL;
done:
    rrl_questions_close(&q);
    free(taken);
    return rc;
}

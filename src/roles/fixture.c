/* Answers to "What is A op B?", right with probability 0.7. */
#include "roles/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

static const double WRONG_PROBABILITY = 0.3;

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* Value p/q of the question; operands below 2^31 keep every product in range. */
static rrl_status evaluate(int64_t *p, int64_t *q, const rrl_question *question) {
    int64_t a, b;
    char op;
    int end = 0;
    if (sscanf(question->question, "What is %9" SCNd64 " %c %9" SCNd64 "?%n", &a, &op, &b, &end) != 3 || end == 0 ||
        question->question[end] != '\0' || a < 0 || b < 0 || !strchr("+-*/", op) || (op == '/' && b == 0))
        return RRL_FAIL(RRL_ERR_DATA, "question %s: the fixture back end answers only \"What is A op B?\" with + - * / on "
                        "non-negative integers of at most 9 digits, found \"%.60s\"", question->id, question->question);
    *q = op == '/' ? b : 1;
    *p = op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a;
    int64_t g = gcd(*p, *q);
    if (g > 1) {
        *p /= g;
        *q /= g;
    }
    return RRL_OK;
}

rrl_status rrl_fixture_group(rrl_group **out, const rrl_question *q, uint64_t seed, uint32_t purpose, int32_t first,
                             int32_t count) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    rrl_buffer text = {0};
    int64_t num = 0, den = 1;
    RRL_TRY(evaluate(&num, &den, q));
    RRL_GOTO(rrl_group_create(&g, count, 0));
    for (int32_t i = 0; i < count; i++) {
        rrl_rng_key key = {.seed = seed, .purpose = purpose, .question = rrl_rng_question(q->id),
                           .sample = (uint32_t)(first + i), .attempt = RRL_RNG_FIXTURE};
        int64_t p = num + (rrl_rng_uniform(&key, 0) < WRONG_PROBABILITY ? den : 0);
        size_t before = text.len;
        RRL_GOTO(rrl_buffer_printf(&text, "Fixture arithmetic. Final answer: %" PRId64, p));
        if (den != 1) RRL_GOTO(rrl_buffer_printf(&text, "/%" PRId64, den));
        g->rows[i].sample = first + i;
        g->rows[i].n_text = (int32_t)(text.len - before);
        g->rows[i].n_answer = -1;
    }
    g->text = text.data;
    g->head.n_text = (int64_t)text.len;
    text = (rrl_buffer){0};
    *out = g;
    g = NULL;
done:
    rrl_buffer_free(&text);
    rrl_group_free(&g);
    return rc;
}

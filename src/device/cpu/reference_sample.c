/* Sampling by definition: integer masses, a sort, a walk in order of ids. */
#include <stdlib.h>

#include "device/cpu/common.h"
#include "device/cpu/reference.h"

/* mass descending, id ascending */
static int by_mass(const void *x, const void *y) {
    const rrl_candidate *a = x, *b = y;
    if (a->mass != b->mass) return a->mass > b->mass ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_id(const void *x, const void *y) {
    const rrl_candidate *a = x, *b = y;
    return a->id < b->id ? -1 : 1;
}

static int32_t argmax(const float *z, int64_t n) {
    int32_t best = 0;
    for (int64_t i = 1; i < n; ++i)
        if (z[i] > z[best]) best = (int32_t)i;
    return best;
}

/* Smallest set in (mass descending, id ascending) order within top_k that reaches top_p of the top_k set's
 * mass. */
static int64_t cut(const rrl_candidate *c, int64_t n, const rrl_sample_row *row, uint64_t *kept) {
    int64_t limit = row->top_k > 0 ? rrl_min(row->top_k, n) : n;
    uint64_t total = 0;
    for (int64_t i = 0; i < limit; ++i) total += c[i].mass;
    uint64_t target = row->top_p < 1.0f ? rrl_mass_target(row->top_p, total) : total, sum = 0;
    int64_t count = 0;
    while (count < limit && sum < target) sum += c[count++].mass;
    *kept = sum;
    return count;
}

static int32_t draw(const rrl_sample_row *row, const float *z, int64_t n, rrl_candidate *c,
                    uint64_t *kept_masses) {
    float max = z[argmax(z, n)];
    for (int64_t i = 0; i < n; ++i)
        c[i] = (rrl_candidate){.mass = rrl_mass(rrl_expf(z[i] - max)), .id = (int32_t)i};
    qsort(c, (size_t)n, sizeof *c, by_mass);
    uint64_t kept, sum = 0;
    int64_t count = cut(c, n, row, &kept);
    qsort(c, (size_t)count, sizeof *c, by_id);
    if (kept_masses)
        for (int64_t i = 0; i < count; ++i) kept_masses[c[i].id] = c[i].mass;
    uint64_t threshold = rrl_draw_threshold(row, kept);
    for (int64_t i = 0; i < count; ++i)
        if ((sum += c[i].mass) > threshold) return c[i].id;
    return 0; /* NaN logits: the loss is not finite either, which the learner reports */
}

static void sample_row(const rrl_sample_job *j, int64_t i, const rrl_sample_scratch *s) {
    const rrl_sample_row *row = &j->rows[i];
    int64_t n = j->logits.cols;
    const float *logits = j->logits.data + i * n;
    float t = rrl_score_temperature(row->temperature);
    for (int64_t v = 0; v < n; ++v) s->z[v] = logits[v];
    if (row->repetition_penalty != 1.0f)
        for (int32_t h = 0; h < row->n_history; ++h)
            s->z[row->history[h]] = rrl_penalised(logits[row->history[h]], row->repetition_penalty);
    for (int64_t v = 0; v < n; ++v) s->z[v] /= t;
    uint64_t *kept = j->kept ? j->kept + i * n : NULL;
    j->token[i] = row->temperature > 0.0f ? draw(row, s->z, n, s->a, kept) : argmax(s->z, n);
    j->logp[i] = rrl_reference_logp(logits, n, t, j->token[i]);
}

void rrl_reference_sample(const rrl_sample_job *j, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
        for (int64_t i = unit; i < j->logits.rows; i += j->n_units) sample_row(j, i, &j->scratch[unit]);
}

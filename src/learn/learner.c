/* Gradient tree inside one learner, AdamW, and the step's report. */
#include "learn/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TREE_LEVELS = 32 };

struct rrl_learner {
    rrl_model *model;
    rrl_adapter *adapter;
    rrl_device *device;
    rrl_learner_settings set;
    rrl_slot_engine *own;    /* NULL where settings lend one */
    rrl_slot_engine *engine; /* the one used */
    int64_t size;
    float *gradient, *scratch, *m, *v;
    float *level[TREE_LEVELS]; /* pending left node of each level; made when first needed */
    double *square;            /* device: result of sum_squares */
    int64_t updates;
    /* host */
    float *ref;     /* [rows of a slot * max tokens] */
    double *weight; /* [groups * G] */
    int32_t *n_tokens, *finish;
    uint32_t *samples; /* [slot_rows] */
};

rrl_status rrl_learner_open(rrl_learner **out, rrl_model *m, rrl_adapter *a, const rrl_learner_settings *s) {
    rrl_status rc = RRL_OK;
    rrl_learner *l = NULL;
    size_t rows = (size_t)s->groups * (size_t)s->group_size;
    RRL_TRY(rrl_alloc(&l, 1, sizeof *l, "learner"));
    l->model = m;
    l->adapter = a;
    l->device = rrl_model_device(m);
    l->set = *s;
    l->size = rrl_adapter_size(a);
    size_t bytes = (size_t)l->size * sizeof(float);
    RRL_GOTO(l->device->ops->alloc(l->device, (void **)&l->gradient, bytes, "gradient"));
    RRL_GOTO(l->device->ops->alloc(l->device, (void **)&l->scratch, bytes, "gradient of another learner"));
    RRL_GOTO(l->device->ops->alloc(l->device, (void **)&l->m, bytes, "first moments"));
    RRL_GOTO(l->device->ops->alloc(l->device, (void **)&l->v, bytes, "second moments"));
    RRL_GOTO(l->device->ops->alloc(l->device, (void **)&l->square, sizeof(double), "gradient norm"));
    RRL_GOTO(rrl_alloc(&l->weight, rows, sizeof *l->weight, "row weights"));
    RRL_GOTO(rrl_alloc(&l->n_tokens, rows, sizeof *l->n_tokens, "row lengths"));
    RRL_GOTO(rrl_alloc(&l->finish, rows, sizeof *l->finish, "row finish"));
    RRL_GOTO(rrl_alloc(&l->samples, (size_t)s->slot_rows, sizeof *l->samples, "samples of a slot"));
    rrl_slot_limits most = {.max_rows = s->max_rows, .max_seqs = s->slot_rows};
    rrl_slot_fit(&most, rrl_model_dims(m), rrl_adapter_rank(a), (size_t)RRL_SLOT_MIB << 20);
    if (!s->slots) RRL_GOTO(rrl_slot_engine_open(&l->own, m, &most));
    l->engine = s->slots ? s->slots : l->own;
    const size_t tokens = (size_t)s->slot_rows * (size_t)s->grpo.max_tokens;
    RRL_GOTO(rrl_alloc(&l->ref, tokens, sizeof *l->ref, "log-probs of a slot"));
    *out = l;
    l = NULL;
done:
    rrl_learner_close(&l);
    return rc;
}

void rrl_learner_close(rrl_learner **lp) {
    rrl_learner *l = *lp;
    if (!l) return;
    float *device[] = {l->gradient, l->scratch, l->m, l->v};
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
        if (device[i]) l->device->ops->free(l->device, device[i]);
    for (int i = 0; i < TREE_LEVELS; i++)
        if (l->level[i]) l->device->ops->free(l->device, l->level[i]);
    if (l->square) l->device->ops->free(l->device, l->square);
    rrl_slot_engine_close(&l->own);
    free(l->ref);
    free(l->weight);
    free(l->n_tokens);
    free(l->finish);
    free(l->samples);
    free(l);
    *lp = NULL;
}

int32_t rrl_learner_slots(const rrl_learner *l) {
    return l->set.groups * (l->set.group_size / l->set.slot_rows);
}

void rrl_learner_share(int32_t *first, int32_t *n, int32_t *active, int32_t slots, int32_t learners, int32_t index) {
    int32_t leaf = 1; /* slots of a learner: the smallest power of two that leaves at most `learners` subtrees */
    while ((slots + leaf - 1) / leaf > learners) leaf *= 2;
    *active = (slots + leaf - 1) / leaf;
    *first = index * leaf < slots ? index * leaf : slots;
    *n = *first + leaf < slots ? leaf : slots - *first;
}

rrl_device *rrl_learner_device(const rrl_learner *l) { return l->device; }
const rrl_grpo *rrl_learner_loss(const rrl_learner *l) { return &l->set.grpo; }
float *rrl_learner_gradient_data(rrl_learner *l) { return l->gradient; }
float *rrl_learner_scratch(rrl_learner *l) { return l->scratch; }
int64_t rrl_learner_updates(const rrl_learner *l) { return l->updates; }
void rrl_learner_set_updates(rrl_learner *l, int64_t updates) { l->updates = updates; }
float *rrl_learner_moment(rrl_learner *l, int which) { return which == 0 ? l->m : l->v; }

static void set_weights(rrl_learner *l, rrl_group *const *groups) {
    int32_t g_size = l->set.group_size;
    for (int32_t g = 0; g < l->set.groups; g++)
        for (int32_t i = 0; i < g_size; i++) {
            l->n_tokens[g * g_size + i] = groups[g]->rows[i].n_tokens;
            l->finish[g * g_size + i] = groups[g]->rows[i].finish;
        }
    rrl_grpo_weights(l->weight, &l->set.grpo, l->n_tokens, l->finish, (int64_t)l->set.groups * g_size);
}

static bool group_is_flat(const rrl_group *g) {
    for (int32_t i = 0; i < g->head.count; i++)
        if (g->rows[i].advantage != 0) return false;
    return true;
}

/* A slot's rows of a group, and what their loss is made of. */
typedef struct {
    const rrl_learner *l;
    const rrl_group *group;
    int32_t first_row;
    const double *weight; /* of each row */
    rrl_row_stats *stats; /* of each row */
    bool on_policy, no_kl;
} slot_rows;

/* The loss of tokens [first, first + n) of the slot: of a part of each row that they touch. */
static void loss_of(void *context, float *dlogp, const float *logp, const float *entropy, int64_t first, int64_t n) {
    const slot_rows *s = context;
    const rrl_grpo *grpo = &s->l->set.grpo;
    const int64_t at = rrl_group_token_at(s->group, s->first_row), last = first + n;
    int64_t begin = 0, end; /* tokens of row i */
    for (int32_t i = 0; i < s->l->set.slot_rows; i++, begin = end) {
        const rrl_completion *c = &s->group->rows[s->first_row + i];
        end = begin + c->n_tokens;
        const int64_t from = begin > first ? begin : first, to = end < last ? end : last;
        if (from >= to) continue;
        const float *recorded = s->group->logprobs + at + from;
        const rrl_grpo_row row = {.logp = logp + (from - first), .old = s->on_policy ? NULL : recorded,
                                  .ref = grpo->beta != 0 ? s->l->ref + from : NULL, .entropy = entropy + (from - first),
                                  .recorded = recorded, .n_tokens = (int32_t)(to - from),
                                  .advantage = (double)c->advantage, .weight = s->weight[i], .no_kl = s->no_kl};
        rrl_grpo_row_loss(dlogp + (from - first), &s->stats[i], grpo, &row);
    }
}

/* Gradient of one slot into l->gradient (which starts at zero). */
static rrl_status slot_gradient(rrl_learner *l, rrl_row_stats *stats, const rrl_group *group,
                                const rrl_prompt_view *prompt, int32_t group_index, int32_t first_row,
                                int32_t iteration) {
    const rrl_learner_settings *s = &l->set;
    const int32_t row = group_index * s->group_size + first_row; /* of the step */
    for (int32_t i = 0; i < s->slot_rows; i++) {
        l->samples[i] = (uint32_t)group->rows[first_row + i].sample;
        stats[i] = (rrl_row_stats){0};
    }
    rrl_slot slot = {.prompt = prompt->ids, .n_prompt = prompt->n, .n_seqs = s->slot_rows,
                     .tokens = group->tokens + rrl_group_token_at(group, first_row), .n_tokens = l->n_tokens + row,
                     .temperature = s->temperature, .seed = s->seed, .step = (uint32_t)group->head.step,
                     .question = prompt->question, .samples = l->samples};
    if (s->grpo.beta != 0) RRL_TRY(rrl_slot_forward(l->engine, l->ref, NULL, &slot, NULL));
    slot.dropout = s->dropout;
    slot.iteration = (uint32_t)iteration;
    slot_rows rows = {.l = l, .group = group, .first_row = first_row, .weight = l->weight + row, .stats = stats,
                      .on_policy = !s->recorded_old && iteration == 0 && group->head.policy_version == l->updates,
                      .no_kl = !s->grpo.kl_on_flat_groups && group_is_flat(group)};
    return rrl_slot_gradient(l->engine, l->gradient, &slot, l->adapter, &(rrl_slot_loss){loss_of, &rows});
}

static void swap(float **a, float **b) {
    float *t = *a;
    *a = *b;
    *b = t;
}

/* A finished node climbs: while a left sibling waits on this level, left + node becomes the node of the next level. */
static rrl_status tree_put(rrl_learner *l, bool *waiting) {
    rrl_device *d = l->device;
    int level = 0;
    for (; waiting[level]; level++) {
        /* left + right: the left operand is the stored one */
        RRL_TRY(d->ops->axpy(d, l->level[level], l->gradient, 1.0f, l->size));
        swap(&l->level[level], &l->gradient);
        waiting[level] = false;
    }
    if (!l->level[level])
        RRL_TRY(d->ops->alloc(d, (void **)&l->level[level], (size_t)l->size * sizeof(float), "gradient tree"));
    swap(&l->level[level], &l->gradient);
    waiting[level] = true;
    return RRL_OK;
}

/* Nodes that wait are odd last ones: the lowest moves up unchanged until it meets the next. Result in l->gradient. */
static rrl_status tree_end(rrl_learner *l, bool *waiting) {
    rrl_device *d = l->device;
    bool have = false;
    for (int level = 0; level < TREE_LEVELS; level++) {
        if (!waiting[level]) continue;
        if (have) RRL_TRY(d->ops->axpy(d, l->level[level], l->gradient, 1.0f, l->size));
        swap(&l->level[level], &l->gradient);
        have = true;
    }
    return RRL_OK;
}

rrl_status rrl_learner_gradient(rrl_learner *l, rrl_row_stats *stats, rrl_group *const *groups,
                                const rrl_prompt_view *prompts, int32_t first, int32_t n, int32_t iteration) {
    bool waiting[TREE_LEVELS] = {false};
    int32_t per_group = l->set.group_size / l->set.slot_rows;
    set_weights(l, groups);
    for (int32_t slot = first; slot < first + n; slot++) {
        int32_t g = slot / per_group, row = (slot % per_group) * l->set.slot_rows;
        if (l->set.beat) l->set.beat(l->set.context);
        RRL_TRY(l->device->ops->zero(l->device, l->gradient, l->size));
        RRL_TRY(rrl_context(slot_gradient(l, stats + (slot - first) * l->set.slot_rows, groups[g], &prompts[g], g, row,
                                          iteration),
                            "step %lld, group %d", (long long)groups[g]->head.step, g));
        RRL_TRY(tree_put(l, waiting));
    }
    return tree_end(l, waiting);
}

static rrl_status norm_of(double *out, rrl_learner *l, const float *x, int64_t n) {
    double square = 0;
    RRL_TRY(l->device->ops->sum_squares(l->device, l->square, x, n));
    RRL_TRY(l->device->ops->download(l->device, &square, l->square, sizeof square));
    *out = sqrt(square);
    return RRL_OK;
}

rrl_status rrl_learner_update(rrl_learner *l, double *grad_norm, bool *finite, double learning_rate, double loss) {
    double norm = 0;
    RRL_TRY(norm_of(&norm, l, l->gradient, l->size));
    *grad_norm = norm;
    *finite = isfinite(norm) && isfinite(loss);
    if (!*finite) return RRL_OK;
    double clip = 1;
    if (l->set.max_grad_norm > 0) clip = l->set.max_grad_norm / (norm + 1e-6);
    rrl_adamw_args args = {.lr = learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8,
                           .weight_decay = l->set.weight_decay, .clip = clip < 1 ? clip : 1, .step = l->updates + 1};
    RRL_TRY(l->device->ops->adamw(l->device, rrl_adapter_data(l->adapter), l->m, l->v, l->gradient, l->size, &args));
    l->updates++;
    return rrl_adapter_refresh(l->adapter);
}

rrl_status rrl_learner_b_norm(double *out, rrl_learner *l) {
    double sum = 0;
    const rrl_trainable *t = rrl_adapter_tensors(l->adapter);
    for (int32_t i = 0; i < rrl_adapter_count(l->adapter); i++) {
        double norm = 0;
        if (!strstr(t[i].name, "lora_B")) continue;
        RRL_TRY(norm_of(&norm, l, rrl_adapter_data(l->adapter) + t[i].offset, t[i].rows * t[i].cols));
        sum += norm * norm;
    }
    *out = sqrt(sum);
    return RRL_OK;
}

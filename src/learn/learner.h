/* The learner: gradient of its share of a step's slots, and the update, on one rank. It sees no MPI: the sum between
 * learners is made by the caller between rrl_learner_gradient and rrl_learner_update.
 *
 * Slots are leaves of one tree: node i of level k+1 = node 2i + node 2i+1 of level k, an odd last node moves up
 * unchanged. A learner holds a whole subtree (rrl_learner_share), so any number of learners gives the same bits. */
#ifndef RRL_LEARN_LEARNER_H
#define RRL_LEARN_LEARNER_H

#include "learn/grpo.h"
#include "learn/training_row.h"
#include "model/slot.h"

typedef struct {
    rrl_grpo grpo;
    int32_t group_size, slot_rows, groups; /* G, rows of a slot, groups of a step */
    float temperature, dropout;
    bool dropout_in_rollout;
    bool recorded_old; /* old log-probs are the recorded ones on the first pass too (pipeline_depth > 0) */
    double weight_decay, max_grad_norm; /* max_grad_norm 0 = no clipping */
    uint64_t seed;
    /* Borrowed, with room for the largest slot; learners that work one after the other may share it. NULL: the learner
     * opens one of its own, of max_rows rows (prompt + completions). */
    rrl_slot_engine *slots;
    int32_t max_rows;
    void (*beat)(void *context); /* called before every slot: a sign of life from a long computation; may be NULL */
    void *context;
} rrl_learner_settings;

/* Prompt of a group, host, borrowed. */
typedef struct {
    const int32_t *ids;
    int32_t n;
    uint64_t question; /* rrl_rng_question(id) */
} rrl_prompt_view;

typedef struct rrl_learner rrl_learner;
/** model and adapter are borrowed; moments start at 0. */
rrl_status rrl_learner_open(rrl_learner **out, rrl_model *m, rrl_adapter *a, const rrl_learner_settings *s);
void rrl_learner_close(rrl_learner **l);
/** Slots [first, first + n) of `slots` that learner `index` of `learners` holds; n 0 = idle. Learners 0 .. active - 1
 *  hold one. A pure function. */
void rrl_learner_share(int32_t *first, int32_t *n, int32_t *active, int32_t slots, int32_t learners, int32_t index);
int32_t rrl_learner_slots(const rrl_learner *l);
rrl_device *rrl_learner_device(const rrl_learner *l);
const rrl_grpo *rrl_learner_loss(const rrl_learner *l);

/** Gradient of slots [first, first + n), summed by the tree, into rrl_learner_gradient_data. groups [groups] are whole,
 *  in schedule order, with advantages; prompts [groups]. iteration 0 of an on-policy batch uses the trained log-probs as
 *  old ones, else the recorded. stats [n * slot_rows] of the rows of these slots. */
rrl_status rrl_learner_gradient(rrl_learner *l, rrl_row_stats *stats, rrl_group *const *groups,
                                const rrl_prompt_view *prompts, int32_t first, int32_t n, int32_t iteration);
/** The gradient [adapter size] in device memory, and a scratch of the same size for the sum between learners. */
float *rrl_learner_gradient_data(rrl_learner *l);
float *rrl_learner_scratch(rrl_learner *l);

/** Norm, clip, AdamW step, adapter refresh. Not finite (gradient or loss): *finite false, nothing is changed. */
rrl_status rrl_learner_update(rrl_learner *l, double *grad_norm, bool *finite, double learning_rate, double loss);
/** Updates applied so far (AdamW's step count). */
int64_t rrl_learner_updates(const rrl_learner *l);

/** L2 norm of all B matrices. */
rrl_status rrl_learner_b_norm(double *out, rrl_learner *l);

/* Moments for checkpoints: device memory, [adapter size] each. */
float *rrl_learner_moment(rrl_learner *l, int which); /* 0: m, 1: v */
void rrl_learner_set_updates(rrl_learner *l, int64_t updates);

#endif

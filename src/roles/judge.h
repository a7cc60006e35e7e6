/* The verifier role: joins parts, runs all members and the independent judge, shapes rewards, passes groups on. */
#ifndef RRL_ROLES_JUDGE_H
#define RRL_ROLES_JUDGE_H

#include "roles/engine.h"
#include "roles/mailbox.h"

typedef struct rrl_judge rrl_judge;
/** The verifier of a condition: members and their corruption, ensemble, judge and shaping from its config. */
rrl_status rrl_judge_open(rrl_judge **out, const rrl_config *condition);
void rrl_judge_close(rrl_judge **j);
int rrl_judge_members(const rrl_judge *j);
/** Decode (where only tokens are there), judge and shape one whole group in place. */
rrl_status rrl_judge_group(rrl_judge *j, rrl_group *g, const rrl_question *q, const rrl_tokenizer *t);
/* What a verifier expects of one run: its judge and the groups of the step. */
typedef struct {
    rrl_judge *judge;
    const rrl_pool *pool;
    int32_t n_groups, group_size;
    int32_t slots_a_group; /* of training: who learns from which group; 0 in an evaluation */
} rrl_expected;

/** Receive the parts of this rank's groups of n runs (head.run is their place), judge each when whole, and send it to the
 *  recorder and, but for to_recorder, to all learners: whole to those that learn from it, its rows to the others. Local. */
rrl_status rrl_judge_step(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, rrl_mailbox *scored,
                          const rrl_expected *expected, int32_t n, bool to_recorder);

#endif

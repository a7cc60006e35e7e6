/* The groups of one sampling step on their way from questions to a learner: generated, judged, collected. */
#ifndef RRL_ROLES_STEP_GROUPS_H
#define RRL_ROLES_STEP_GROUPS_H

#include "roles/session.h"

typedef struct {
    int64_t step;             /* sampling step; -1 = empty */
    int32_t *questions;       /* [groups] rows of the training pool */
    rrl_group **groups;       /* [groups] in schedule order, learners; NULL elsewhere */
    rrl_prompt_view *prompts; /* [groups] */
    double rollout_s, verify_s;
} rrl_step_groups;

rrl_status rrl_step_groups_open(rrl_step_groups *b, const rrl_session *s);
void rrl_step_groups_close(rrl_step_groups *b, const rrl_session *s);
/** Give back the groups and set the batch to sampling step `step`: its questions and prompts. Local. */
rrl_status rrl_step_groups_begin(rrl_step_groups *b, const rrl_session *s, int64_t step);
/** This rank's share of generating and judging the groups of n sessions, in one decode batch, with their present adapters.
 *  A failure is told to whoever waits for groups of this rank. Local. */
rrl_status rrl_step_groups_produce(rrl_step_groups *const *b, rrl_session *const *s, int n);
/** Learners: receive every group of n sessions and set advantages. Local. */
rrl_status rrl_step_groups_collect(rrl_step_groups *const *b, rrl_session *const *s, int n);

/** Append the groups to bytes, and fill a batch of `step` from them: groups in flight of a checkpoint. Local. */
rrl_status rrl_step_groups_pack(rrl_buffer *bytes, const rrl_step_groups *b, const rrl_session *s);
rrl_status rrl_step_groups_unpack(rrl_step_groups *b, const rrl_session *s, int64_t step, const rrl_buffer *bytes);

#endif

/* What the training loop leaves behind, handed to the writer: steps and checkpoints of the sessions of a rank. */
#ifndef RRL_ROLES_RECORDING_H
#define RRL_ROLES_RECORDING_H

#include "roles/pace.h"
#include "roles/step_groups.h"
#include "roles/writer.h"

/** Groups and row of a step. last_use: the groups are taken; else they serve further updates, and copies are. A later
 *  iteration of a batch has a row only. Steps that wait together are one segment. */
rrl_status rrl_record_step(rrl_writer *w, rrl_session *s, rrl_step_groups *b, const rrl_training_row *row, bool last_use);
/** A checkpoint of the session as it stands, after all steps put so far; ahead: the batch in flight, NULL = none. When
 *  it is there an event says so, and pace learns how long it took. */
rrl_status rrl_record_checkpoint(rrl_writer *w, rrl_session *s, const rrl_step_groups *ahead, rrl_pace *pace);

#endif

/* Checkpoints: adapter, moments and counters of a run between two steps; each whole or not there.
 *
 * DIR/checkpoints/step-00000050/{tensors.safetensors, state.json, in_flight.bin}, then `complete`, a marker written last
 * with the SHA-256 of each. Only the newest `keep` stay. A damaged one is passed over for the one before. */
#ifndef RRL_LEARN_CHECKPOINT_H
#define RRL_LEARN_CHECKPOINT_H

#include <stdbool.h>

#include "base/memory.h"
#include "learn/learner.h"

typedef struct {
    int64_t step;       /* next update */
    int64_t updates;    /* updates applied (left out ones do not count) */
    int64_t num_tokens; /* completion tokens trained on */
    int64_t nonfinite;  /* steps left out so far */
} rrl_train_state;

/* What a checkpoint holds, taken at one moment: writing it asks neither learner nor device. */
typedef struct rrl_checkpoint rrl_checkpoint;
/** in_flight: bytes of the groups that are sampled but not yet learnt from (pipeline_depth), or empty. digest is the run's.
 *  The adapter outlives the checkpoint. */
rrl_status rrl_checkpoint_take(rrl_checkpoint **out, rrl_learner *l, rrl_adapter *a, const rrl_train_state *state,
                               const rrl_buffer *in_flight, const char *digest);
/** Errors: RRL_ERR_IO; the checkpoints before stay whole. */
rrl_status rrl_checkpoint_write(const rrl_checkpoint *c, const char *dir, int64_t keep);
void rrl_checkpoint_free(rrl_checkpoint **c);
/** Both. */
rrl_status rrl_checkpoint_save(const char *dir, rrl_learner *l, rrl_adapter *a, const rrl_train_state *state,
                               const rrl_buffer *in_flight, const char *digest, int64_t keep);
/** Load the newest valid checkpoint; *found false if there is none. skipped counts damaged ones passed over.
 *  path != NULL: this one and no other. Errors: RRL_ERR_DATA (another run's digest, tensor that does not fit). */
rrl_status rrl_checkpoint_load(bool *found, int *skipped, const char *dir, const char *path, rrl_learner *l,
                               rrl_adapter *a, rrl_train_state *state, rrl_buffer *in_flight, const char *digest);

/** Whether the checkpoint in this folder is whole, and its next update in *step; digest (NULL = any) must be its run's.
 *  Loads no tensors. Errors: RRL_ERR_DATA saying what is wrong. */
rrl_status rrl_checkpoint_check(int64_t *step, const char *folder, const char *digest);

#endif

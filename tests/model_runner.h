/* Runs batches of sequences through rrl_model_forward for tests: each sequence has cache blocks of its own,
 * nothing is shared or scheduled. The plainest use of the model there is. */
#ifndef RRL_TESTS_MODEL_RUNNER_H
#define RRL_TESTS_MODEL_RUNNER_H

#include "model/model.h"

enum { RUNNER_SEQS = 16, RUNNER_ROWS = 256, RUNNER_STRIDE = 8 }; /* up to 8 blocks a sequence */

typedef struct {
    rrl_model *m;
    rrl_workspace *w;
    rrl_kv_pool pool;
    int32_t length[RUNNER_SEQS]; /* positions in the cache */
    int32_t adapter[RUNNER_SEQS];
    rrl_adapter *adapters[4];
    int32_t n_adapters;
    rrl_tensor hidden; /* of the last step */
    int32_t n_rows;
} runner;

/** Empty sequences, all of the base. The adapters are borrowed. */
rrl_status runner_open(runner *r, rrl_model *m, rrl_adapter *const *adapters, int32_t n_adapters);
void runner_close(runner *r);
/** Forget the sequences' positions. */
void runner_clear(runner *r);
/** Append count[i] tokens to sequence seq[i], i < n, in one batch. logits, if not NULL: host [rows, vocab].
 */
rrl_status runner_step(runner *r, float *logits, const int32_t *seq, const int32_t *count, int32_t n,
                       const int32_t *tokens);

#endif

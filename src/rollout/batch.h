/* The arrays of one forward pass: filled row by row on the host, packed, and sent to the device in one transfer. */
#ifndef RRL_ROLLOUT_BATCH_H
#define RRL_ROLLOUT_BATCH_H

#include "model/model.h"

typedef struct rrl_step_batch rrl_step_batch;
/** Room for max_rows rows of max_seqs sequences with tables of `stride` blocks. The device is borrowed. */
rrl_status rrl_step_batch_open(rrl_step_batch **out, rrl_device *d, int32_t max_rows, int32_t max_seqs, int32_t stride);
void rrl_step_batch_close(rrl_step_batch **b);
/** Bytes of device memory. */
size_t rrl_step_batch_bytes(int32_t max_rows, int32_t max_seqs, int32_t stride);

void rrl_step_batch_clear(rrl_step_batch *b);
/** Rows that follow belong to a new sequence: its adapter (-1 = base), block table [stride] (copied), and the stream
 *  and sample of its dropout masks. */
void rrl_step_batch_begin(rrl_step_batch *b, int32_t adapter, const int32_t *table, const uint32_t key[2],
                          uint32_t sample);
/** Append a row; its K and V go to the table's block of this position. Returns the number of the row. */
int32_t rrl_step_batch_row(rrl_step_batch *b, int32_t token, int32_t position);
int32_t rrl_step_batch_rows(const rrl_step_batch *b);
/** Send the arrays and fill batch, table, writes and dropout (p = 0: NULL) of *f, which then point into b. */
rrl_status rrl_step_batch_upload(rrl_step_batch *b, rrl_forward *f, float p);

#endif

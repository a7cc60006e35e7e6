/* Every array is of 32-bit words, so one buffer takes them all, end to end in the order of upload(): one transfer a
 * pass, and no array is padded to the largest pass. */
#include "rollout/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ROW_ARRAYS = 6 }; /* token, position, row_seq and the three of kv_writes */

struct rrl_step_batch {
    rrl_device *device;
    int32_t stride, n_rows, n_seqs;
    int32_t *token, *position, *row_seq, *write_row, *write_block, *write_at; /* [max_rows] */
    int32_t *adapter, *seq_row, *table;                                       /* [max_seqs], [+1], [* stride] */
    uint32_t *seq_key, *seq_sample;                                           /* [max_seqs, 2], [max_seqs] */
    int32_t *packed;        /* host, all of the above end to end */
    int32_t *device_packed; /* the same in device memory */
    rrl_dropout dropout;
};

static size_t word_count(int32_t max_rows, int32_t max_seqs, int32_t stride) {
    return (size_t)max_rows * ROW_ARRAYS + (size_t)max_seqs * (5 + (size_t)stride) + 1;
}

size_t rrl_step_batch_bytes(int32_t max_rows, int32_t max_seqs, int32_t stride) {
    return word_count(max_rows, max_seqs, stride) * sizeof(int32_t);
}

rrl_status rrl_step_batch_open(rrl_step_batch **out, rrl_device *d, int32_t max_rows, int32_t max_seqs,
                               int32_t stride) {
    rrl_status rc;
    rrl_step_batch *b = NULL;
    const size_t rows = (size_t)max_rows, seqs = (size_t)max_seqs, word = sizeof(int32_t);
    const size_t words = word_count(max_rows, max_seqs, stride);
    RRL_GOTO(rrl_alloc(&b, 1, sizeof *b, "rollout batch"));
    b->device = d;
    b->stride = stride;
    RRL_GOTO(rrl_alloc(&b->token, rows, word, "batch tokens"));
    RRL_GOTO(rrl_alloc(&b->position, rows, word, "batch positions"));
    RRL_GOTO(rrl_alloc(&b->row_seq, rows, word, "batch sequences"));
    RRL_GOTO(rrl_alloc(&b->write_row, rows, word, "batch writes"));
    RRL_GOTO(rrl_alloc(&b->write_block, rows, word, "batch writes"));
    RRL_GOTO(rrl_alloc(&b->write_at, rows, word, "batch writes"));
    RRL_GOTO(rrl_alloc(&b->adapter, seqs, word, "batch adapters"));
    RRL_GOTO(rrl_alloc(&b->seq_row, seqs + 1, word, "batch offsets"));
    RRL_GOTO(rrl_alloc(&b->table, seqs * (size_t)stride, word, "batch tables"));
    RRL_GOTO(rrl_alloc(&b->seq_key, seqs * 2, word, "batch keys"));
    RRL_GOTO(rrl_alloc(&b->seq_sample, seqs, word, "batch samples"));
    RRL_GOTO(rrl_alloc(&b->packed, words, word, "batch buffer"));
    RRL_GOTO(d->ops->alloc(d, (void **)&b->device_packed, words * word, "rollout batch"));
    *out = b;
    b = NULL;
done:
    rrl_step_batch_close(&b);
    return rc;
}

void rrl_step_batch_close(rrl_step_batch **out) {
    rrl_step_batch *b = *out;
    if (!b) return;
    free(b->token);
    free(b->position);
    free(b->row_seq);
    free(b->write_row);
    free(b->write_block);
    free(b->write_at);
    free(b->adapter);
    free(b->seq_row);
    free(b->table);
    free(b->seq_key);
    free(b->seq_sample);
    free(b->packed);
    if (b->device_packed) b->device->ops->free(b->device, b->device_packed);
    free(b);
    *out = NULL;
}

void rrl_step_batch_clear(rrl_step_batch *b) {
    b->n_rows = b->n_seqs = 0;
}

void rrl_step_batch_begin(rrl_step_batch *b, int32_t adapter, const int32_t *table, const uint32_t key[2],
                          uint32_t sample) {
    const size_t s = (size_t)b->n_seqs++;
    b->adapter[s] = adapter;
    memcpy(b->table + s * (size_t)b->stride, table, (size_t)b->stride * sizeof *table);
    b->seq_key[2 * s] = key[0];
    b->seq_key[2 * s + 1] = key[1];
    b->seq_sample[s] = sample;
    b->seq_row[s] = b->seq_row[s + 1] = b->n_rows;
}

int32_t rrl_step_batch_row(rrl_step_batch *b, int32_t token, int32_t position) {
    const int32_t row = b->n_rows++, seq = b->n_seqs - 1;
    b->token[row] = token;
    b->position[row] = position;
    b->row_seq[row] = seq;
    b->write_row[row] = row;
    b->write_block[row] = b->table[(size_t)seq * (size_t)b->stride + (size_t)(position / RRL_KV_BLOCK)];
    b->write_at[row] = position % RRL_KV_BLOCK;
    b->seq_row[seq + 1] = b->n_rows;
    return row;
}

int32_t rrl_step_batch_rows(const rrl_step_batch *b) {
    return b->n_rows;
}

/* Append n words to the packed buffer; returns where they will lie on the device. */
static const int32_t *pack(rrl_step_batch *b, size_t *at, const void *words, size_t n) {
    const int32_t *there = b->device_packed + *at;
    memcpy(b->packed + *at, words, n * sizeof(int32_t));
    *at += n;
    return there;
}

rrl_status rrl_step_batch_upload(rrl_step_batch *b, rrl_forward *f, float p) {
    const size_t rows = (size_t)b->n_rows, seqs = (size_t)b->n_seqs;
    size_t at = 0;
    f->batch = (rrl_batch){.n_rows = b->n_rows,
                           .n_seqs = b->n_seqs,
                           .token = pack(b, &at, b->token, rows),
                           .position = pack(b, &at, b->position, rows),
                           .row_seq = pack(b, &at, b->row_seq, rows),
                           .seq_row = pack(b, &at, b->seq_row, seqs + 1),
                           .adapter = pack(b, &at, b->adapter, seqs)};
    f->table = (rrl_kv_table){.table = pack(b, &at, b->table, seqs * (size_t)b->stride), .stride = b->stride};
    f->writes = (rrl_kv_writes){.row = pack(b, &at, b->write_row, rows),
                                .block = pack(b, &at, b->write_block, rows),
                                .at = pack(b, &at, b->write_at, rows),
                                .n = b->n_rows};
    b->dropout = (rrl_dropout){.p = p,
                               .iteration = 0,
                               .seq_key = (const uint32_t *)pack(b, &at, b->seq_key, seqs * 2),
                               .seq_sample = (const uint32_t *)pack(b, &at, b->seq_sample, seqs)};
    f->dropout = p > 0 ? &b->dropout : NULL;
    return b->device->ops->upload(b->device, b->device_packed, b->packed, at * sizeof(int32_t));
}

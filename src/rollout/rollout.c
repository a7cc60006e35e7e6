/* Continuous batching.
 *
 * A request in work is a *part*, a sequence that decodes has a *seat*. Each step is one pass over the layers of one
 * row of every seated sequence and up to PREFILL_ROWS rows of prompts, oldest part first, so a long prompt needs
 * neither a large workspace nor stops the others. When a prompt's last row is there, the first token of every sample
 * is drawn from it; then the samples take seats as these fall free. Every number is independent of all that
 * (device.h), so none of the scheduling below can be seen in a result.
 *
 * Blocks. A part holds its prompt's blocks until its last sample is seated. A seat shares the full ones and has a copy
 * of the partly filled tail; the last sample takes over the part's own holds, tail included, without a copy.
 *
 * The pool always suffices, so nothing is ever preempted. Let L = batch_limit and B = blocks of max_positions. A part
 * is opened only while the unfinished samples of all open parts are fewer than L, and parts are filled and seated in
 * the order of opening. So all parts but the newest have together fewer than L unfinished samples, and
 * (1) parts without a seat yet + seats <= L: each part without a seat has an unfinished sample of its own, the newest
 *     part is unseated with one such sample counted, or seated within the L seats;
 * (2) only the newest part can have both seats and samples without one: any other part's samples find seats at once.
 * A part without a seat holds at most the B blocks of its prompt. A part with s >= 1 seats holds F full blocks of its
 * prompt once, each seat at most B - F more, and its own tail only while samples wait: F + s (B - F) <= s B, plus 1
 * for the newest part at most. Together with (1): at most L B + 1 blocks. */
#include "rollout/rollout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rollout/batch.h"
#include "rollout/draw.h"
#include "rollout/kv_blocks.h"
#include "rollout/repeat.h"
#include "rollout/request.h"
#include "rrl/group.h"

enum { PREFILL_ROWS = 256, UNFINISHED = -1 };
static const uint32_t PROMPT_SAMPLE = 0xffffffffu; /* dropout of prompt rows, slot.h */

/* A request in work. */
typedef struct {
    const rrl_request *request; /* NULL = free */
    int64_t index;              /* of the request, for messages */
    int32_t prefilled;          /* prompt tokens computed */
    int32_t unfinished;         /* samples without their last token */
    int32_t waiting;            /* unfinished samples without a seat */
    int32_t next;               /* no sample below this one waits */
    int32_t n_blocks;           /* of the prompt, held by the part itself */
    int32_t *table;             /* [stride] */
    uint32_t stream[2], dropout_stream[2];
    int32_t *tokens;   /* [count, max_tokens] */
    float *logprobs;   /* [count, max_tokens] */
    int32_t *n_tokens; /* [count] */
    int32_t *finish;   /* [count], UNFINISHED until known */
} part;

/* A decoding sequence. */
typedef struct {
    int32_t part; /* -1 = free */
    int32_t sample;
    int32_t n_blocks;
    int32_t *table; /* [stride] */
} seat;

struct rrl_rollout {
    rrl_model *model;
    rrl_device *device;
    int32_t batch_limit, max_positions, stride;
    rrl_kv_pool pool;
    rrl_kv_blocks *blocks;
    rrl_workspace *workspace;
    rrl_step_batch *batch;
    rrl_drawer *drawer;
    rrl_repeat *repeat;
    part *parts;     /* [batch_limit] */
    int32_t *queue;  /* [batch_limit] open parts, oldest first */
    int32_t n_queue;
    seat *seats;     /* [batch_limit] */
    int32_t *order;  /* [batch_limit] seats in the order of their rows in a batch */
    int32_t *tables; /* [2 * batch_limit, stride]: of parts, then of seats */
    /* device [2 * batch_limit, max_positions]: prompt and completion so far of parts, then of seats; only those with a
     * repetition penalty use theirs */
    int32_t *history;
    int32_t *copy_from, *copy_to;               /* [batch_limit] tails to copy */
    int32_t *device_copy_from, *device_copy_to; /* the same on the device */
    int32_t n_copies;
    int64_t unfinished; /* samples of all open parts */
    rrl_draw *draws;
    size_t n_draws, draws_capacity;
    rrl_rollout_counters counters;
};

/* One call of rrl_rollout_run. */
typedef struct {
    rrl_rollout *r;
    rrl_adapter *const *adapters;
    int32_t n_adapters;
    const rrl_request *requests;
    int64_t n, next;
    rrl_rollout_done done;
    void *context;
} run;

static int32_t blocks_of(int32_t positions) {
    return positions / RRL_KV_BLOCK + (positions % RRL_KV_BLOCK != 0);
}

static int32_t pool_blocks(int32_t batch_limit, int32_t max_positions) {
    return batch_limit * blocks_of(max_positions) + 1;
}

static int32_t context_of(const rrl_model_config *c, int32_t max_positions) {
    return max_positions < c->max_positions ? max_positions : c->max_positions;
}

/* --- opening and closing */

static rrl_status open_host(rrl_rollout *r) {
    const size_t n = (size_t)r->batch_limit, stride = (size_t)r->stride;
    RRL_TRY(rrl_alloc(&r->parts, n, sizeof *r->parts, "rollout parts"));
    RRL_TRY(rrl_alloc(&r->queue, n, sizeof *r->queue, "rollout queue"));
    RRL_TRY(rrl_alloc(&r->seats, n, sizeof *r->seats, "rollout seats"));
    RRL_TRY(rrl_alloc(&r->order, n, sizeof *r->order, "order of seats"));
    RRL_TRY(rrl_alloc(&r->tables, 2 * n * stride, sizeof *r->tables, "block tables"));
    RRL_TRY(rrl_alloc(&r->copy_from, n, sizeof *r->copy_from, "block copies"));
    RRL_TRY(rrl_alloc(&r->copy_to, n, sizeof *r->copy_to, "block copies"));
    for (size_t i = 0; i < n; i++) {
        r->parts[i].table = r->tables + i * stride;
        r->seats[i].table = r->tables + (n + i) * stride;
        r->seats[i].part = -1;
        r->order[i] = (int32_t)i;
    }
    return RRL_OK;
}

static rrl_status open_device(rrl_rollout *r) {
    rrl_device *d = r->device;
    const size_t n = (size_t)r->batch_limit, word = sizeof(int32_t);
    const int32_t n_blocks = pool_blocks(r->batch_limit, r->max_positions);
    const int32_t max_rows = r->batch_limit + PREFILL_ROWS;
    r->counters.pool_blocks = n_blocks;
    RRL_TRY(rrl_kv_pool_open(&r->pool, r->model, n_blocks));
    RRL_TRY(rrl_kv_blocks_open(&r->blocks, n_blocks));
    RRL_TRY(rrl_workspace_open(&r->workspace, r->model, max_rows));
    RRL_TRY(rrl_step_batch_open(&r->batch, d, max_rows, r->batch_limit, r->stride));
    RRL_TRY(rrl_drawer_open(&r->drawer, r->model, r->batch_limit));
    RRL_TRY(rrl_repeat_open(&r->repeat, d));
    RRL_TRY(d->ops->alloc(d, (void **)&r->history, 2 * n * (size_t)r->max_positions * word, "token history"));
    RRL_TRY(d->ops->alloc(d, (void **)&r->device_copy_from, n * word, "block copies"));
    return d->ops->alloc(d, (void **)&r->device_copy_to, n * word, "block copies");
}

rrl_status rrl_rollout_open(rrl_rollout **out, rrl_model *m, int32_t batch_limit, int32_t max_positions) {
    rrl_status rc;
    rrl_rollout *r = NULL;
    if (batch_limit < 1 || max_positions < 2)
        return RRL_FAIL(RRL_ERR_RANGE, "rollout: batch_limit %d, max_positions %d; at least 1 and 2", batch_limit,
                        max_positions);
    const int32_t context = context_of(rrl_model_dims(m), max_positions);
    if (((int64_t)batch_limit + 1) * blocks_of(context) > INT32_MAX)
        return RRL_FAIL(RRL_ERR_RANGE, "rollout: batch_limit %d with %d positions is too large", batch_limit, context);
    RRL_GOTO(rrl_alloc(&r, 1, sizeof *r, "rollout"));
    r->model = m;
    r->device = rrl_model_device(m);
    r->batch_limit = batch_limit;
    r->max_positions = context;
    r->stride = blocks_of(context);
    RRL_GOTO(open_host(r));
    RRL_GOTO(open_device(r));
    *out = r;
    r = NULL;
done:
    rrl_rollout_close(&r);
    return rc;
}

void rrl_rollout_close(rrl_rollout **out) {
    rrl_rollout *r = *out;
    if (!r) return;
    rrl_device *d = r->device;
    if (r->device_copy_to) d->ops->free(d, r->device_copy_to);
    if (r->device_copy_from) d->ops->free(d, r->device_copy_from);
    if (r->history) d->ops->free(d, r->history);
    rrl_repeat_close(&r->repeat);
    rrl_drawer_close(&r->drawer);
    rrl_step_batch_close(&r->batch);
    rrl_workspace_close(&r->workspace);
    rrl_kv_blocks_close(&r->blocks);
    if (r->pool.data) rrl_kv_pool_close(&r->pool, r->model);
    free(r->parts);
    free(r->queue);
    free(r->seats);
    free(r->order);
    free(r->tables);
    free(r->copy_from);
    free(r->copy_to);
    free(r->draws);
    free(r);
    *out = NULL;
}

size_t rrl_rollout_bytes(const rrl_model_config *c, rrl_dtype kv, int32_t batch_limit, int32_t max_positions) {
    const int32_t context = context_of(c, max_positions), rows = batch_limit + PREFILL_ROWS;
    return (size_t)pool_blocks(batch_limit, context) * rrl_kv_block_bytes(c, kv) + rrl_workspace_bytes(c, rows) +
           rrl_step_batch_bytes(rows, batch_limit, blocks_of(context)) + rrl_drawer_bytes(c, batch_limit) +
           2 * (size_t)batch_limit * ((size_t)context + 1) * sizeof(int32_t);
}

const rrl_rollout_counters *rrl_rollout_counts(const rrl_rollout *r) {
    return &r->counters;
}

/* --- parts and seats */

static void drop_blocks(rrl_rollout *r, const int32_t *table, int32_t *n_blocks) {
    for (int32_t i = 0; i < *n_blocks; i++) rrl_kv_blocks_drop(r->blocks, table[i]);
    *n_blocks = 0;
}

/* Blocks so that position `last` has a place. */
static rrl_status extend(rrl_rollout *r, int32_t *table, int32_t *n_blocks, int32_t last) {
    while (*n_blocks <= last / RRL_KV_BLOCK) {
        RRL_TRY(rrl_kv_blocks_take(r->blocks, &table[*n_blocks]));
        ++*n_blocks;
    }
    return RRL_OK;
}

static bool penalised(const rrl_request *q) {
    return q->sampling.repetition_penalty != 1;
}

/* History of part i, or of seat i as number batch_limit + i. */
static int32_t *history_of(const rrl_rollout *r, int32_t number) {
    return r->history + (size_t)number * (size_t)r->max_positions;
}

static rrl_status put_history(rrl_rollout *r, int32_t number, int32_t at, const int32_t *tokens, int32_t n) {
    return r->device->ops->upload(r->device, history_of(r, number) + at, tokens, (size_t)n * sizeof *tokens);
}

static void free_part(rrl_rollout *r, part *p) {
    drop_blocks(r, p->table, &p->n_blocks);
    free(p->tokens);
    free(p->logprobs);
    free(p->n_tokens);
    free(p->finish);
    *p = (part){.table = p->table};
}

static void free_seat(rrl_rollout *r, seat *s) {
    drop_blocks(r, s->table, &s->n_blocks);
    s->part = -1;
}

static rrl_status open_part(run *u) {
    rrl_rollout *r = u->r;
    const rrl_request *q = &u->requests[u->next];
    int32_t slot = 0;
    while (r->parts[slot].request) slot++; /* one is free: every open part has an unfinished sample */
    part *p = &r->parts[slot];
    const size_t count = (size_t)q->count, tokens = count * (size_t)q->sampling.max_tokens;
    p->request = q;
    p->index = u->next++;
    p->unfinished = p->waiting = q->count;
    r->unfinished += q->count;
    r->queue[r->n_queue++] = slot;

    rrl_rng_key dropout = q->key;
    dropout.purpose = RRL_RNG_DROPOUT;
    rrl_rng_stream(p->stream, &q->key);
    rrl_rng_stream(p->dropout_stream, &dropout);
    RRL_TRY(rrl_alloc(&p->tokens, tokens, sizeof *p->tokens, "completions"));
    RRL_TRY(rrl_alloc(&p->logprobs, tokens, sizeof *p->logprobs, "log-probs"));
    RRL_TRY(rrl_alloc(&p->n_tokens, count, sizeof *p->n_tokens, "completion lengths"));
    RRL_TRY(rrl_alloc(&p->finish, count, sizeof *p->finish, "finish reasons"));
    for (size_t i = 0; i < count; i++) p->finish[i] = UNFINISHED;
    return penalised(q) ? put_history(r, slot, 0, q->prompt, q->n_prompt) : RRL_OK;
}

/* Give sample `sample` of part `slot` the free seat `number`. */
static rrl_status take_seat(rrl_rollout *r, int32_t slot, int32_t sample, int32_t number) {
    part *p = &r->parts[slot];
    seat *s = &r->seats[number];
    const rrl_request *q = p->request;
    const int32_t full = q->n_prompt / RRL_KV_BLOCK;
    *s = (seat){.part = slot, .sample = sample, .table = s->table};
    if (--p->waiting == 0) { /* the last one: the part's holds become the seat's */
        memcpy(s->table, p->table, (size_t)p->n_blocks * sizeof *s->table);
        s->n_blocks = p->n_blocks;
        p->n_blocks = 0;
    } else {
        for (; s->n_blocks < full; s->n_blocks++) {
            s->table[s->n_blocks] = p->table[s->n_blocks];
            rrl_kv_blocks_share(r->blocks, s->table[s->n_blocks]);
        }
        if (p->n_blocks > full) {
            RRL_TRY(rrl_kv_blocks_take(r->blocks, &s->table[full]));
            s->n_blocks++;
            r->copy_from[r->n_copies] = p->table[full];
            r->copy_to[r->n_copies++] = s->table[full];
        }
    }
    if (!penalised(q)) return RRL_OK;
    RRL_TRY(put_history(r, r->batch_limit + number, 0, q->prompt, q->n_prompt));
    return put_history(r, r->batch_limit + number, q->n_prompt,
                       p->tokens + (size_t)sample * (size_t)q->sampling.max_tokens, p->n_tokens[sample]);
}

/* First free seat from `number` on; batch_limit if there is none. */
static int32_t free_seat_from(const rrl_rollout *r, int32_t number) {
    while (number < r->batch_limit && r->seats[number].part >= 0) number++;
    return number;
}

/* Seat waiting samples of prompts that are complete, oldest part first, while seats are free. A part whose prompt is
 * not complete keeps its place in the order: see the proof above. */
static rrl_status fill_seats(rrl_rollout *r) {
    rrl_device *d = r->device;
    int32_t number = free_seat_from(r, 0);
    r->n_copies = 0;
    for (int32_t i = 0; i < r->n_queue && number < r->batch_limit; i++) {
        part *p = &r->parts[r->queue[i]];
        if (p->prefilled < p->request->n_prompt) break;
        while (p->waiting > 0 && number < r->batch_limit) {
            while (p->finish[p->next] != UNFINISHED) p->next++;
            RRL_TRY(take_seat(r, r->queue[i], p->next++, number));
            number = free_seat_from(r, number);
        }
    }
    if (r->n_copies == 0) return RRL_OK;
    RRL_TRY(d->ops->upload(d, r->device_copy_from, r->copy_from, (size_t)r->n_copies * sizeof *r->copy_from));
    RRL_TRY(d->ops->upload(d, r->device_copy_to, r->copy_to, (size_t)r->n_copies * sizeof *r->copy_to));
    return d->ops->kv_copy(d, &r->pool, r->device_copy_from, r->device_copy_to, r->n_copies);
}

/* --- a step */

static rrl_status add_draw(rrl_rollout *r, int32_t row, int32_t slot, int32_t sample, int32_t number) {
    const part *p = &r->parts[slot];
    const rrl_request *q = p->request;
    const int32_t drawn = p->n_tokens[sample];
    RRL_TRY(rrl_grow(&r->draws, &r->draws_capacity, r->n_draws + 1, sizeof *r->draws, "draws"));
    rrl_draw *w = &r->draws[r->n_draws++];
    *w = (rrl_draw){.row = row, .part = slot, .sample = sample, .seat = number};
    w->settings = (rrl_sample_row){.temperature = (float)q->sampling.temperature,
                                   .top_p = (float)q->sampling.top_p,
                                   .top_k = q->sampling.top_k,
                                   .repetition_penalty = (float)q->sampling.repetition_penalty,
                                   .key = {p->stream[0], p->stream[1]},
                                   .sample = (uint32_t)(q->first + sample),
                                   .attempt = q->key.attempt,
                                   .position = (uint32_t)drawn};
    if (penalised(q)) {
        w->settings.history = history_of(r, number < 0 ? slot : r->batch_limit + number);
        w->settings.n_history = q->n_prompt + drawn;
    }
    return RRL_OK;
}

/* By adapter, then by part. */
static bool stands_before(const rrl_rollout *r, int32_t a, int32_t b) {
    const int32_t p = r->seats[a].part, q = r->seats[b].part;
    if (p < 0 || q < 0) return q < 0 && p >= 0;
    const int32_t with = r->parts[p].request->adapter, other = r->parts[q].request->adapter;
    return with != other ? with < other : p < q;
}

/* Sequences that share an adapter or a prompt get neighbouring rows, so that what they share is read once from memory.
 * The order of the step before is sorted but for a few seats. */
static void sort_seats(rrl_rollout *r) {
    for (int32_t i = 1; i < r->batch_limit; i++) {
        const int32_t number = r->order[i];
        int32_t at = i;
        for (; at > 0 && stands_before(r, number, r->order[at - 1]); at--) r->order[at] = r->order[at - 1];
        r->order[at] = number;
    }
}

/* One row, its newest token, of each seated sequence with this dropout. */
static rrl_status add_sequences(rrl_rollout *r, float dropout) {
    for (int32_t at = 0; at < r->batch_limit; at++) {
        const int32_t i = r->order[at];
        seat *s = &r->seats[i];
        if (s->part < 0) continue;
        const part *p = &r->parts[s->part];
        const rrl_request *q = p->request;
        if (q->dropout != dropout) continue;
        const int32_t newest = p->n_tokens[s->sample] - 1, position = q->n_prompt + newest;
        const int32_t token = p->tokens[(size_t)s->sample * (size_t)q->sampling.max_tokens + (size_t)newest];
        RRL_TRY(extend(r, s->table, &s->n_blocks, position));
        rrl_step_batch_begin(r->batch, q->adapter, s->table, p->dropout_stream, (uint32_t)(q->first + s->sample));
        RRL_TRY(add_draw(r, rrl_step_batch_row(r->batch, token, position), s->part, s->sample, i));
    }
    return RRL_OK;
}

/* The next rows of prompts with this dropout, *budget at most; a completed prompt is drawn from for every sample. */
static rrl_status add_prompts(rrl_rollout *r, float dropout, int32_t *budget) {
    for (int32_t i = 0; i < r->n_queue && *budget > 0; i++) {
        const int32_t slot = r->queue[i];
        part *p = &r->parts[slot];
        const rrl_request *q = p->request;
        int32_t n = q->n_prompt - p->prefilled, row = 0;
        if (n == 0 || q->dropout != dropout) continue;
        if (n > *budget) n = *budget;
        *budget -= n;
        RRL_TRY(extend(r, p->table, &p->n_blocks, p->prefilled + n - 1));
        rrl_step_batch_begin(r->batch, q->adapter, p->table, p->dropout_stream, PROMPT_SAMPLE);
        for (int32_t k = 0; k < n; k++, p->prefilled++)
            row = rrl_step_batch_row(r->batch, q->prompt[p->prefilled], p->prefilled);
        r->counters.prefill_tokens += n;
        for (int32_t sample = 0; p->prefilled == q->n_prompt && sample < q->count; sample++)
            RRL_TRY(add_draw(r, row, slot, sample, -1));
    }
    return RRL_OK;
}

static bool is_end(const rrl_model_config *c, int32_t token) {
    for (int32_t i = 0; i < c->n_eos; i++)
        if (c->eos[i] == token) return true;
    return false;
}

/* Append a drawn token to its completion; the sequence ends with an end token or with max_tokens of them. */
static rrl_status take_token(rrl_rollout *r, const rrl_draw *w) {
    part *p = &r->parts[w->part];
    const rrl_request *q = p->request;
    const int32_t n = p->n_tokens[w->sample];
    const size_t at = (size_t)w->sample * (size_t)q->sampling.max_tokens + (size_t)n;
    if (!isfinite(w->logprob))
        return RRL_FAIL(RRL_ERR_NONFINITE,
                        "rollout request %" PRId64 ", sample %d, token %d: log-prob is %g; the model's weights or the "
                        "adapter are not finite or too large",
                        p->index, q->first + w->sample, n, (double)w->logprob);
    p->tokens[at] = w->token;
    p->logprobs[at] = w->logprob;
    p->n_tokens[w->sample] = n + 1;
    r->counters.decode_rows++;

    const bool end = is_end(rrl_model_dims(r->model), w->token);
    if (end || n + 1 == q->sampling.max_tokens) {
        p->finish[w->sample] = end ? RRL_FINISH_EOS : RRL_FINISH_LENGTH;
        p->unfinished--;
        r->unfinished--;
        r->counters.completions++;
        if (w->seat >= 0)
            free_seat(r, &r->seats[w->seat]);
        else
            p->waiting--;
        return RRL_OK;
    }
    if (w->seat < 0 || !penalised(q)) return RRL_OK;
    return put_history(r, r->batch_limit + w->seat, q->n_prompt + n, &w->token, 1);
}

/* A pass that is ready: its arrays are on the device. */
typedef struct {
    rrl_rollout *r;
    const rrl_forward *f;
    size_t n_draws; /* of the first call of the drawer */
    rrl_tensor hidden;
} ready_pass;

static rrl_status enqueue(void *context) {
    ready_pass *p = context;
    RRL_TRY(rrl_model_forward(&p->hidden, p->r->model, p->r->workspace, p->f));
    return rrl_drawer_enqueue(p->r->drawer, p->n_draws, p->r->workspace, p->hidden);
}

/* Forward and draws. Where all rows are one a sequence and the drawer takes them at once, as in decoding, this may be a
 * step recorded before: batch and drawer put their arrays where they were. */
static rrl_status compute(rrl_rollout *r, const rrl_forward *f, float dropout) {
    const size_t most = rrl_drawer_limit(r->drawer);
    ready_pass p = {.r = r, .f = f, .n_draws = r->n_draws < most ? r->n_draws : most};
    const rrl_repeat_shape shape = {f->batch.n_rows, (int32_t)p.n_draws, dropout};
    RRL_TRY(rrl_drawer_upload(r->drawer, r->draws, p.n_draws));
    if (f->batch.n_rows == f->batch.n_seqs && p.n_draws == r->n_draws)
        RRL_TRY(rrl_repeat_step(r->repeat, shape, enqueue, &p));
    else
        RRL_TRY(enqueue(&p));
    RRL_TRY(rrl_drawer_download(r->drawer, r->draws, p.n_draws));
    for (size_t first = p.n_draws, n; first < r->n_draws; first += n) {
        n = r->n_draws - first < most ? r->n_draws - first : most;
        RRL_TRY(rrl_drawer_upload(r->drawer, r->draws + first, n));
        RRL_TRY(rrl_drawer_enqueue(r->drawer, n, r->workspace, p.hidden));
        RRL_TRY(rrl_drawer_download(r->drawer, r->draws + first, n));
    }
    return RRL_OK;
}

/* The rows of a step that share one dropout probability, which a forward pass has only one of. */
static rrl_status pass(run *u, float dropout, int32_t *budget) {
    rrl_rollout *r = u->r;
    rrl_forward f = {.pool = &r->pool, .adapters = u->adapters, .n_adapters = u->n_adapters};
    rrl_step_batch_clear(r->batch);
    r->n_draws = 0;
    RRL_TRY(add_sequences(r, dropout));
    RRL_TRY(add_prompts(r, dropout, budget));
    if (rrl_step_batch_rows(r->batch) == 0) return RRL_OK;
    r->counters.model_rows += rrl_step_batch_rows(r->batch);
    RRL_TRY(rrl_step_batch_upload(r->batch, &f, dropout));
    RRL_TRY(compute(r, &f, dropout));
    for (size_t i = 0; i < r->n_draws; i++) RRL_TRY(take_token(r, &r->draws[i]));
    return RRL_OK;
}

static float dropout_at(const rrl_rollout *r, int32_t i) {
    return r->parts[r->queue[i]].request->dropout;
}

static rrl_status step(run *u) {
    rrl_rollout *r = u->r;
    int32_t budget = PREFILL_ROWS;
    sort_seats(r);
    for (int32_t i = 0; i < r->batch_limit; i++)
        if (r->seats[i].part >= 0) {
            r->counters.decode_steps++;
            break;
        }
    for (int32_t i = 0; i < r->n_queue; i++) { /* a pass for each probability, in practice one */
        bool seen = false;
        for (int32_t j = 0; j < i; j++) seen = seen || dropout_at(r, j) == dropout_at(r, i);
        if (!seen) RRL_TRY(pass(u, dropout_at(r, i), &budget));
    }
    r->counters.used_blocks = rrl_kv_blocks_used(r->blocks);
    r->counters.peak_blocks = rrl_kv_blocks_peak(r->blocks);
    r->counters.recorded = rrl_repeat_recorded(r->repeat);
    r->counters.repeated = rrl_repeat_repeated(r->repeat);
    return RRL_OK;
}

/* --- handing over */

/* Close the gaps between completions and call back. */
static rrl_status deliver(run *u, part *p) {
    const rrl_request *q = p->request;
    size_t to = 0;
    for (int32_t i = 0; i < q->count; i++) {
        const size_t from = (size_t)i * (size_t)q->sampling.max_tokens, n = (size_t)p->n_tokens[i];
        memmove(p->tokens + to, p->tokens + from, n * sizeof *p->tokens);
        memmove(p->logprobs + to, p->logprobs + from, n * sizeof *p->logprobs);
        to += n;
    }
    const rrl_completions c = {p->tokens, p->logprobs, p->n_tokens, p->finish};
    return u->done(u->context, q, &c);
}

/* Deliver and forget the parts whose samples have all ended. */
static rrl_status retire(run *u) {
    rrl_rollout *r = u->r;
    rrl_status rc = RRL_OK;
    int32_t kept = 0;
    for (int32_t i = 0; i < r->n_queue; i++) {
        part *p = &r->parts[r->queue[i]];
        if (rc == RRL_OK && p->unfinished == 0) {
            rc = deliver(u, p);
            free_part(r, p);
        } else {
            r->queue[kept++] = r->queue[i];
        }
    }
    r->n_queue = kept;
    return rc;
}

/* Back to an empty state, after success (nothing left to do) or failure. */
static void clear(rrl_rollout *r) {
    for (int32_t i = 0; i < r->batch_limit; i++)
        if (r->seats[i].part >= 0) free_seat(r, &r->seats[i]);
    for (int32_t i = 0; i < r->n_queue; i++) free_part(r, &r->parts[r->queue[i]]);
    r->n_queue = 0;
    r->unfinished = 0;
    r->counters.used_blocks = rrl_kv_blocks_used(r->blocks);
}

rrl_status rrl_rollout_run(rrl_rollout *r, rrl_adapter *const *adapters, int32_t n_adapters,
                           const rrl_request *requests, int64_t n, rrl_rollout_done done, void *context,
                           void (*beat)(void *context)) {
    rrl_status rc = RRL_OK;
    run u = {r, adapters, n_adapters, requests, n, 0, done, context};
    const int32_t vocab = rrl_model_dims(r->model)->vocab;
    for (int64_t i = 0; i < n; i++) RRL_TRY(rrl_request_check(&requests[i], i, vocab, r->max_positions, n_adapters));
    while (u.next < n || r->n_queue > 0) {
        while (u.next < n && r->unfinished < r->batch_limit) RRL_GOTO(open_part(&u));
        RRL_GOTO(step(&u));
        RRL_GOTO(retire(&u));
        RRL_GOTO(fill_seats(r));
        if (beat) beat(context);
    }
done:
    rrl_repeat_forget(r->repeat); /* the adapters may go */
    clear(r);
    return rc;
}

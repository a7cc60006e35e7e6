/* Packing of a slot: rows, block tables, cache writes and scored rows, on the host. No numbers are computed
 * here. */
#include "model/slot_parts.h"

#include "base/random.h"

int32_t rrl_slot_stride(int32_t max_rows) {
    return max_rows / RRL_KV_BLOCK + 1;
}

int32_t rrl_slot_blocks(int32_t max_rows, int32_t max_seqs) {
    /* A sequence of n own rows touches at most n / RRL_KV_BLOCK + 2 blocks, its first one being shared in
     * part. */
    return max_rows / RRL_KV_BLOCK + 2 * (max_seqs + 1) + 1;
}

void rrl_slot_index_carve(rrl_slot_index *index, rrl_carver *carver, int32_t max_rows, int32_t max_seqs) {
    const size_t word = sizeof(int32_t), rows = (size_t)max_rows, seqs = (size_t)max_seqs + 1;
    const size_t writes = rows + (RRL_KV_BLOCK - 1) * (size_t)max_seqs;
    rrl_slot_index x;
    x.token = rrl_carve_bytes(carver, rows * word);
    x.position = rrl_carve_bytes(carver, rows * word);
    x.row_seq = rrl_carve_bytes(carver, rows * word);
    x.seq_row = rrl_carve_bytes(carver, (seqs + 1) * word);
    x.adapter = rrl_carve_bytes(carver, seqs * word);
    x.parent = rrl_carve_bytes(carver, seqs * word);
    x.table = rrl_carve_bytes(carver, seqs * (size_t)rrl_slot_stride(max_rows) * word);
    x.write_row = rrl_carve_bytes(carver, writes * word);
    x.write_block = rrl_carve_bytes(carver, writes * word);
    x.write_at = rrl_carve_bytes(carver, writes * word);
    x.score_row = rrl_carve_bytes(carver, rows * word);
    x.target = rrl_carve_bytes(carver, rows * word);
    x.temperature = rrl_carve_bytes(carver, rows * word);
    x.seq_key = rrl_carve_bytes(carver, 2 * seqs * word);
    x.seq_sample = rrl_carve_bytes(carver, seqs * word);
    if (index) *index = x;
}

static rrl_status check_tokens(const int32_t *token, int64_t n, const rrl_model_config *c, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= c->vocab)
            return RRL_FAIL(RRL_ERR_RANGE, "token %lld of the %s is %d, expected 0 to %d", (long long)i, what,
                            token[i], c->vocab - 1);
    return RRL_OK;
}

static rrl_status check_slot(const rrl_slot_engine *e, const rrl_slot *s) {
    const rrl_model_config *c = &e->m->config;
    if (s->n_prompt < 1) return RRL_FAIL(RRL_ERR_RANGE, "a slot without a prompt");
    if (s->n_seqs < 1 || s->n_seqs > e->most.max_seqs)
        return RRL_FAIL(RRL_ERR_RANGE, "a slot of %d completions in an engine for 1 to %d", s->n_seqs,
                        e->most.max_seqs);
    int64_t total = 0;
    for (int32_t i = 0; i < s->n_seqs; i++) {
        if (s->n_tokens[i] < 1) return RRL_FAIL(RRL_ERR_RANGE, "completion %d of a slot has no tokens", i);
        if ((int64_t)s->n_prompt + s->n_tokens[i] > c->max_positions)
            return RRL_FAIL(RRL_ERR_RANGE,
                            "prompt and completion %d have %d + %d tokens, the model has %d positions", i,
                            s->n_prompt, s->n_tokens[i], c->max_positions);
        total += s->n_tokens[i];
    }
    if (s->n_prompt + total > e->most.max_rows)
        return RRL_FAIL(RRL_ERR_RANGE, "a slot of %lld tokens in an engine for %d",
                        (long long)(s->n_prompt + total), e->most.max_rows);
    if (!(s->temperature > 0))
        return RRL_FAIL(RRL_ERR_RANGE, "temperature %g of a slot", (double)s->temperature);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return RRL_FAIL(RRL_ERR_RANGE, "dropout %g", (double)s->dropout);
    RRL_TRY(check_tokens(s->prompt, s->n_prompt, c, "prompt"));
    return check_tokens(s->tokens, total, c, "completions");
}

/* Counters while the arrays are filled. */
typedef struct {
    int32_t rows, blocks, writes, scores;
} counts;

static void add_write(rrl_slot_index *x, counts *n, int32_t row, int32_t block, int32_t at) {
    x->write_row[n->writes] = row;
    x->write_block[n->writes] = block;
    x->write_at[n->writes] = at;
    n->writes++;
}

/* Rows of one sequence: its tokens from position `first` on, each written to the sequence's own blocks. */
static void add_rows(rrl_slot_engine *e, counts *n, int32_t seq, const int32_t *token, int32_t n_rows,
                     int32_t first) {
    rrl_slot_index *x = &e->host;
    int32_t *table = x->table + (int64_t)seq * e->stride;
    x->seq_row[seq] = n->rows;
    if (n_rows > 0) /* positions before the first block of its own are the prompt's, shared */
        for (int32_t b = first / RRL_KV_BLOCK; b <= (first + n_rows - 1) / RRL_KV_BLOCK; b++)
            table[b] = n->blocks++;
    for (int32_t i = 0; i < n_rows; i++) {
        const int32_t p = first + i;
        x->token[n->rows] = token[i];
        x->position[n->rows] = p;
        x->row_seq[n->rows] = seq;
        add_write(x, n, n->rows, table[p / RRL_KV_BLOCK], p % RRL_KV_BLOCK);
        n->rows++;
    }
    x->seq_row[seq + 1] = n->rows;
}

/* A completion's table starts with the prompt's full blocks; the prompt's rows of the partly filled one are
 * also written to the completion's own. */
static void share_prompt(rrl_slot_engine *e, counts *n, int32_t seq, int32_t n_prompt) {
    rrl_slot_index *x = &e->host;
    int32_t *table = x->table + (int64_t)seq * e->stride;
    const int32_t full = n_prompt / RRL_KV_BLOCK;
    for (int32_t b = 0; b < full; b++) table[b] = x->table[b];
    if (x->seq_row[seq] == x->seq_row[seq + 1])
        return; /* a completion of one token has no rows and no blocks */
    for (int32_t p = full * RRL_KV_BLOCK; p < n_prompt; p++)
        add_write(x, n, p, table[full], p % RRL_KV_BLOCK);
}

/* Token t is predicted by the row before it: the prompt's last for the first token. */
static void add_scores(rrl_slot_index *x, counts *n, int32_t seq, const rrl_slot *s, const int32_t *token) {
    for (int32_t t = 0; t < s->n_tokens[seq - 1]; t++) {
        x->score_row[n->scores] = t == 0 ? s->n_prompt - 1 : x->seq_row[seq] + t - 1;
        x->target[n->scores] = token[t];
        x->temperature[n->scores] = s->temperature;
        n->scores++;
    }
}

/* The stream of base/random.h; its draws are named by sample, module, iteration, position and element. */
static void fill_dropout_keys(rrl_slot_index *x, const rrl_slot *s) {
    const uint32_t seed[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
    const uint32_t name[4] = {RRL_RNG_DROPOUT, s->step, (uint32_t)s->question, (uint32_t)(s->question >> 32)};
    uint32_t stream[4];
    rrl_philox4x32(stream, name, seed);
    for (int32_t i = 0; i <= s->n_seqs; i++) {
        x->seq_key[2 * i] = stream[0];
        x->seq_key[2 * i + 1] = stream[1];
        x->seq_sample[i] = i == 0 ? (uint32_t)RRL_PROMPT_SAMPLE : s->samples[i - 1];
    }
}

rrl_status rrl_slot_pack(rrl_slot_engine *e, const rrl_slot *s, bool adapted) {
    RRL_TRY(check_slot(e, s));
    rrl_slot_index *x = &e->host;
    counts n = {0};
    const int32_t *token = s->tokens;
    for (int64_t i = 0; i < (int64_t)(s->n_seqs + 1) * e->stride; i++) x->table[i] = 0;
    add_rows(e, &n, 0, s->prompt, s->n_prompt, 0);
    for (int32_t seq = 1; seq <= s->n_seqs; seq++) {
        add_rows(e, &n, seq, token, s->n_tokens[seq - 1] - 1, s->n_prompt);
        share_prompt(e, &n, seq, s->n_prompt);
        add_scores(x, &n, seq, s, token);
        token += s->n_tokens[seq - 1];
    }
    for (int32_t seq = 0; seq <= s->n_seqs; seq++) {
        x->adapter[seq] = adapted ? 0 : -1;
        x->parent[seq] = seq == 0 ? -1 : 0;
    }
    if (s->dropout > 0) fill_dropout_keys(x, s);
    e->forward.batch.n_rows = n.rows;
    e->forward.batch.n_seqs = s->n_seqs + 1;
    e->forward.writes.n = n.writes;
    e->n_scores = n.scores;
    return RRL_OK;
}

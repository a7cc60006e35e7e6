/* The device as a whole: opening it, weights of other types, and results that do not depend on how rows are
 * cut into batches or where the keys lie. */
#include "check.h"

#include "device_inputs.h"

/* A prompt at once, in two pieces, token by token, and among other sequences with its blocks elsewhere: equal
 * bits. */
static void attention_is_invariant(const char *isa) {
    enum { N = 77, KV_HEADS = 2, HEADS = 6, DIM = 24, STRIDE = 8 };
    rrl_device *d = NULL;
    if (rrl_cpu_open(&d, isa, 2) != RRL_OK) return;
    rng g = {5};
    rrl_tensor q = tensor(&g, N, HEADS * DIM, 1), k = tensor(&g, N, KV_HEADS * DIM, 1),
               v = tensor(&g, N, KV_HEADS * DIM, 1);
    int32_t row[2 * N], block[2 * N], at[2 * N], table[3 * STRIDE] = {0};
    rrl_kv_pool pool = {numbers(&g, 2 * 9 * KV_HEADS * 2 * DIM * RRL_KV_BLOCK, 1), 2, 9, KV_HEADS, DIM, RRL_F32};
    /* sequence 0 in blocks 4 1 6; sequence 1 shares the first two and owns a copy of the last, block 8 */
    const int32_t own[3] = {4, 1, 6};
    for (int i = 0; i < 3; ++i) table[i] = table[STRIDE + i] = own[i];
    table[STRIDE + 2] = 8;
    for (int i = 0; i < N; ++i) {
        row[i] = i;
        block[i] = own[i / RRL_KV_BLOCK];
        at[i] = i % RRL_KV_BLOCK;
    }
    rrl_kv_writes w = {row, block, at, N};
    CHECK_OK(d->ops->kv_write(d, &pool, 1, &(rrl_kv_rows){.k = k, .v = v}, NULL, &w));
    CHECK_OK(d->ops->kv_copy(d, &pool, (const int32_t[]){6}, (const int32_t[]){8}, 1));
    rrl_kv_table t = {table, STRIDE};
    rrl_tensor whole = tensor(&g, N, HEADS * DIM, 1), other = tensor(&g, N, HEADS * DIM, 1), none = {0};
    int32_t position[N], zeros[N] = {0}, seq_row[2] = {0, N};
    for (int i = 0; i < N; ++i) position[i] = i;
    rrl_batch b = {N, 1, zeros, position, zeros, seq_row, zeros};
    CHECK_OK(d->ops->attention(d, whole, none, q, HEADS, &pool, 1, &t, &b, 0.2f));

    for (int step = 1; step <= 40; step += 39) {
        for (int first = 0; first < N; first += step) {
            int n = first + step < N ? step : N - first, offset = first * HEADS * DIM;
            int32_t rows_of[2] = {0, n};
            rrl_batch piece = {n, 1, zeros, position + first, zeros, rows_of, zeros};
            rrl_tensor part = {other.data + offset, n, HEADS * DIM},
                       q_part = {q.data + offset, n, HEADS * DIM};
            CHECK_OK(d->ops->attention(d, part, none, q_part, HEADS, &pool, 1, &t, &piece, 0.2f));
        }
        CHECK(memcmp(whole.data, other.data, sizeof(float) * N * HEADS * DIM) == 0);
    }
    /* the last 3 rows as sequence 1, behind 2 rows of sequence 0 */
    int32_t mixed_position[5] = {3, 4, N - 3, N - 2, N - 1}, mixed_seq[5] = {0, 0, 1, 1, 1},
            mixed_row[3] = {0, 2, 5};
    rrl_batch mixed = {5, 2, zeros, mixed_position, mixed_seq, mixed_row, zeros};
    rrl_tensor mq = tensor(&g, 5, HEADS * DIM, 1), mo = tensor(&g, 5, HEADS * DIM, 1);
    CHECK_OK(d->ops->gather(d, mq, q, mixed_position));
    CHECK_OK(d->ops->attention(d, mo, none, mq, HEADS, &pool, 1, &t, &mixed, 0.2f));
    CHECK_OK(d->ops->gather(d, mq, whole, mixed_position));
    CHECK(memcmp(mq.data, mo.data, sizeof(float) * 5 * HEADS * DIM) == 0);
    free(q.data);
    free(k.data);
    free(v.data);
    free(whole.data);
    free(other.data);
    free(mq.data);
    free(mo.data);
    free(pool.data);
    rrl_device_close(&d);
}

/* A pool of bf16 holds what a pool of f32 holds after `round`, so attention gives equal bits; and rounding is the nearest
 * of the two bf16 neighbours, the even one of two equally near. */
static void cache_of_either_type(const char *isa) {
    enum { N = 45, KV_HEADS = 2, HEADS = 4, DIM = 40 };
    rrl_device *d = NULL;
    if (rrl_cpu_open(&d, isa, 2) != RRL_OK) return;
    rng g = {6};
    rrl_tensor q = tensor(&g, N, HEADS * DIM, 1), k = tensor(&g, N, KV_HEADS * DIM, 1), none = {0};
    rrl_tensor v = tensor(&g, N, KV_HEADS * DIM, 1), out[3];
    int32_t row[N], block[N], at[N], zeros[N] = {0}, seq_row[2] = {0, N}, table[2] = {1, 0};
    for (int i = 0; i < N; ++i) row[i] = i, block[i] = table[i / RRL_KV_BLOCK], at[i] = i % RRL_KV_BLOCK;
    const rrl_batch b = {N, 1, zeros, row, zeros, seq_row, zeros};
    const rrl_kv_writes w = {row, block, at, N};
    const rrl_kv_table t = {table, 2};
    for (int type = 0; type < 3; ++type) { /* f32; bf16, which rounds by itself; f32 of rounded numbers */
        rrl_kv_pool pool = {numbers(&g, 2 * KV_HEADS * 2 * DIM * RRL_KV_BLOCK, 1), 1, 2, KV_HEADS, DIM, RRL_F32};
        out[type] = tensor(&g, N, HEADS * DIM, 1);
        if (type == 1) pool.dtype = RRL_BF16;
        const rrl_kv_rows in = {.k = k, .v = v, .dtype = type == 2 ? RRL_BF16 : RRL_F32};
        CHECK_OK(d->ops->kv_write(d, &pool, 0, &in, NULL, &w));
        CHECK_OK(d->ops->attention(d, out[type], none, q, HEADS, &pool, 0, &t, &b, 0.2f));
        free(pool.data);
    }
    CHECK(memcmp(out[0].data, out[1].data, sizeof(float) * N * HEADS * DIM) != 0);
    CHECK(memcmp(out[1].data, out[2].data, sizeof(float) * N * HEADS * DIM) == 0);
    float x[6] = {1.00390625f, 1.01171875f, 0x1.010002p0f, -0x1p-127f, 3.3895314e38f, 0.1f};
    const float nearest[6] = {1.0f, 1.015625f, 1.0078125f, -0.0f, 0x1.fep127f, 0.10009765625f};
    float cache[2 * 3 * RRL_KV_BLOCK];
    const rrl_kv_pool small = {cache, 1, 1, 1, 3, RRL_F32};
    rrl_kv_rows in = {.k = {x, 1, 3}, .v = {x + 3, 1, 3}};
    CHECK_OK(d->ops->kv_write(d, &small, 0, &in, NULL, &(rrl_kv_writes){zeros, zeros, zeros, 1}));
    CHECK(x[0] == 1.00390625f);
    in.dtype = RRL_BF16;
    CHECK_OK(d->ops->kv_write(d, &small, 0, &in, NULL, &(rrl_kv_writes){zeros, zeros, zeros, 1}));
    CHECK(memcmp(x, nearest, sizeof x) == 0);
    rrl_tensor all[] = {q, k, v, out[0], out[1], out[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i].data);
    rrl_device_close(&d);
}

/* A row of a product does not depend on the rows around it. */
static void rows_stand_alone(const char *isa) {
    enum { N = 53, OUT = 70, IN = 300 };
    rrl_device *d = NULL;
    if (rrl_cpu_open(&d, isa, 2) != RRL_OK) return;
    rng g = {9};
    rrl_weight *w = weight(d, &g, OUT, IN);
    rrl_tensor x = tensor(&g, N, IN, 1), y = tensor(&g, N, OUT, 1), one = tensor(&g, 1, OUT, 1);
    CHECK_OK(d->ops->linear(d, x, &(rrl_product){y, w, NULL}, 1, NULL));
    for (int i = 0; i < N; ++i) {
        CHECK_OK(d->ops->linear(d, (rrl_tensor){x.data + i * IN, 1, IN}, &(rrl_product){one, w, NULL}, 1, NULL));
        CHECK(memcmp(one.data, y.data + i * OUT, sizeof(float) * OUT) == 0);
    }
    free(x.data);
    free(y.data);
    free(one.data);
    d->ops->weight_free(d, &w);
    rrl_device_close(&d);
}

static void weights_of_other_types(void) {
    const uint16_t half[6] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555};
    const float half_value[6] = {1.0f, -2.0f, 0x1p-24f, 65504.0f, -0.0f, 0x1.554p-2f};
    const uint16_t brain[6] = {0x3f80, 0xc000, 0x0001, 0x7f7f, 0x8000, 0x3eab};
    const float brain_value[6] = {1.0f, -2.0f, 0x1p-133f, 0x1.fep127f, -0.0f, 0x1.56p-2f};
    rrl_device *d = NULL;
    CHECK_OK(rrl_cpu_open(&d, "portable", 1));
    for (int type = 0; type < 2; ++type) {
        rrl_weight *w = NULL;
        rrl_tensor y = {(float[6]){0}, 2, 3};
        int32_t token[2] = {0, 1};
        rrl_batch b = {.n_rows = 2, .token = token};
        CHECK_OK(d->ops->weight_pack(d, &w, type ? brain : half, type ? RRL_BF16 : RRL_F16, 2, 3));
        CHECK_EQ_INT(rrl_weight_rows(w), 2);
        CHECK_EQ_INT(rrl_weight_cols(w), 3);
        CHECK_OK(d->ops->embed(d, y, w, &b));
        CHECK(memcmp(y.data, type ? brain_value : half_value, 6 * sizeof(float)) == 0);
        d->ops->weight_free(d, &w);
    }
    rrl_device_close(&d);
}

static void opening(void) {
    rrl_device *d = NULL;
    CHECK_STATUS(rrl_cpu_open(&d, "sse9", 1), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "sse9") && strstr(rrl_error_message(), "portable"));
    CHECK_STATUS(rrl_cpu_open(&d, "auto", 0), RRL_ERR_CONFIG);
    CHECK(d == NULL);
    CHECK_OK(rrl_cpu_open(&d, "auto", 1));
    CHECK(strcmp(rrl_device_isa(d), "reference") != 0);
    CHECK_EQ_STR(rrl_device_numeric_path(d), "f32-asc");
    rrl_tensor y = {NULL, 1, 3}, x = {NULL, 1, 4};
    CHECK_STATUS(d->ops->add_rms_norm(d, y, y, x, NULL, 0), RRL_ERR_INTERNAL);
    rrl_device_close(&d);
    CHECK(d == NULL);
    rrl_device_close(&d);
}

int main(void) {
    opening();
    weights_of_other_types();
    static const char *const ISAS[] = {"reference", "portable", "avx2", "avx512"};
    for (int i = 0; i < 4; ++i) {
        attention_is_invariant(ISAS[i]);
        cache_of_either_type(ISAS[i]);
        rows_stand_alone(ISAS[i]);
    }
    return CHECK_DONE();
}

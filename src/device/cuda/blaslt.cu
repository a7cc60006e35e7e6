/* cuBLASLt is column-major: y^T [outputs, rows] = w^T x^T, so its A is our w and its B our x. */
#include "device/cuda/blaslt.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/memory.h"
}

constexpr int MOST_PLANS = 512;

/* A kind of product and its algorithm. */
typedef struct {
    int64_t rows, outputs, k; /* rows: the power of two that holds them */
    int kind;                 /* dtype, turned, accumulate, bias in bits */
    cublasLtMatmulAlgo_t algorithm;
} plan;

struct rrl_blaslt {
    cublasLtHandle_t handle;
    void *room;
    size_t room_bytes;
    bool any;
    plan *plans; /* [MOST_PLANS] */
    int n_plans;
};

/* Descriptors of one product; made anew for each, which costs no device work. */
typedef struct {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
} descriptors;

#define CUBLAS(call)                                                                                                   \
    do {                                                                                                               \
        cublasStatus_t s_ = (call);                                                                                    \
        if (s_ != CUBLAS_STATUS_SUCCESS) {                                                                             \
            rc = RRL_FAIL(RRL_ERR_DEVICE, "cuBLASLt, product of %lld x %lld by %lld: %s", (long long)p->rows,          \
                          (long long)p->k, (long long)p->outputs, cublasLtGetStatusString(s_));                        \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

rrl_status rrl_blaslt_open(rrl_blaslt **out, void *room, size_t room_bytes, bool any) {
    rrl_status rc = RRL_OK;
    rrl_blaslt *b = NULL;
    RRL_GOTO(rrl_alloc(&b, 1, sizeof *b, "cuBLASLt"));
    RRL_GOTO(rrl_alloc(&b->plans, MOST_PLANS, sizeof *b->plans, "cuBLASLt algorithms"));
    if (cublasLtCreate(&b->handle) != CUBLAS_STATUS_SUCCESS) {
        b->handle = NULL;
        rc = RRL_FAIL(RRL_ERR_DEVICE, "cuBLASLt cannot be opened");
        goto done;
    }
    b->room = room;
    b->room_bytes = room_bytes;
    b->any = any;
    *out = b;
    b = NULL;
done:
    rrl_blaslt_close(&b);
    return rc;
}

void rrl_blaslt_close(rrl_blaslt **b) {
    if (!b || !*b) return;
    if ((*b)->handle) cublasLtDestroy((*b)->handle);
    free((*b)->plans);
    free(*b);
    *b = NULL;
}

static void forget(descriptors *d) {
    if (d->operation) cublasLtMatmulDescDestroy(d->operation);
    if (d->a) cublasLtMatrixLayoutDestroy(d->a);
    if (d->b) cublasLtMatrixLayoutDestroy(d->b);
    if (d->c) cublasLtMatrixLayoutDestroy(d->c);
}

/* The descriptors of p with `rows` rows. */
static rrl_status describe(descriptors *d, const rrl_blaslt_product *p, int64_t rows) {
    rrl_status rc = RRL_OK;
    const cudaDataType_t type = p->dtype == RRL_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasOperation_t turn = p->turned ? CUBLAS_OP_N : CUBLAS_OP_T;
    const cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
    const uint64_t outputs = (uint64_t)p->outputs, k = (uint64_t)p->k;
    CUBLAS(cublasLtMatmulDescCreate(&d->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F)); /* f32 sums, no TF32 */
    CUBLAS(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn));
    if (p->bias) {
        const cudaDataType_t bias_type = CUDA_R_32F;
        CUBLAS(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias));
        CUBLAS(cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type,
                                              sizeof bias_type));
        CUBLAS(
            cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias));
    }
    CUBLAS(cublasLtMatrixLayoutCreate(&d->a, type, p->turned ? outputs : k, p->turned ? k : outputs, p->ldw));
    CUBLAS(cublasLtMatrixLayoutCreate(&d->b, type, k, (uint64_t)rows, p->ldx));
    CUBLAS(cublasLtMatrixLayoutCreate(&d->c, CUDA_R_32F, outputs, (uint64_t)rows, p->ldy));
done:
    return rc;
}

/* Ask for the best algorithm for the power of two that holds the rows. Without `any`, none that splits k and joins the
 * parts in whatever order they come: they are kept in the room and added in a step of their own, or k is not split. */
static rrl_status ask(plan *found, const rrl_blaslt *b, const rrl_blaslt_product *p) {
    rrl_status rc = RRL_OK;
    descriptors d = {};
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int n = 0;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* none is always among them */
    const uint32_t alignment = 16; /* of a row of x and y, not 256 as is taken for granted */
    static const cublasLtMatmulPreferenceAttributes_t ALIGNED[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    RRL_GOTO(describe(&d, p, found->rows));
    CUBLAS(cublasLtMatmulPreferenceCreate(&wish));
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &b->room_bytes,
                                                sizeof b->room_bytes));
    for (cublasLtMatmulPreferenceAttributes_t of : ALIGNED)
        CUBLAS(cublasLtMatmulPreferenceSetAttribute(wish, of, &alignment, sizeof alignment));
    if (!b->any)
        CUBLAS(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                    sizeof schemes));
    CUBLAS(cublasLtMatmulAlgoGetHeuristic(b->handle, d.operation, d.a, d.b, d.c, d.c, wish, 1, &result, &n));
    if (n < 1) CUBLAS(CUBLAS_STATUS_NOT_SUPPORTED);
    found->algorithm = result.algo;
done:
    if (wish) cublasLtMatmulPreferenceDestroy(wish);
    forget(&d);
    return rc;
}

static rrl_status find_plan(const plan **out, rrl_blaslt *b, const rrl_blaslt_product *p) {
    const int kind = (p->dtype == RRL_BF16) | p->turned << 1 | p->accumulate << 2 | (p->bias != NULL) << 3;
    plan wanted = {1, p->outputs, p->k, kind, {}};
    while (wanted.rows < p->rows) wanted.rows *= 2;
    for (int i = 0; i < b->n_plans; i++) {
        const plan *at = &b->plans[i];
        if (at->rows != wanted.rows || at->outputs != wanted.outputs || at->k != wanted.k || at->kind != kind) continue;
        *out = at;
        return RRL_OK;
    }
    if (b->n_plans == MOST_PLANS)
        return RRL_FAIL(RRL_ERR_INTERNAL, "more than %d kinds of products; MOST_PLANS of blaslt.cu", MOST_PLANS);
    RRL_TRY(ask(&wanted, b, p));
    b->plans[b->n_plans] = wanted;
    *out = &b->plans[b->n_plans++];
    return RRL_OK;
}

rrl_status rrl_blaslt_multiply(rrl_blaslt *b, const rrl_blaslt_product *p, cudaStream_t stream) {
    rrl_status rc = RRL_OK;
    descriptors d = {};
    const plan *chosen = NULL;
    const float one = 1.0f, start = p->accumulate ? 1.0f : 0.0f;
    RRL_GOTO(find_plan(&chosen, b, p));
    RRL_GOTO(describe(&d, p, p->rows));
    CUBLAS(cublasLtMatmul(b->handle, d.operation, &one, p->w, d.a, p->x, d.b, &start, p->y, d.c, p->y, d.c,
                          &chosen->algorithm, b->room, b->room_bytes, stream));
done:
    forget(&d);
    return rc;
}

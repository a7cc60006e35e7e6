/* Memory, weights, opening and closing of the CUDA back end. One stream a device: what is enqueued runs in order. */
#include "device/cuda/cuda_device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/blaslt.h"

extern "C" {
#include "base/memory.h"
}

/* --- memory */

rrl_status rrl_cuda_alloc(rrl_device *d, void **out, size_t bytes, const char *what) {
    rrl_status rc = RRL_OK;
    void *p = NULL;
    RRL_TRY(rrl_cuda_not_recording(rrl_cuda_of(d), "memory asked for"));
    cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1); /* aligned to 256 bytes */
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return RRL_FAIL(RRL_ERR_NOMEM, "GPU %d has no room for %zu bytes of %s", rrl_cuda_of(d)->index, bytes, what);
    }
    RRL_CUDA(e);
    RRL_CUDA(cudaMemsetAsync(p, 0, bytes ? bytes : 1, rrl_cuda_of(d)->stream));
    *out = p;
    p = NULL;
done:
    if (p) cudaFree(p);
    return rc;
}

void rrl_cuda_free(rrl_device *d, void *p) {
    rrl_cuda_of(d)->rounded.x = NULL;
    if (p) cudaFree(p); /* waits for the device */
}

rrl_status rrl_cuda_upload(rrl_device *d, void *to, const void *host, size_t bytes) {
    rrl_status rc = RRL_OK;
    RRL_TRY(rrl_cuda_not_recording(rrl_cuda_of(d), "an upload"));
    rrl_cuda_of(d)->rounded.x = NULL;
    if (bytes) RRL_CUDA(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, rrl_cuda_of(d)->stream));
done:
    return rc;
}

rrl_status rrl_cuda_sync(rrl_device *d) {
    rrl_status rc = RRL_OK;
    RRL_TRY(rrl_cuda_not_recording(rrl_cuda_of(d), "a wait"));
    RRL_CUDA(cudaStreamSynchronize(rrl_cuda_of(d)->stream));
done:
    return rc;
}

rrl_status rrl_cuda_download(rrl_device *d, void *host, const void *from, size_t bytes) {
    rrl_status rc = RRL_OK;
    RRL_TRY(rrl_cuda_not_recording(rrl_cuda_of(d), "a download"));
    if (bytes) RRL_CUDA(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, rrl_cuda_of(d)->stream));
    return rrl_cuda_sync(d);
done:
    return rc;
}

/* --- weights: row-major, in the type of the device's products */

/* src [n] converted in pieces through a host buffer, or as it is where the type is right already. */
static rrl_status fill_weight(rrl_device *d, void *to, const void *src, rrl_dtype dtype, int64_t n) {
    constexpr int PIECE = 1 << 20;
    const rrl_dtype kind = rrl_cuda_of(d)->dtype;
    const size_t width = kind == RRL_BF16 ? 2 : 4;
    rrl_status rc = RRL_OK;
    char *host = NULL;
    if (dtype == kind) return rrl_cuda_upload(d, to, src, (size_t)n * width);
    RRL_GOTO(rrl_alloc(&host, PIECE, width, "weights on their way"));
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        for (int64_t i = 0; i < count; i++) {
            const float x = rrl_weight_element(src, dtype, at + i);
            if (kind == RRL_BF16)
                ((uint16_t *)host)[i] = rrl_bf16_of(x);
            else
                ((float *)host)[i] = x;
        }
        RRL_GOTO(rrl_cuda_upload(d, (char *)to + (size_t)at * width, host, (size_t)count * width));
        RRL_GOTO(rrl_cuda_sync(d)); /* before the buffer is written again */
    }
done:
    free(host);
    return rc;
}

rrl_status rrl_cuda_weight_pack(rrl_device *d, rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n,
                                int64_t k) {
    rrl_status rc = RRL_OK;
    rrl_weight *w = NULL;
    const size_t width = rrl_cuda_of(d)->dtype == RRL_BF16 ? 2 : 4;
    if (n < 1 || k < 1)
        return RRL_FAIL(RRL_ERR_RANGE, "a weight of %lld x %lld cannot be packed", (long long)n, (long long)k);
    RRL_GOTO(rrl_alloc(&w, 1, sizeof *w, "weight"));
    w->n = n;
    w->k = k;
    RRL_GOTO(rrl_cuda_alloc(d, &w->data, (size_t)n * (size_t)k * width, "weights"));
    RRL_GOTO(fill_weight(d, w->data, src, dtype, n * k));
    *out = w;
    w = NULL;
done:
    rrl_cuda_weight_free(d, &w);
    return rc;
}

void rrl_cuda_weight_free(rrl_device *d, rrl_weight **w) {
    if (!w || !*w) return;
    rrl_cuda_free(d, (*w)->data);
    free(*w);
    *w = NULL;
}

/* --- the device */

/* The numeric path. `exact` is meant to be the CPU's, bit for bit; it gets that name when a GPU has shown it. */
const char *rrl_cuda_numeric_path(const rrl_device *d) {
    static const char *const NAMES[2][RRL_DETERMINISM_COUNT][2] = {
        {{"cuda-f32", "cuda-f32/kv-bf16"},
         {"cuda-f32-exact", "cuda-f32-exact/kv-bf16"},
         {"cuda-f32-off", "cuda-f32-off/kv-bf16"}},
        {{"cuda-bf16", "cuda-bf16/kv-bf16"},
         {"cuda-bf16-exact", "cuda-bf16-exact/kv-bf16"},
         {"cuda-bf16-off", "cuda-bf16-off/kv-bf16"}},
    };
    rrl_cuda *c = rrl_cuda_of(d);
    return NAMES[c->dtype == RRL_BF16][c->determinism][d->kv_dtype == RRL_BF16];
}

const char *rrl_cuda_isa(const rrl_device *d) {
    return rrl_cuda_of(d)->isa;
}

void rrl_cuda_close(rrl_device *d) {
    rrl_cuda *c = rrl_cuda_of(d);
    if (c) {
        rrl_blaslt_close(&c->blaslt);
        if (c->room) cudaFree(c->room);
        if (c->stream) cudaStreamDestroy(c->stream);
    }
    free(c);
    free(d);
}

/* As nvidia-smi writes it. */
static void uuid_text(char *out, size_t size, const cudaDeviceProp *p) {
    int at = snprintf(out, size, "GPU");
    for (int i = 0; i < 16; i++) {
        const char *dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        at += snprintf(out + at, size - (size_t)at, "%s%02x", dash, (unsigned char)p->uuid.bytes[i]);
    }
}

static rrl_status open_gpu(rrl_cuda *c, const rrl_cuda_options *o) {
    rrl_status rc = RRL_OK;
    cudaDeviceProp p;
    const bool exact = o->determinism == RRL_DETERMINISM_EXACT;
    RRL_CUDA(cudaSetDevice(o->gpu));
    RRL_CUDA(cudaGetDeviceProperties(&p, o->gpu));
    snprintf(c->isa, sizeof c->isa, "sm_%d%d %.80s", p.major, p.minor, p.name);
    uuid_text(c->uuid, sizeof c->uuid, &p);
    if (p.major < 8) {
        rc = RRL_FAIL(RRL_ERR_CONFIG, "GPU %d is of compute capability %d.%d; the CUDA back end needs 8.0 or later",
                      o->gpu, p.major, p.minor);
        goto done;
    }
    RRL_CUDA(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    /* what the largest product's rounded rows want at full speed, and an eighth of it for states */
    c->room_bytes = (o->room_bytes ? o->room_bytes : (size_t)RRL_CUDA_ROOM_BYTES) / 256 * 256;
    RRL_CUDA(cudaMalloc((void **)&c->room, c->room_bytes + (exact ? (size_t)0 : (size_t)RRL_CUDA_BLASLT_BYTES)));
    if (!exact)
        RRL_GOTO(
            rrl_blaslt_open(&c->blaslt, c->room + c->room_bytes, RRL_CUDA_BLASLT_BYTES,
                            o->determinism == RRL_DETERMINISM_OFF));
done:
    return rc;
}

static rrl_status open_device(rrl_device **out, const rrl_cuda_options *o) {
    rrl_status rc = RRL_OK;
    rrl_device *d = NULL;
    rrl_cuda *c = NULL;
    RRL_GOTO(rrl_alloc(&d, 1, sizeof *d, "device"));
    d->ops = &rrl_cuda_op_table;
    RRL_GOTO(rrl_alloc(&c, 1, sizeof *c, "CUDA back end"));
    d->state = c;
    c->index = o->gpu;
    c->dtype = o->dtype;
    c->determinism = o->determinism;
    RRL_GOTO(open_gpu(c, o));
    *out = d;
    d = NULL;
done:
    if (d) rrl_cuda_close(d);
    return rc;
}

/* --- the module */

static int count_gpus(const char **why) {
    int n = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaSuccess && n > 0) return n;
    (void)cudaGetLastError();
    *why = e == cudaSuccess ? "no GPU is visible" : cudaGetErrorString(e);
    return 0;
}

extern "C" __attribute__((visibility("default")))
const rrl_cuda_module rrl_cuda_module_table = {RRL_CUDA_MODULE_LAYOUT, rrl_cuda_bind, count_gpus, open_device};

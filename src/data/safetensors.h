/* safetensors files: a checked, read-only mapping of one file or of the shards of a folder, and a writer. */
#ifndef RRL_DATA_SAFETENSORS_H
#define RRL_DATA_SAFETENSORS_H

#include <stdint.h>

#include "base/memory.h"
#include "rrl/status.h"

/* The element types that are told apart: constant, name in a file, bytes. */
#define RRL_ST_DTYPE_LIST(X)                                                                                 \
    X(RRL_ST_F32, "F32", 4)                                                                                  \
    X(RRL_ST_BF16, "BF16", 2)                                                                                \
    X(RRL_ST_F16, "F16", 2)                                                                                  \
    X(RRL_ST_I64, "I64", 8)                                                                                  \
    X(RRL_ST_I32, "I32", 4)                                                                                  \
    X(RRL_ST_U8, "U8", 1)
typedef enum {
#define X(dtype, name, bytes) dtype,
    RRL_ST_DTYPE_LIST(X)
#undef X
        RRL_ST_OTHER
} rrl_st_dtype;

typedef struct {
    const char *name;
    rrl_st_dtype dtype;
    int n_dims;
    int64_t dims[8];
    int64_t n_elements;
    const void *data; /* in the mapping; alignment of 1 only */
} rrl_st_tensor;

typedef struct rrl_safetensors rrl_safetensors;
/** Map one file. Refuses: header larger than the file or 100 MB, offsets that overlap, leave holes, run
 * backwards or pass the end, shape x size != range (checked multiplication), repeated names, unknown dtype
 * names. RRL_ERR_DATA. */
rrl_status rrl_safetensors_open(rrl_safetensors **out, const char *path);
/** Map model.safetensors or the shards of model.safetensors.index.json in a folder; shards must lie in the
 * folder. */
rrl_status rrl_safetensors_open_model(rrl_safetensors **out, const char *dir);
void rrl_safetensors_close(rrl_safetensors **s);
int64_t rrl_safetensors_count(const rrl_safetensors *s);
const rrl_st_tensor *rrl_safetensors_at(const rrl_safetensors *s, int64_t i);
/** NULL if there is none of this name. */
const rrl_st_tensor *rrl_safetensors_find(const rrl_safetensors *s, const char *name);
/** Copy as f32 (f32, bf16, f16 sources; exact). out [n_elements]. Errors: RRL_ERR_DATA (integer tensor). */
rrl_status rrl_safetensors_to_f32(float *out, const rrl_st_tensor *t);
/** The tensor's bytes are not needed soon: their pages stop counting as this process's memory. They come back when read. */
void rrl_safetensors_let_go(const rrl_st_tensor *t);
/** Append a line a file that differs when the file does: path, device, inode, size, times of change. */
rrl_status rrl_safetensors_state(rrl_buffer *out, const rrl_safetensors *s);
/** SHA-256 over the files of the mapping, in shard order, as hex of 65 bytes: part of a run's digest. */
rrl_status rrl_safetensors_digest(char out[65], const rrl_safetensors *s);

/** Publish f32 tensors, in the given order, metadata {"format":"pt"}. */
typedef struct {
    const char *name;
    const float *data;
    int n_dims;
    int64_t dims[2];
} rrl_st_write;
/** The bytes of that file, appended. */
rrl_status rrl_safetensors_bytes(rrl_buffer *out, const rrl_st_write *tensors, int n);
rrl_status rrl_safetensors_publish(const char *path, const rrl_st_write *tensors, int n);

/** Publish tensors of any known type, one in memory at a time, in the order of heads (name, dtype, n_dims, dims). source
 *  gives the bytes of tensor i, little-endian; they are used until the next call. Errors: those of source,
 *  RRL_ERR_DATA (dtype RRL_ST_OTHER), RRL_ERR_IO. */
typedef rrl_status rrl_st_source(const void **bytes, int64_t i, void *context);
rrl_status rrl_safetensors_stream(const char *path, const rrl_st_tensor *heads, int64_t n, rrl_st_source *source,
                                  void *context);

#endif

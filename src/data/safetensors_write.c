/* Writing safetensors in the caller's order, the header padded to 8 bytes so that the data is aligned. Small f32 files
 * (adapters, checkpoints) are made in memory; models go to disk tensor by tensor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/safetensors.h"

static const struct {
    const char *name;
    uint64_t bytes;
} TYPES[] = {
#define X(dtype, name, bytes) [dtype] = {name, bytes},
    RRL_ST_DTYPE_LIST(X)
#undef X
};

static rrl_status tensor_bytes(uint64_t *bytes, const rrl_st_tensor *t) {
    if (t->dtype == RRL_ST_OTHER)
        return RRL_FAIL(RRL_ERR_DATA, "tensor %s: its element type cannot be written", t->name);
    uint64_t n = TYPES[t->dtype].bytes;
    for (int d = 0; d < t->n_dims; d++)
        if (t->dims[d] < 0 || __builtin_mul_overflow(n, (uint64_t)t->dims[d], &n) || n > PTRDIFF_MAX)
            return RRL_FAIL(RRL_ERR_INTERNAL, "tensor %s: its shape overflows", t->name);
    *bytes = n;
    return RRL_OK;
}

static rrl_status put_entry(rrl_buffer *b, const rrl_st_tensor *t, uint64_t begin, uint64_t end) {
    RRL_TRY(rrl_buffer_puts(b, ","));
    RRL_TRY(rrl_json_quote(b, t->name, strlen(t->name)));
    RRL_TRY(rrl_buffer_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", TYPES[t->dtype].name));
    for (int d = 0; d < t->n_dims; d++)
        RRL_TRY(rrl_buffer_printf(b, "%s%lld", d ? "," : "", (long long)t->dims[d]));
    return rrl_buffer_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                             (unsigned long long)end);
}

static rrl_status put_header(rrl_buffer *b, const rrl_st_tensor *heads, int64_t n) {
    uint64_t length = 0, at = 0;
    RRL_TRY(rrl_buffer_put(b, &length, sizeof length)); /* filled in below */
    RRL_TRY(rrl_buffer_puts(b, "{\"__metadata__\":{\"format\":\"pt\"}"));
    for (int64_t i = 0; i < n; i++) {
        uint64_t bytes = 0;
        RRL_TRY(tensor_bytes(&bytes, &heads[i]));
        RRL_TRY(put_entry(b, &heads[i], at, at + bytes));
        at += bytes;
    }
    RRL_TRY(rrl_buffer_puts(b, "}"));
    while (b->len % 8) RRL_TRY(rrl_buffer_puts(b, " "));
    length = b->len - sizeof length;
    memcpy(b->data, &length, sizeof length);
    return RRL_OK;
}

rrl_status rrl_safetensors_bytes(rrl_buffer *out, const rrl_st_write *tensors, int n) {
    rrl_status rc = RRL_OK;
    rrl_st_tensor *heads = NULL;
    RRL_GOTO(rrl_alloc(&heads, (size_t)n, sizeof *heads, "heads of tensors"));
    for (int i = 0; i < n; i++) {
        const rrl_st_write *t = &tensors[i];
        if (t->n_dims < 0 || t->n_dims > 2)
            RRL_GOTO(RRL_FAIL(RRL_ERR_INTERNAL, "tensor %s: %d dimensions cannot be written", t->name, t->n_dims));
        heads[i] = (rrl_st_tensor){.name = t->name, .dtype = RRL_ST_F32, .n_dims = t->n_dims};
        memcpy(heads[i].dims, t->dims, sizeof t->dims);
    }
    RRL_GOTO(put_header(out, heads, n));
    for (int i = 0; i < n; i++) {
        uint64_t bytes = 0;
        RRL_GOTO(tensor_bytes(&bytes, &heads[i]));
        RRL_GOTO(rrl_buffer_put(out, tensors[i].data, (size_t)bytes));
    }
done:
    free(heads);
    return rc;
}

rrl_status rrl_safetensors_publish(const char *path, const rrl_st_write *tensors, int n) {
    rrl_buffer b = {0};
    rrl_status rc = rrl_safetensors_bytes(&b, tensors, n);
    if (rc == RRL_OK) rc = rrl_file_publish(path, b.data, b.len);
    rrl_buffer_free(&b);
    return rc;
}

/* Header and tensors into an open file; a short write is seen here or when it is closed. */
static rrl_status write_stream(FILE *f, const char *path, const rrl_st_tensor *heads, int64_t n,
                               rrl_st_source *source, void *context) {
    rrl_status rc = RRL_OK;
    rrl_buffer header = {0};
    RRL_GOTO(put_header(&header, heads, n));
    bool ok = fwrite(header.data, 1, header.len, f) == header.len;
    for (int64_t i = 0; i < n && ok; i++) {
        const void *data = NULL;
        uint64_t bytes = 0;
        RRL_GOTO(tensor_bytes(&bytes, &heads[i]));
        RRL_GOTO(source(&data, i, context));
        ok = bytes == 0 || fwrite(data, 1, (size_t)bytes, f) == bytes;
    }
    if (!ok || fflush(f) != 0) rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
done:
    rrl_buffer_free(&header);
    return rc;
}

rrl_status rrl_safetensors_stream(const char *path, const rrl_st_tensor *heads, int64_t n, rrl_st_source *source,
                                  void *context) {
    rrl_status rc = RRL_OK;
    rrl_buffer tmp = {0};
    FILE *f = NULL;
    RRL_GOTO(rrl_buffer_printf(&tmp, "%s.%ld.tmp", path, (long)getpid()));
    f = fopen(tmp.data, "wbx");
    if (!f) {
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be made: %s", tmp.data, strerror(errno));
        goto done;
    }
    rc = write_stream(f, path, heads, n, source, context);
    if (fclose(f) != 0 && rc == RRL_OK)
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (rc == RRL_OK) rc = rrl_file_publish_tmp(tmp.data, path);
    if (rc != RRL_OK) unlink(tmp.data);
done:
    rrl_buffer_free(&tmp);
    return rc;
}

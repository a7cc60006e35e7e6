/* Writing safetensors: f32 tensors in the caller's order, header padded to 8 bytes so that the data is
 * aligned. */
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/safetensors.h"

static rrl_status tensor_bytes(uint64_t *bytes, const rrl_st_write *t) {
    uint64_t n = sizeof(float);
    if (t->n_dims < 0 || t->n_dims > 2)
        return RRL_FAIL(RRL_ERR_INTERNAL, "tensor %s: %d dimensions cannot be written", t->name, t->n_dims);
    for (int d = 0; d < t->n_dims; d++)
        if (t->dims[d] < 0 || __builtin_mul_overflow(n, (uint64_t)t->dims[d], &n) || n > PTRDIFF_MAX)
            return RRL_FAIL(RRL_ERR_INTERNAL, "tensor %s: its shape overflows", t->name);
    *bytes = n;
    return RRL_OK;
}

static rrl_status put_entry(rrl_buffer *b, const rrl_st_write *t, uint64_t begin, uint64_t end) {
    RRL_TRY(rrl_buffer_puts(b, ","));
    RRL_TRY(rrl_json_quote(b, t->name, strlen(t->name)));
    RRL_TRY(rrl_buffer_puts(b, ":{\"dtype\":\"F32\",\"shape\":["));
    for (int d = 0; d < t->n_dims; d++)
        RRL_TRY(rrl_buffer_printf(b, "%s%lld", d ? "," : "", (long long)t->dims[d]));
    return rrl_buffer_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                             (unsigned long long)end);
}

static rrl_status put_header(rrl_buffer *b, const rrl_st_write *tensors, int n) {
    uint64_t length = 0, at = 0;
    RRL_TRY(rrl_buffer_put(b, &length, sizeof length)); /* filled in below */
    RRL_TRY(rrl_buffer_puts(b, "{\"__metadata__\":{\"format\":\"pt\"}"));
    for (int i = 0; i < n; i++) {
        uint64_t bytes = 0;
        RRL_TRY(tensor_bytes(&bytes, &tensors[i]));
        RRL_TRY(put_entry(b, &tensors[i], at, at + bytes));
        at += bytes;
    }
    RRL_TRY(rrl_buffer_puts(b, "}"));
    while (b->len % 8) RRL_TRY(rrl_buffer_puts(b, " "));
    length = b->len - sizeof length;
    memcpy(b->data, &length, sizeof length);
    return RRL_OK;
}

rrl_status rrl_safetensors_publish(const char *path, const rrl_st_write *tensors, int n) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    RRL_GOTO(put_header(&b, tensors, n));
    for (int i = 0; i < n; i++) {
        uint64_t bytes = 0;
        RRL_GOTO(tensor_bytes(&bytes, &tensors[i]));
        RRL_GOTO(rrl_buffer_put(&b, tensors[i].data, (size_t)bytes));
    }
    RRL_GOTO(rrl_file_publish(path, b.data, b.len));
done:
    rrl_buffer_free(&b);
    return rc;
}

#include "report/event_file.h"

#include <string.h>

uint32_t rrl_crc32c(const void *bytes, size_t n) {
    uint32_t crc = 0xFFFFFFFFU;
    for (const unsigned char *p = bytes, *end = p + n; p < end; p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
    }
    return ~crc;
}

/* --- little-endian numbers and the wire types of protocol buffers */

static rrl_status put_bytes(rrl_buffer *b, uint64_t v, int n) {
    unsigned char bytes[8];
    for (int i = 0; i < n; i++) bytes[i] = (unsigned char)(v >> 8 * i);
    return rrl_buffer_put(b, bytes, (size_t)n);
}

static rrl_status put_varint(rrl_buffer *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) RRL_TRY(put_bytes(b, (v & 0x7F) | 0x80, 1));
    return put_bytes(b, v, 1);
}

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static rrl_status put_key(rrl_buffer *b, unsigned field, unsigned type) {
    return put_varint(b, field << 3 | type);
}

static rrl_status put_double(rrl_buffer *b, unsigned field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    RRL_TRY(put_key(b, field, FIXED64));
    return put_bytes(b, bits, 8);
}

static rrl_status put_float(rrl_buffer *b, unsigned field, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    RRL_TRY(put_key(b, field, FIXED32));
    return put_bytes(b, bits, 4);
}

static rrl_status put_part(rrl_buffer *b, unsigned field, const void *bytes, size_t n) {
    RRL_TRY(put_key(b, field, BYTES));
    RRL_TRY(put_varint(b, n));
    return rrl_buffer_put(b, bytes, n);
}

/* --- records */

static rrl_status put_checked(rrl_buffer *b, const void *bytes, size_t n) {
    uint32_t crc = rrl_crc32c(bytes, n);
    RRL_TRY(rrl_buffer_put(b, bytes, n));
    return put_bytes(b, (crc >> 15 | crc << 17) + 0xA282EAD8U, 4); /* masked, as TFRecord wants */
}

static rrl_status put_record(rrl_buffer *b, const rrl_buffer *event) {
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)event->len >> 8 * i);
    RRL_TRY(put_checked(b, length, sizeof length));
    return put_checked(b, event->data, event->len);
}

/* Event {1 wall_time, 3 file_version}. */
rrl_status rrl_event_file_begin(rrl_buffer *b, double wall_s) {
    static const char VERSION[] = "brain.Event:2";
    rrl_buffer event = {0};
    rrl_status rc;
    RRL_GOTO(put_double(&event, 1, wall_s));
    RRL_GOTO(put_part(&event, 3, VERSION, sizeof VERSION - 1));
    RRL_GOTO(put_record(b, &event));
done:
    rrl_buffer_free(&event);
    return rc;
}

/* Event {1 wall_time, 2 step, 5 Summary {1 Value {1 tag, 2 simple_value}}}. */
rrl_status rrl_event_file_scalar(rrl_buffer *b, double wall_s, int64_t step, const char *tag, double value) {
    rrl_buffer event = {0}, summary = {0}, item = {0};
    rrl_status rc;
    RRL_GOTO(put_part(&item, 1, tag, strlen(tag)));
    RRL_GOTO(put_float(&item, 2, (float)value));
    RRL_GOTO(put_part(&summary, 1, item.data, item.len));
    RRL_GOTO(put_double(&event, 1, wall_s));
    RRL_GOTO(put_key(&event, 2, VARINT));
    RRL_GOTO(put_varint(&event, (uint64_t)step));
    RRL_GOTO(put_part(&event, 5, summary.data, summary.len));
    RRL_GOTO(put_record(b, &event));
done:
    rrl_buffer_free(&item);
    rrl_buffer_free(&summary);
    rrl_buffer_free(&event);
    return rc;
}

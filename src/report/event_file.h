/* Event files of TensorBoard: records of TFRecord (length and data, each with a masked CRC-32C), each an Event of
 * protocol buffers with a scalar. Used by src/report only. */
#ifndef RRL_REPORT_EVENT_FILE_H
#define RRL_REPORT_EVENT_FILE_H

#include "base/memory.h"

/** Append the first event of a file, which names its version. wall_s: seconds since 1970. */
rrl_status rrl_event_file_begin(rrl_buffer *b, double wall_s);
/** Append a scalar at a step. */
rrl_status rrl_event_file_scalar(rrl_buffer *b, double wall_s, int64_t step, const char *tag, double value);
/** CRC-32C (Castagnoli) of bytes. */
uint32_t rrl_crc32c(const void *bytes, size_t n);

#endif

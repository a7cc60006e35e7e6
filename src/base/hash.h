/* SHA-256 (libcrypto), as one call and as a stream. */
#ifndef RRL_BASE_HASH_H
#define RRL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "rrl/status.h"

enum { RRL_SHA256_BYTES = 32, RRL_SHA256_HEX = 65 };

typedef struct rrl_sha256 rrl_sha256;
rrl_status rrl_sha256_open(rrl_sha256 **out);
rrl_status rrl_sha256_add(rrl_sha256 *h, const void *bytes, size_t n);
/** Ends the stream and writes 32 bytes; the handle may only be closed afterwards. */
rrl_status rrl_sha256_end(rrl_sha256 *h, uint8_t out[RRL_SHA256_BYTES]);
void rrl_sha256_close(rrl_sha256 **h);

rrl_status rrl_sha256_of(uint8_t out[RRL_SHA256_BYTES], const void *bytes, size_t n);
/** SHA-256 of the bytes of two texts, one after the other; cannot fail. */
void rrl_sha256_joined(uint8_t out[RRL_SHA256_BYTES], const char *first, const char *second);
/** SHA-256 of a file's content. Errors: RRL_ERR_IO. */
rrl_status rrl_sha256_file(uint8_t out[RRL_SHA256_BYTES], const char *path);
/** Lower-case hex of a digest, NUL-terminated. */
void rrl_sha256_hex(char out[RRL_SHA256_HEX], const uint8_t digest[RRL_SHA256_BYTES]);

#endif

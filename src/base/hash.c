/* SHA-256 through libcrypto's direct functions: they neither allocate nor fail, so a key of a random number
 * can be made where no error can be returned. OpenSSL 3 marks them as old in favour of EVP; asking for
 * the 1.1 interface keeps them. */
#define OPENSSL_API_COMPAT 0x10101000L

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

struct rrl_sha256 {
    SHA256_CTX ctx;
};

rrl_status rrl_sha256_open(rrl_sha256 **out) {
    rrl_sha256 *h = NULL;
    RRL_TRY(rrl_alloc(&h, 1, sizeof *h, "hash"));
    SHA256_Init(&h->ctx);
    *out = h;
    return RRL_OK;
}

rrl_status rrl_sha256_add(rrl_sha256 *h, const void *bytes, size_t n) {
    if (n && !SHA256_Update(&h->ctx, bytes, n)) return RRL_FAIL(RRL_ERR_INTERNAL, "SHA-256 failed");
    return RRL_OK;
}

rrl_status rrl_sha256_end(rrl_sha256 *h, uint8_t out[RRL_SHA256_BYTES]) {
    if (!SHA256_Final(out, &h->ctx)) return RRL_FAIL(RRL_ERR_INTERNAL, "SHA-256 failed");
    return RRL_OK;
}

void rrl_sha256_close(rrl_sha256 **h) {
    if (!h) return;
    free(*h);
    *h = NULL;
}

rrl_status rrl_sha256_of(uint8_t out[RRL_SHA256_BYTES], const void *bytes, size_t n) {
    rrl_sha256 h;
    SHA256_Init(&h.ctx);
    RRL_TRY(rrl_sha256_add(&h, bytes, n));
    return rrl_sha256_end(&h, out);
}

void rrl_sha256_joined(uint8_t out[RRL_SHA256_BYTES], const char *first, const char *second) {
    SHA256_CTX ctx;
    SHA256_Init(&ctx);
    SHA256_Update(&ctx, first, strlen(first));
    SHA256_Update(&ctx, second, strlen(second));
    SHA256_Final(out, &ctx);
}

rrl_status rrl_sha256_file(uint8_t out[RRL_SHA256_BYTES], const char *path) {
    enum { BLOCK = 1 << 18 };
    rrl_status rc = RRL_OK;
    rrl_sha256 h;
    char *block = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));

    RRL_GOTO(rrl_alloc(&block, BLOCK, 1, "block of a file"));
    SHA256_Init(&h.ctx);
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be read: %s", path, strerror(errno)));
        if (n == 0) break;
        RRL_GOTO(rrl_sha256_add(&h, block, (size_t)n));
    }
    RRL_GOTO(rrl_sha256_end(&h, out));
done:
    free(block);
    close(fd);
    return rc;
}

void rrl_sha256_hex(char out[RRL_SHA256_HEX], const uint8_t digest[RRL_SHA256_BYTES]) {
    static const char DIGITS[] = "0123456789abcdef";
    for (int i = 0; i < RRL_SHA256_BYTES; i++) {
        out[2 * i] = DIGITS[digest[i] >> 4];
        out[2 * i + 1] = DIGITS[digest[i] & 15];
    }
    out[RRL_SHA256_HEX - 1] = 0;
}

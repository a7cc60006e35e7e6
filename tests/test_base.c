/* Status messages, memory, hash. */
#include <stdint.h>

#include "base/hash.h"
#include "base/memory.h"
#include "check.h"

static rrl_status fail_with_newline(void) {
    return RRL_FAIL(RRL_ERR_DATA, "bad\nname %d", 7);
}

static rrl_status pass_on(void) {
    RRL_TRY(fail_with_newline());
    return RRL_OK;
}

static void test_status(void) {
    CHECK_EQ_STR(rrl_error_message(), "");
    CHECK_STATUS(pass_on(), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "bad name 7");
    CHECK(strncmp(rrl_error_place(), "test_base.c:", 12) == 0);
    CHECK_STATUS(rrl_context(RRL_ERR_DATA, "file %s", "x"), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "file x: bad name 7");
    CHECK_STATUS(rrl_context(RRL_OK, "not used"), RRL_OK);
    CHECK_EQ_STR(rrl_error_message(), "file x: bad name 7");
    CHECK_STATUS(RRL_FAIL(RRL_ERR_IO, "again: %s", rrl_error_message()), RRL_ERR_IO);
    CHECK_EQ_STR(rrl_error_message(), "again: file x: bad name 7");
    CHECK_EQ_INT(rrl_status_exit_code(RRL_OK), 0);
    CHECK_EQ_INT(rrl_status_exit_code(RRL_ERR_BUSY), 2);
    CHECK_EQ_INT(rrl_status_exit_code(RRL_ERR_REQUEUE), 4);
    CHECK_EQ_INT(rrl_status_exit_code(RRL_ERR_INTERNAL), 1);
    CHECK_EQ_STR(rrl_status_text(RRL_OK), "success");
    CHECK_EQ_STR(rrl_status_text(RRL_STATUS_COUNT), "unknown status");
}

static void test_memory(void) {
    uint32_t *p = NULL;
    CHECK_OK(rrl_alloc(&p, 3, sizeof *p, "p"));
    CHECK(p && p[0] == 0 && p[2] == 0);
    free(p);
    CHECK_OK(rrl_alloc(&p, 0, sizeof *p, "p"));
    CHECK(p == NULL);
    p = (uint32_t *)&p;
    CHECK_STATUS(rrl_alloc(&p, SIZE_MAX / 2, 4, "big table"), RRL_ERR_NOMEM);
    CHECK_STATUS(rrl_alloc(&p, SIZE_MAX / 4 + 2, 4, "big table"), RRL_ERR_NOMEM); /* 4 if it wrapped */
    CHECK(p == (uint32_t *)&p); /* written only on success */
    CHECK(strstr(rrl_error_message(), "big table") != NULL);

    enum { BLOCKS = 8 }; /* one could be aligned by luck */
    double *blocks[BLOCKS] = {NULL};
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK_OK(rrl_alloc_aligned(&blocks[i], 2 * i + 1, sizeof **blocks, "block"));
        CHECK_EQ_INT((uintptr_t)blocks[i] % 64, 0);
        CHECK_NEAR(blocks[i][2 * i], 0, 0);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);

    int *grown = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(rrl_grow(&grown, &capacity, (size_t)i + 1, sizeof *grown, "grown"));
        grown[i] = i;
    }
    CHECK_EQ_INT(capacity, 128);
    CHECK_EQ_INT(grown[99], 99);
    CHECK_STATUS(rrl_grow(&grown, &capacity, SIZE_MAX, sizeof *grown, "grown"), RRL_ERR_NOMEM);
    free(grown);
}

static void test_buffer(void) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_buffer_put(&b, "ab\0c", 4));
    CHECK_EQ_INT(b.len, 4);
    CHECK_OK(rrl_buffer_printf(&b, "%05d", 42));
    CHECK_OK(rrl_buffer_puts(&b, ""));
    CHECK_EQ_INT(b.len, 9);
    CHECK(memcmp(b.data, "ab\0c00042", 10) == 0);
    rrl_buffer_free(&b);
    CHECK(b.data == NULL && b.len == 0 && b.capacity == 0);

    char *copy = NULL;
    CHECK_OK(rrl_strdup(&copy, "héllo"));
    CHECK_EQ_STR(copy, "héllo");
    free(copy);
}

/* FIPS 180-2 examples; the digest of a million letters as a stream of uneven pieces. */
static void test_hash(void) {
    uint8_t digest[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    CHECK_OK(rrl_sha256_of(digest, "abc", 3));
    rrl_sha256_hex(hex, digest);
    CHECK_EQ_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    rrl_sha256_joined(digest, "a", "bc");
    rrl_sha256_hex(hex, digest);
    CHECK_EQ_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_OK(rrl_sha256_of(digest, NULL, 0));
    rrl_sha256_hex(hex, digest);
    CHECK_EQ_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

    rrl_sha256 *h = NULL;
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    CHECK_OK(rrl_sha256_open(&h));
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(rrl_sha256_add(h, letters, (size_t)i));
        CHECK_OK(rrl_sha256_add(h, letters, (size_t)(1000 - i)));
    }
    CHECK_OK(rrl_sha256_end(h, digest));
    rrl_sha256_close(&h);
    CHECK(h == NULL);
    rrl_sha256_close(&h);
    rrl_sha256_hex(hex, digest);
    CHECK_EQ_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    CHECK_STATUS(rrl_sha256_file(digest, "/no/such/file"), RRL_ERR_IO);
}

int main(void) {

    test_status();
    test_memory();
    test_buffer();
    test_hash();
    return CHECK_DONE();
}

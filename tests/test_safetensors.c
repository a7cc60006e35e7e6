/* safetensors: a real file, exact conversions, the writer, shards, and every way a header can lie. */
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "check.h"
#include "data/safetensors.h"

static char folder[] = "/tmp/rrl-safetensors-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* length (header's own if < 0), header, n_data bytes 0, 1, 2, ... */
static void write_raw(const char *name, int64_t length, const char *header, size_t n_data) {
    rrl_buffer b = {0};
    uint64_t n = length < 0 ? strlen(header) : (uint64_t)length;
    CHECK_OK(rrl_buffer_put(&b, &n, sizeof n));
    CHECK_OK(rrl_buffer_puts(&b, header));
    for (size_t i = 0; i < n_data; i++) CHECK_OK(rrl_buffer_put(&b, &(char){(char)i}, 1));
    CHECK_OK(rrl_file_publish(in_folder(name), b.data, b.len));
    rrl_buffer_free(&b);
}

/* ---- a file that another program wrote; figures read with Python's struct and json, digest with sha256sum
 */

static void test_real(void) {
    rrl_safetensors *s = NULL;
    float *values = NULL;
    char digest[65];
    if (!CHECK_OK(rrl_safetensors_open_model(&s, RRL_SOURCE_DIR "/data/tiny"))) return;
    CHECK_EQ_INT(rrl_safetensors_count(s), 38);
    const rrl_st_tensor *t = rrl_safetensors_find(s, "model.embed_tokens.weight");
    if (CHECK(t != NULL)) {
        CHECK_EQ_INT(t->n_dims, 2);
        CHECK_EQ_INT(t->dims[0], 562);
        CHECK_EQ_INT(t->dims[1], 128);
        CHECK_EQ_INT(t->n_elements, 562 * 128);
        CHECK_EQ_INT(t->dtype, RRL_ST_F32);
    }
    t = rrl_safetensors_find(s, "model.norm.weight");
    if (CHECK(t != NULL)) {
        CHECK_OK(rrl_alloc(&values, (size_t)t->n_elements, sizeof *values, "values"));
        CHECK_OK(rrl_safetensors_to_f32(values, t));
        CHECK_NEAR(values[0], 1.4786276817321777, 0);
        CHECK_NEAR(values[1], 1.4963243007659912, 0);
        CHECK_NEAR(values[2], 1.4473506212234497, 0);
    }
    CHECK(rrl_safetensors_find(s, "lm_head.weight") == NULL);
    CHECK(rrl_safetensors_at(s, -1) == NULL && rrl_safetensors_at(s, 38) == NULL);
    CHECK_EQ_STR(rrl_safetensors_at(s, 0)->name, "model.embed_tokens.weight");
    CHECK_OK(rrl_safetensors_digest(digest, s));
    CHECK_EQ_STR(digest, "acc5040730cfd6b8785df6680bfd778d45839e3bf751cfe25919f725e8bde9ea");
    free(values);
    rrl_safetensors_close(&s);
    rrl_safetensors_close(&s);
}

/* ---- all 65,536 values of both half formats, against their definition */

static double half_value(unsigned bits, int exponent_bits) {
    int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1,
        top = (1 << exponent_bits) - 1;
    int exponent = (int)(bits >> fraction_bits) & top;
    double fraction = bits & ((1u << fraction_bits) - 1), sign = bits & 0x8000u ? -1 : 1;
    if (exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(1 + ldexp(fraction, -fraction_bits), exponent - bias);
}

static void test_conversion(void) {
    static uint16_t bits[65536];
    static float values[65536];
    for (unsigned i = 0; i < 65536; i++) bits[i] = (uint16_t)i;
    for (int kind = 0; kind < 2; kind++) {
        rrl_st_tensor t = {
            .name = "t", .dtype = kind ? RRL_ST_BF16 : RRL_ST_F16, .n_elements = 65536, .data = bits};
        int wrong = 0;
        CHECK_OK(rrl_safetensors_to_f32(values, &t));
        for (unsigned i = 0; i < 65536; i++) {
            double want = half_value(i, kind ? 8 : 5);
            wrong += isnan(want) ? !isnan(values[i])
                                 : (double)values[i] != want || !signbit(values[i]) != !(i & 0x8000u);
        }
        CHECK_EQ_INT(wrong, 0);
    }
    char odd[2 * 65536 + 1]; /* data may lie at any address */
    memcpy(odd + 1, bits, sizeof bits);
    rrl_st_tensor t = {.name = "t", .dtype = RRL_ST_F16, .n_elements = 65536, .data = odd + 1};
    CHECK_OK(rrl_safetensors_to_f32(values, &t));
    CHECK_NEAR(values[1], 0x1p-24, 0);
    CHECK_NEAR(values[0x7bff], 65504, 0);
    t.dtype = RRL_ST_I64;
    CHECK_STATUS(rrl_safetensors_to_f32(values, &t), RRL_ERR_DATA);
    t.dtype = RRL_ST_OTHER;
    CHECK_STATUS(rrl_safetensors_to_f32(values, &t), RRL_ERR_DATA);
}

/* ---- writer */

static void test_publish(void) {
    static const float A[6] = {1, -2, 3.5f, 0x1p-149f, INFINITY, 0}, B[1] = {7};
    const rrl_st_write tensors[] = {
        {"z.lora_A.weight", A, 2, {2, 3}}, {"a \"quoted\"", B, 1, {1}}, {"empty", NULL, 2, {0, 4}}};
    rrl_safetensors *s = NULL;
    float values[6];
    char *bytes = NULL;
    size_t len = 0;
    CHECK_OK(rrl_safetensors_publish(in_folder("out.safetensors"), tensors, 3));
    CHECK_OK(rrl_file_read(&bytes, &len, in_folder("out.safetensors"), 1 << 20));
    uint64_t header = 0;
    memcpy(&header, bytes, sizeof header);
    CHECK_EQ_INT(header % 8, 0);
    CHECK_EQ_INT(len, 8 + header + 28);
    CHECK(
        strstr(bytes + 8,
               "{\"__metadata__\":{\"format\":\"pt\"},\"z.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
               "\"data_offsets\":[0,24]}") == bytes + 8);
    free(bytes);
    if (!CHECK_OK(rrl_safetensors_open(&s, in_folder("out.safetensors")))) return;
    CHECK_EQ_INT(rrl_safetensors_count(s), 3);
    CHECK_OK(rrl_safetensors_to_f32(values, rrl_safetensors_find(s, "z.lora_A.weight")));
    CHECK(memcmp(values, A, sizeof A) == 0);
    CHECK_OK(rrl_safetensors_to_f32(values, rrl_safetensors_find(s, "a \"quoted\"")));
    CHECK_NEAR(values[0], 7, 0);
    CHECK_EQ_INT(rrl_safetensors_find(s, "empty")->n_elements, 0);
    CHECK_OK(rrl_safetensors_to_f32(values, rrl_safetensors_find(s, "empty")));
    rrl_safetensors_close(&s);
}

/* ---- headers that are right in odd ways, and those that lie */

#define T(name, dtype, shape, begin, end)                                                                    \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void test_accepted(void) {
    static const struct {
        const char *what, *header;
        size_t n_data;
        int64_t count;
    } CASES[] = {
        {"no tensor", "{}", 0, 0},
        {"a scalar", "{" T("a", "F32", "[]", 0, 4) "}", 4, 1},
        {"not in order of the data", "{" T("b", "BF16", "[2]", 4, 8) "," T("a", "F16", "[2,1]", 0, 4) "}", 8,
         2},
        {"empty between",
         "{" T("b", "U8", "[0]", 4, 4) "," T("a", "I32", "[1]", 0, 4) "," T("c", "I64", "[1]", 4, 12) "}", 12,
         3},
        {"spaces after the header", "{" T("a", "U8", "[1]", 0, 1) "}    ", 1, 1},
        {"type without conversion", "{" T("a", "F64", "[1]", 0, 8) "}", 8, 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_safetensors *s = NULL;
        write_raw("x.safetensors", -1, CASES[i].header, CASES[i].n_data);
        if (CHECK_OK(rrl_safetensors_open(&s, in_folder("x.safetensors"))))
            CHECK_EQ_INT(rrl_safetensors_count(s), CASES[i].count);
        else
            fprintf(stderr, "  %s\n", CASES[i].what);
        rrl_safetensors_close(&s);
    }
}

static void test_refused(void) {
    static const struct {
        const char *what, *header;
        int64_t length; /* < 0 = the header's own */
        size_t n_data;
        const char *message;
    } CASES[] = {
        {"header beyond the file", "{}", 3, 0, "header"},
        {"header length near 2^64", "{}", INT64_MAX, 0, "header"},
        {"header length 0", "{}", 0, 0, ""},
        {"no JSON", "{\"a\":", -1, 0, ""},
        {"a list", "[]", -1, 0, "no JSON object"},
        {"entry is no object", "{\"a\":3}", -1, 0, "a is no object"},
        {"overlap", "{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 2, 6) "}", -1, 6, "overlap"},
        {"same range twice", "{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 0, 4) "}", -1, 4,
         "overlap"},
        {"hole", "{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[2]", 5, 7) "}", -1, 7, "hole"},
        {"hole at the start", "{" T("a", "U8", "[4]", 1, 5) "}", -1, 5, "hole"},
        {"bytes left over", "{" T("a", "U8", "[4]", 0, 4) "}", -1, 5, "belong to none"},
        {"backwards", "{" T("a", "U8", "[4]", 4, 0) "}", -1, 4, "backwards"},
        {"past the end", "{" T("a", "U8", "[4]", 0, 4) "}", -1, 3, "ends at byte 4 of 3"},
        {"far past the end", "{" T("a", "U8", "[9007199254740992]", 0, 9007199254740992) "}", -1, 3,
         "ends at"},
        {"negative offset", "{" T("a", "U8", "[4]", -4, 0) "}", -1, 4, "data_offsets"},
        {"offset with fraction", "{" T("a", "U8", "[4]", 0.5, 4.5) "}", -1, 5, "data_offsets"},
        {"offset beyond 2^53", "{" T("a", "U8", "[4]", 0, 18446744073709551615) "}", -1, 4, "data_offsets"},
        {"three offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", -1, 4,
         "data_offsets"},
        {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", -1, 4, "data_offsets"},
        {"unknown type", "{" T("a", "F31", "[1]", 0, 4) "}", -1, 4, "F31"},
        {"type is a number", "{\"a\":{\"dtype\":1,\"shape\":[4],\"data_offsets\":[0,4]}}", -1, 4, "dtype"},
        {"shape too small", "{" T("a", "F32", "[2]", 0, 4) "}", -1, 4, "needs 8 bytes"},
        {"shape too large", "{" T("a", "F32", "[1]", 0, 8) "}", -1, 8, "needs 4 bytes"},
        {"type of another size", "{" T("a", "BF16", "[2]", 0, 8) "}", -1, 8, "needs 4 bytes"},
        {"negative dimension", "{" T("a", "U8", "[-4]", 0, 4) "}", -1, 4, "dimension 0"},
        {"dimension is text", "{" T("a", "U8", "[4,\"1\"]", 0, 4) "}", -1, 4, "dimension 1"},
        {"shape is no list", "{" T("a", "U8", "4", 0, 4) "}", -1, 4, "shape"},
        {"nine dimensions", "{" T("a", "U8", "[1,1,1,1,1,1,1,1,4]", 0, 4) "}", -1, 4, "shape"},
        {"product overflows", "{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", -1, 0, "overflows"},
        {"bytes overflow", "{" T("a", "F32", "[2147483648,2147483648]", 0, 0) "}", -1, 0, "overflows"},
        {"product overflows to the right size", "{" T("a", "U8", "[9007199254740992,2048,1]", 0, 0) "}", -1,
         0, "overflows"},
        {"name twice", "{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1, 2) "}", -1, 2, "twice"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_safetensors *s = NULL;
        write_raw("x.safetensors", CASES[i].length, CASES[i].header, CASES[i].n_data);
        int ok = CHECK_STATUS(rrl_safetensors_open(&s, in_folder("x.safetensors")), RRL_ERR_DATA);
        if (!ok || !CHECK(strstr(rrl_error_message(), CASES[i].message) != NULL))
            fprintf(stderr, "  %s: %s\n", CASES[i].what, rrl_error_message());
        CHECK(s == NULL);
        rrl_safetensors_close(&s);
    }
    rrl_safetensors *s = NULL;
    CHECK_STATUS(rrl_safetensors_open(&s, in_folder("none.safetensors")), RRL_ERR_DATA);
    CHECK_STATUS(rrl_safetensors_open(&s, folder), RRL_ERR_DATA);
    CHECK_STATUS(rrl_safetensors_open(&s, "/dev/null"), RRL_ERR_DATA);
}

static void test_cut(void) {
    char *bytes = NULL;
    size_t len = 0;
    write_raw("x.safetensors", -1, "{" T("a", "F32", "[2]", 0, 8) "," T("b", "BF16", "[1]", 8, 10) "}", 10);
    CHECK_OK(rrl_file_read(&bytes, &len, in_folder("x.safetensors"), 1 << 20));
    for (size_t n = 0; n < len; n++) {
        rrl_safetensors *s = NULL;
        CHECK_OK(rrl_file_publish(in_folder("y.safetensors"), bytes, n));
        CHECK_STATUS(rrl_safetensors_open(&s, in_folder("y.safetensors")), RRL_ERR_DATA);
    }
    free(bytes);
    unlink(in_folder("y.safetensors"));
}

/* ---- a header of more than 100 MB is refused before it is read: the file is sparse */

static void test_huge_header(void) {
    rrl_safetensors *s = NULL;
    write_raw("x.safetensors", 100000001, "{}", 0);
    CHECK_EQ_INT(truncate(in_folder("x.safetensors"), 200000000), 0);
    CHECK_STATUS(rrl_safetensors_open(&s, in_folder("x.safetensors")), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "limit 100000000") != NULL);
}

/* ---- shards */

static rrl_status open_index(rrl_safetensors **s, const char *map) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_buffer_printf(&b, "{\"metadata\":{},\"weight_map\":{%s}}", map));
    CHECK_OK(rrl_file_publish(in_folder("model.safetensors.index.json"), b.data, b.len));
    rrl_buffer_free(&b);
    return rrl_safetensors_open_model(s, folder);
}

static void test_shards(void) {
    rrl_safetensors *s = NULL;
    float v[1];
    write_raw("s2.safetensors", -1, "{" T("b", "U8", "[2]", 0, 2) "}", 2);
    write_raw("s1.safetensors", -1, "{" T("c", "F16", "[1]", 0, 2) "}", 2);
    write_raw("s3.safetensors", -1, "{" T("b", "U8", "[1]", 0, 1) "}", 1);
    CHECK_STATUS(rrl_safetensors_open_model(&s, folder), RRL_ERR_DATA); /* nothing there yet */
    if (CHECK_OK(open_index(&s, "\"b\":\"s2.safetensors\",\"c\":\"s1.safetensors\""))) {
        CHECK_EQ_INT(rrl_safetensors_count(s), 2);
        CHECK_EQ_STR(rrl_safetensors_at(s, 0)->name, "c"); /* shards in order of their names */
        CHECK_OK(rrl_safetensors_to_f32(v, rrl_safetensors_find(s, "c")));
        CHECK_NEAR(v[0], 256 * 0x1p-24, 0); /* bytes 00 01 */
    }
    rrl_safetensors_close(&s);
    static const struct {
        const char *what, *map, *message;
    } CASES[] = {
        {"shard outside", "\"b\":\"../s2.safetensors\"", "../s2"},
        {"absolute shard", "\"b\":\"/etc/passwd\"", "/etc/passwd"},
        {"shard in a folder below", "\"b\":\"d/s2.safetensors\"", "d/s2"},
        {"hidden shard", "\"b\":\".\"", "\".\""},
        {"shard is a number", "\"b\":2", "tensor b"},
        {"missing shard", "\"b\":\"s9.safetensors\"", "s9.safetensors"},
        {"tensor in no shard", "\"b\":\"s2.safetensors\",\"x\":\"s2.safetensors\"", "tensor x"},
        {"tensor in two shards", "\"b\":\"s2.safetensors\",\"c\":\"s3.safetensors\"", "twice"},
        {"empty map", "", "weight_map"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int ok = CHECK_STATUS(open_index(&s, CASES[i].map), RRL_ERR_DATA);
        if (!ok || !CHECK(strstr(rrl_error_message(), CASES[i].message) != NULL))
            fprintf(stderr, "  %s: %s\n", CASES[i].what, rrl_error_message());
        rrl_safetensors_close(&s);
    }
}

int main(void) {
    static const char *const FILES[] = {"out.safetensors", "x.safetensors",  "s1.safetensors",
                                        "s2.safetensors",  "s3.safetensors", "model.safetensors.index.json"};
    if (!mkdtemp(folder)) return 1;
    test_real();
    test_conversion();
    test_publish();
    test_accepted();
    test_refused();
    test_cut();
    test_huge_header();
    test_shards();
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) unlink(in_folder(FILES[i]));
    rmdir(folder);
    return CHECK_DONE();
}

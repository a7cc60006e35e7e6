/* Strict reading, members and their messages, strings and numbers as Python writes them. */
#include "base/json.h"

#include <unistd.h>

#include "base/files.h"
#include "check.h"

/* Each is refused; `says` is part of the message. */
static void test_refused(void) {
#define TEXT(s) s, sizeof(s) - 1
    static const struct {
        const char *text;
        size_t len;
        const char *says;
    } CASES[] = {
        {TEXT(""), "expected a value, found the end"},
        {TEXT("{\"a\":1} x"), "nothing after the document, found x"},
        {TEXT("{\"a\":1}{"), "nothing after the document"},
        {TEXT("{\"a\":1,\"b\":2,\"a\":3}"), "\"a\" is given twice"},
        {TEXT("[{\"x\":{\"a\":1,\"\\u0061\":2}}]"), "\"a\" is given twice"},
        {TEXT("\"a\0b\""), "NUL byte"},
        {TEXT("{}\0"), "NUL byte"},
        {TEXT("\"a\\u0000b\""), "NUL characters"},
        {TEXT("\"\xff\""), "not UTF-8"},
        {TEXT("\"\xed\xa0\x80\""), "not UTF-8"},
        {TEXT("\"\\ud800\""), "first half of a surrogate pair"},
        {TEXT("\"\\ud800\\u0041\""), "first half of a surrogate pair"},
        {TEXT("\"\\ude00\""), "second half of a surrogate pair"},
        {TEXT("\"\\u12g4\""), "four hexadecimal digits"},
        {TEXT("\"\\x\""), "after a backslash"},
        {TEXT("\"a\nb\""), "without control characters"},
        {TEXT("\"abc"), "a closing \""},
        {TEXT("{\"a\":1,}"), "a key in quotes, found }"},
        {TEXT("{'a':1}"), "a key in quotes"},
        {TEXT("{\"a\" 1}"), "expected :, found 1"},
        {TEXT("{\"a\":1 \"b\":2}"), "expected , or }, found \""},
        {TEXT("[1,]"), "expected a value, found ]"},
        {TEXT("[1 2]"), "expected , or ]"},
        {TEXT("[1"), "expected , or ], found the end"},
        {TEXT("01"), "no digit after a leading 0"},
        {TEXT("1."), "expected a digit"},
        {TEXT(".5"), "expected a value, found ."},
        {TEXT("+1"), "expected a value, found +"},
        {TEXT("-"), "expected a digit"},
        {TEXT("1e"), "expected a digit"},
        {TEXT("nul"), "true, false or null"},
        {TEXT("NaN"), "expected a value, found N"},
        {TEXT("\xef\xbb\xbf{}"), "expected a value, found byte 0xef"},
        {TEXT("{\n \"a\": 1,\n \"b\": x\n}"), "at line 3, byte 7"},
        {TEXT("0.1234567890123456789012345678901234567890123456789012345678901234"),
         "more than 63 characters"},
    };
#undef TEXT
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cJSON *document = NULL;
        CHECK_STATUS(rrl_json_parse(&document, CASES[i].text, CASES[i].len, "x.json:3"), RRL_ERR_DATA);
        CHECK(document == NULL);
        const char *message = rrl_error_message();
        if (!CHECK(strncmp(message, "x.json:3: ", 10) == 0 && strstr(message, CASES[i].says)))
            fprintf(stderr, "  case %zu: \"%s\" without \"%s\"\n", i, message, CASES[i].says);
    }
}

static void nest(rrl_buffer *b, int depth) {
    for (int i = 0; i < depth; i++) CHECK_OK(rrl_buffer_puts(b, "["));
    for (int i = 0; i < depth; i++) CHECK_OK(rrl_buffer_puts(b, "]"));
}

static void test_nesting(void) {
    for (int depth = 63; depth <= 66; depth++) {
        rrl_buffer b = {0};
        cJSON *document = NULL;
        nest(&b, depth);
        CHECK_STATUS(rrl_json_parse(&document, b.data, b.len, "x"), depth <= 64 ? RRL_OK : RRL_ERR_DATA);
        cJSON_Delete(document);
        rrl_buffer_free(&b);
    }
    /* many levels one after the other are no nesting */
    cJSON *document = NULL;
    rrl_buffer b = {0};
    CHECK_OK(rrl_buffer_puts(&b, "[[]"));
    for (int i = 0; i < 100; i++) CHECK_OK(rrl_buffer_puts(&b, ",[[{}]]"));
    CHECK_OK(rrl_buffer_puts(&b, "]"));
    CHECK_OK(rrl_json_parse(&document, b.data, b.len, "x"));
    CHECK_EQ_INT(cJSON_GetArraySize(document), 101);
    cJSON_Delete(document);
    rrl_buffer_free(&b);
}

static void test_members(void) {
    static const char TEXT[] = " {\"seed\": 9223372036854775807, \"low\": -9223372036854775808, \"odd\": "
                               "9007199254740993, \"big\": 9223372036854775808,"
                               "\"list\": [1234567890123456789, 1, {\"n\": 1000000000000000001}], \"k\": "
                               "1e3, \"two\": 2.0, \"half\": 0.5, \"yes\": true,"
                               "\"none\": null, \"text\": \"h\\u00e9\\ud83d\\ude00\", \"Seed\": 3}\n";
    cJSON *d = NULL;
    if (!CHECK_OK(rrl_json_parse(&d, TEXT, sizeof TEXT - 1, "t"))) return;
    int64_t i = 5;
    CHECK_OK(rrl_json_int(&i, d, "seed", false, "t"));
    CHECK_EQ_INT(i, INT64_MAX);
    CHECK_OK(rrl_json_int(&i, d, "low", false, "t"));
    CHECK_EQ_INT(i, INT64_MIN);
    CHECK_OK(rrl_json_int(&i, d, "odd", false, "t"));
    CHECK_EQ_INT(i, 9007199254740993);
    CHECK_OK(rrl_json_int(&i, d, "k", false, "t"));
    CHECK_EQ_INT(i, 1000);
    CHECK_OK(rrl_json_int(&i, d, "two", false, "t"));
    CHECK_EQ_INT(i, 2);
    CHECK_OK(rrl_json_int(&i, d, "Seed", false, "t"));
    CHECK_EQ_INT(i, 3);
    CHECK_STATUS(rrl_json_int(&i, d, "big", false, "t"), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "t: \"big\" is 9223372036854775808, which is no 64-bit integer");
    CHECK_STATUS(rrl_json_int(&i, d, "half", false, "t"), RRL_ERR_DATA);
    CHECK_STATUS(rrl_json_int(&i, d, "text", false, "t"), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "t: \"text\" must be an integer, found a text");
    CHECK_STATUS(rrl_json_int(&i, d, "absent", false, "t"), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "t: \"absent\" is missing");
    CHECK_STATUS(rrl_json_int(&i, d, "none", false, "t"), RRL_ERR_DATA);
    CHECK_OK(rrl_json_int(&i, d, "absent", true, "t"));
    CHECK_OK(rrl_json_int(&i, d, "none", true, "t"));
    CHECK_STATUS(rrl_json_int(&i, d, "text", true, "t"), RRL_ERR_DATA);
    CHECK_EQ_INT(i, 3); /* as it was */

    const cJSON *list = NULL;
    CHECK_OK(rrl_json_get(&list, d, "list", false, "t"));
    CHECK_EQ_STR(cJSON_GetArrayItem(list, 0)->valuestring, "1234567890123456789");
    CHECK(cJSON_GetArrayItem(list, 1)->valuestring == NULL);
    CHECK_OK(rrl_json_int(&i, cJSON_GetArrayItem(list, 2), "n", false, "t"));
    CHECK_EQ_INT(i, 1000000000000000001);
    CHECK_STATUS(rrl_json_int(&i, list, "n", false, "t"), RRL_ERR_DATA);
    CHECK_EQ_STR(rrl_error_message(), "t: expected an object with \"n\", found a list");
    CHECK_STATUS(rrl_json_int(&i, NULL, "n", true, "t"), RRL_ERR_DATA);

    const cJSON *item = d;
    CHECK_OK(rrl_json_get(&item, d, "absent", true, "t"));
    CHECK(item == NULL);
    CHECK_OK(rrl_json_get(&item, d, "none", true, "t"));
    CHECK(cJSON_IsNull(item));

    double v = 0;
    CHECK_OK(rrl_json_double(&v, d, "half", false, "t"));
    CHECK_NEAR(v, 0.5, 0);
    CHECK_STATUS(rrl_json_double(&v, d, "yes", false, "t"), RRL_ERR_DATA);
    bool yes = false;
    CHECK_OK(rrl_json_bool(&yes, d, "yes", false, "t"));
    CHECK(yes);
    CHECK_STATUS(rrl_json_bool(&yes, d, "k", false, "t"), RRL_ERR_DATA);
    const char *text = NULL;
    CHECK_OK(rrl_json_string(&text, d, "text", false, "t"));
    CHECK_EQ_STR(text, "hé😀");
    CHECK_STATUS(rrl_json_string(&text, d, "seed", false, "t"), RRL_ERR_DATA);
    cJSON_Delete(d);
}

/* Python 3.11: json.dumps(text, ensure_ascii=False). */
static void test_quote(void) {
    static const char TEXT[] =
        "\001\002\003\004\005\006\007\010\011\012\013\014\015\016\017\020\021\022\023\024\025\026\027\030\031"
        "\032\033\034\035\036\037 !\042#$%&'()*+,-./\042\134\177/\303\251\342\200\250\360\237\230\200";
    static const char WANT[] =
        "\042\134u0001\134u0002\134u0003\134u0004\134u0005\134u0006\134u0007\134b\134t\134n\134u000b\134f\134"
        "r\134u000e\134u000f\134u0010\134u0011\134u0012\134u0013\134u0014\134u0015\134u0016\134u0017\134u0018"
        "\134u0019\134u001a\134u001b\134u001c\134u001d\134u001e\134u001f "
        "!\134\042#$%&'()*+,-./\134\042\134\134\177/\303\251\342\200\250\360\237\230\200\042";
    rrl_buffer b = {0};
    CHECK_OK(rrl_json_quote(&b, TEXT, sizeof TEXT - 1));
    CHECK_EQ_STR(b.data, WANT);
    cJSON *back = NULL;
    if (CHECK_OK(rrl_json_parse(&back, b.data, b.len, "t"))) CHECK_EQ_STR(back->valuestring, TEXT);
    cJSON_Delete(back);
    b.len = 0;
    CHECK_OK(rrl_json_quote(&b, "a\0b", 3));
    CHECK_EQ_STR(b.data, "\"a\\u0000b\"");
    b.len = 0;
    CHECK_OK(rrl_json_quote(&b, NULL, 0));
    CHECK_EQ_STR(b.data, "\"\"");
    rrl_buffer_free(&b);
}

static void test_number(void) {
    static const struct {
        double v;
        const char *want;
    } CASES[] = {
        {0.2, "0.2"}, {1, "1"},       {-1e-6, "-1e-06"},   {1e300, "1e+300"},
        {0, "0"},     {-0.0, "-0.0"}, {INFINITY, "1e999"}, {5e-324, "5e-324"},
    };
    rrl_buffer b = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        b.len = 0;
        CHECK_OK(rrl_json_number(&b, CASES[i].v));
        CHECK_EQ_STR(b.data, CASES[i].want);
        cJSON *back = NULL;
        if (CHECK_OK(rrl_json_parse(&back, b.data, b.len, "t")))
            CHECK(memcmp(&back->valuedouble, &CASES[i].v, sizeof(double)) == 0);
        cJSON_Delete(back);
    }
    b.len = 0;
    CHECK_OK(rrl_json_number(&b, NAN));
    CHECK_EQ_STR(b.data, "null");
    rrl_buffer_free(&b);
}

static void test_file(void) {
    const char *path = RRL_BINARY_DIR "/test_json.tmp";
    cJSON *d = NULL;
    CHECK_OK(rrl_file_publish(path, "{\"a\": [1]}\n", 11));
    CHECK_OK(rrl_json_file(&d, path, 100));
    CHECK(cJSON_IsObject(d));
    cJSON_Delete(d);
    CHECK_STATUS(rrl_json_file(&d, path, 10), RRL_ERR_DATA);
    unlink(path);
    CHECK_STATUS(rrl_json_file(&d, path, 10), RRL_ERR_DATA);
}

int main(void) {
    test_refused();
    test_nesting();
    test_members();
    test_quote();
    test_number();
    test_file();
    return CHECK_DONE();
}

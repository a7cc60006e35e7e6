/* Numbers as text, UTF-8, nearest name. The expected texts were written by Python 3.11: repr (".0" taken
 * off), "%g", and bytes.decode("utf-8", "replace"). */
#include "base/text.h"

#include <locale.h>

#include "check.h"

static const struct {
    double v;
    const char *text;
} SHORTEST[] = {
    {0x0.0p+0, "0"},
    {-0x0.0p+0, "-0"},
    {0x1.0000000000000p+0, "1"},
    {-0x1.0000000000000p+0, "-1"},
    {0x1.999999999999ap-4, "0.1"},
    {0x1.999999999999ap-3, "0.2"},
    {0x1.3333333333333p-2, "0.3"},
    {0x1.5555555555555p-2, "0.3333333333333333"},
    {0x1.5555555555555p-1, "0.6666666666666666"},
    {0x1.9000000000000p+6, "100"},
    {0x1.0000000000000p+9, "512"},
    {0x1.86a0000000000p+16, "100000"},
    {0x1.e240000000000p+16, "123456"},
    {0x1.c6bf526340000p+49, "1000000000000000"},
    {0x1.1c37937e07fffp+53, "9999999999999998"},
    {0x1.1c37937e08000p+53, "1e+16"},
    {0x1.6345785d8a000p+56, "1e+17"},
    {0x1.aa535d3d0c000p+53, "1.5e+16"},
    {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
    {0x1.a36e2eb1c432dp-14, "0.0001"},
    {0x1.4f8b588e368f1p-17, "1e-05"},
    {0x1.0c6f7a0b5ed8dp-20, "1e-06"},
    {0x1.02e4b6ce5dc68p-13, "0.00012345"},
    {0x1.9e3abe16fc70dp-17, "1.2345e-05"},
    {0x1.0f0cf064dd592p+73, "1e+22"},
    {0x1.52d02c7e14af6p+76, "1e+23"},
    {0x0.0000000000001p-1022, "5e-324"},
    {0x1.0000000000000p-1022, "2.2250738585072014e-308"},
    {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
    {0x1.4f8b588e368f1p-18, "5e-06"},
    {0x1.3333333333334p-2, "0.30000000000000004"},
    {0x1.921fb54442d18p+1, "3.141592653589793"},
    {0x1.0000000000000p-44, "5.684341886080802e-14"},
    {0x1.0000000000000p+53, "9007199254740992"},
    {0x0.0000000000001p-1022, "5e-324"},
    {0x1.0000000000000p+53, "9007199254740992"},
    {0x0.0000000000002p-1022, "1e-323"},
    {0x1.3333333333334p-2, "0.30000000000000004"},
    {0x1.1666666666666p+2, "4.35"},
    {0x1.249ad2594c37dp+332, "1e+100"},
    {0x1.34a456d5cfaadp+10, "1234.5678"},
    {-0x1.5798ee2308c3ap-29, "-2.5e-09"},
};

static void test_format_double(void) {
    char out[RRL_NUMBER_CHARS];
    for (size_t i = 0; i < sizeof SHORTEST / sizeof *SHORTEST; i++) {
        rrl_format_double(out, SHORTEST[i].v);
        CHECK_EQ_STR(out, SHORTEST[i].text);
        double back = 7;
        CHECK(rrl_parse_double(&back, out));
        CHECK(memcmp(&back, &SHORTEST[i].v, sizeof back) == 0);
    }
    static const struct {
        double v;
        const char *text;
    } SPECIAL[] = {{NAN, "nan"}, {-NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
    for (size_t i = 0; i < sizeof SPECIAL / sizeof *SPECIAL; i++) {
        double back = 7;
        rrl_format_double(out, SPECIAL[i].v);
        CHECK_EQ_STR(out, SPECIAL[i].text);
        CHECK(rrl_parse_double(&back, out));
        CHECK_NEAR(back, SPECIAL[i].v, 0);
    }
}

static void test_format_g(void) {
    static const struct {
        double v;
        const char *text;
    } CASES[] = {
        {0.0, "0"},
        {0.1, "0.1"},
        {0.4, "0.4"},
        {1e-05, "1e-05"},
        {123456789.0, "1.23457e+08"},
        {100000.0, "100000"},
        {1000000.0, "1e+06"},
        {0.6666666666666666, "0.666667"},
        {0.00012345678, "0.000123457"},
        {100.0, "100"},
        {-0.05, "-0.05"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char out[RRL_NUMBER_CHARS];
        rrl_format_g(out, CASES[i].v);
        CHECK_EQ_STR(out, CASES[i].text);
    }
}

static void test_parse(void) {
    static const struct {
        const char *text;
        bool ok;
        double v;
    } DOUBLES[] = {
        {"1", true, 1},         {"-1.5", true, -1.5}, {"+.5", true, 0.5},  {"5.", true, 5},
        {"1e3", true, 1000},    {"1E-2", true, 0.01}, {"1e-400", true, 0}, {"", false, 0},
        {"-", false, 0},        {".", false, 0},      {"1e", false, 0},    {"1e+", false, 0},
        {" 1", false, 0},       {"1 ", false, 0},     {"0x10", false, 0},  {"1e999", false, 0},
        {"-1e999", false, 0},   {"1,5", false, 0},    {"1.5.2", false, 0}, {"NaN", false, 0},
        {"infinity", false, 0}, {"1f", false, 0},     {"--1", false, 0},
    };
    for (size_t i = 0; i < sizeof DOUBLES / sizeof *DOUBLES; i++) {
        double v = 77;
        bool ok = rrl_parse_double(&v, DOUBLES[i].text);
        if (!CHECK(ok == DOUBLES[i].ok)) fprintf(stderr, "  text \"%s\"\n", DOUBLES[i].text);
        CHECK_NEAR(v, ok ? DOUBLES[i].v : 77, 0);
    }
    static const struct {
        const char *text;
        bool ok;
        int64_t v;
    } INTS[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+12", true, 12},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {" 1", false, 0},
        {"1.0", false, 0},
        {"0x1", false, 0},
        {"1e3", false, 0},
    };
    for (size_t i = 0; i < sizeof INTS / sizeof *INTS; i++) {
        int64_t v = 77;
        bool ok = rrl_parse_int64(&v, INTS[i].text);
        if (!CHECK(ok == INTS[i].ok)) fprintf(stderr, "  text \"%s\"\n", INTS[i].text);
        CHECK_EQ_INT(v, ok ? INTS[i].v : 77);
    }
}

static void test_utf8(void) {
    static const struct {
        const char *bytes;
        size_t len, valid; /* bytes of valid UTF-8 at the start */
        const char *replaced;
        size_t replaced_len;
    } CASES[] = {
        {"", 0, 0, "", 0},
        {"abc", 3, 3, "abc", 3},
        {"h\303\251\342\202\254\360\237\230\200", 10, 10, "h\303\251\342\202\254\360\237\230\200", 10},
        {"\200", 1, 0, "\357\277\275", 3},
        {"\277\200a", 3, 0, "\357\277\275\357\277\275a", 7},
        {"\300\200", 2, 0, "\357\277\275\357\277\275", 6},
        {"\301\277", 2, 0, "\357\277\275\357\277\275", 6},
        {"\302", 1, 0, "\357\277\275", 3},
        {"\302A", 2, 0, "\357\277\275A", 4},
        {"\340\200\200", 3, 0, "\357\277\275\357\277\275\357\277\275", 9},
        {"\340\240", 2, 0, "\357\277\275", 3},
        {"\340\240A", 3, 0, "\357\277\275A", 4},
        {"\342\202", 2, 0, "\357\277\275", 3},
        {"\342\202\303\251", 4, 0, "\357\277\275\303\251", 5},
        {"\355\240\200", 3, 0, "\357\277\275\357\277\275\357\277\275", 9},
        {"\355\237\277", 3, 3, "\355\237\277", 3},
        {"\356\200\200", 3, 3, "\356\200\200", 3},
        {"\357\277\275", 3, 3, "\357\277\275", 3},
        {"\360\200\200\200", 4, 0, "\357\277\275\357\277\275\357\277\275\357\277\275", 12},
        {"\360\220\200", 3, 0, "\357\277\275", 3},
        {"\360\237\230", 3, 0, "\357\277\275", 3},
        {"\360\237\230\360\237\230\200", 7, 0, "\357\277\275\360\237\230\200", 7},
        {"\360\237", 2, 0, "\357\277\275", 3},
        {"\360", 1, 0, "\357\277\275", 3},
        {"\364\217\277\277", 4, 4, "\364\217\277\277", 4},
        {"\364\220\200\200", 4, 0, "\357\277\275\357\277\275\357\277\275\357\277\275", 12},
        {"\365\200\200\200", 4, 0, "\357\277\275\357\277\275\357\277\275\357\277\275", 12},
        {"\370\210\200\200\200", 5, 0, "\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275", 15},
        {"\377\376", 2, 0, "\357\277\275\357\277\275", 6},
        {"a\361\200\200\341\200\302b", 8, 1, "a\357\277\275\357\277\275\357\277\275b", 11},
        {"\355\240\275\355\270\200", 6, 0,
         "\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275", 18},
        {"x\000y\377", 4, 3, "x\000y\357\277\275", 6},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_buffer b = {0};
        CHECK_EQ_INT(rrl_utf8_valid(CASES[i].bytes, CASES[i].len), CASES[i].valid);
        CHECK_OK(rrl_utf8_replace(&b, CASES[i].bytes, CASES[i].len));
        bool same = b.len == CASES[i].replaced_len && memcmp(b.data, CASES[i].replaced, b.len) == 0;
        if (!CHECK(same)) fprintf(stderr, "  case %zu: \"%s\"\n", i, b.data);
        rrl_buffer_free(&b);
    }
}

/* Every code point goes through put, valid and next unchanged. */
static void test_utf8_round_trip(void) {
    int wrong = 0;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp == 0xD800) cp = 0xE000;
        char bytes[8];
        rrl_buffer b = {.data = bytes, .capacity = sizeof bytes}; /* never grows */
        wrong += rrl_utf8_put(&b, cp) != RRL_OK || rrl_utf8_valid(b.data, b.len) != b.len;
        const char *p = b.data;
        wrong += rrl_utf8_next(&p, b.data + b.len) != cp || p != b.data + b.len;
    }
    CHECK_EQ_INT(wrong, 0);
    rrl_buffer b = {0};
    CHECK_STATUS(rrl_utf8_put(&b, 0xD800), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_utf8_put(&b, 0x110000), RRL_ERR_RANGE);
    CHECK_EQ_INT(b.len, 0);
}

static void test_nearest_name(void) {
    static const char *const NAMES[] = {"learning_rate", "batch_size", "beta", "seed", "max_steps"};
    static const struct {
        const char *text, *want;
    } CASES[] = {
        {"learning_rat", "learning_rate"},
        {"lerning_rates", "learning_rate"},
        {"batchsize", "batch_size"},
        {"betta", "beta"},
        {"max_step", "max_steps"},
        {"seeds", "seed"},
        {"b", NULL} /* 3 edits, but that is more than it has letters */,
        {"output_dir", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        CHECK_EQ_STR(rrl_nearest_name(CASES[i].text, NAMES, 5), CASES[i].want);
    static const char *const TIED[] = {"abd", "abe"};
    CHECK_EQ_STR(rrl_nearest_name("abc", TIED, 2), "abd");              /* the first of equals */
    CHECK_EQ_STR(rrl_nearest_name("max_stXYZ", NAMES, 5), "max_steps"); /* 3 edits */
    CHECK_EQ_STR(rrl_nearest_name("max_sWXYZ", NAMES, 5), NULL);        /* 4 edits */
    CHECK_EQ_STR(rrl_nearest_name("x", NULL, 0), NULL);
}

/* The same under a locale that writes a comma. Where the system has none, localedef makes one in the build
 * folder; the test says so if neither works. */
static void test_comma_locale(void) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *found = NULL;
    for (size_t i = 0; i < 4 && !found; i++) found = setlocale(LC_ALL, NAMES[i]);
    if (!found &&
        system("mkdir -p '" RRL_BINARY_DIR "/locale' && localedef -i de_DE -f UTF-8 '" RRL_BINARY_DIR
               "/locale/de_DE.UTF-8' >/dev/null 2>&1") != -1) {
        setenv("LOCPATH", RRL_BINARY_DIR "/locale", 1);
        found = setlocale(LC_ALL, "de_DE.UTF-8");
    }
    if (!found) {
        fprintf(stderr, "no locale with a decimal comma here: that part was not tested\n");
        return;
    }
    char comma[16];
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    CHECK_EQ_STR(comma, "0,5"); /* the locale does what this test needs */
    test_format_double();
    test_format_g();
    test_parse();
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    CHECK_EQ_STR(comma, "0,5"); /* and was given back */
    setlocale(LC_ALL, "C");
}

static void test_wrap(void) {
    static const struct {
        const char *what, *text;
        int indent, columns;
        const char *want;
    } CASES[] = {
        {"empty", "", 2, 10, "\n"},
        {"fits exactly", "12345678", 2, 10, "12345678\n"},
        {"two lines", "12345678 9", 2, 10, "12345678\n  9\n"},
        {"break at the last space that fits", "ab cd efgh ij", 2, 10, "ab cd\n  efgh ij\n"},
        {"a word too long", "x 1234567890 y", 2, 10, "x\n  1234567890\n  y\n"},
        {"spaces at the end", "12345678   ", 2, 10, "12345678\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        rrl_buffer b = {0};
        if (CHECK_OK(rrl_buffer_wrap(&b, CASES[i].text, CASES[i].indent, CASES[i].columns)) &&
            strcmp(b.data, CASES[i].want) != 0) {
            fprintf(stderr, "%s: \"%s\"\n", CASES[i].what, b.data);
            CHECK(0);
        }
        rrl_buffer_free(&b);
    }
}

int main(void) {
    test_format_double();
    test_format_g();
    test_parse();
    test_utf8();
    test_utf8_round_trip();
    test_nearest_name();
    test_comma_locale();
    test_wrap();
    return CHECK_DONE();
}

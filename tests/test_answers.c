/* The answer parser against a file of cases (argument; default: the project's copy), one JSON object a line:
 *
 *   completion | completion_parts | completion_b64, gold, expected_extracted (null: no scalar; a word counts only where
 *   the gold is a word), also_accepted_extracted, expected_value, expected_equal, verifier ("rule" unless given), level
 *
 * A `must` case that differs fails the test, a line each. `policy` cases are choices (docs/verification.md lists ours):
 * where we differ from the file a note is printed. Extracted texts agree when their normal forms do. Then follow
 * properties that no case file holds: digits of all scripts, markers, linear time on hostile megabytes. */
#include "check.h"

#include <stdbool.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "json_nul.h"
#include "rrl/verify.h"
#include "verify/points.h"
#include "verify/references.h"

static void put(rrl_buffer *b, const void *bytes, size_t n) {
    if (!CHECK_OK(rrl_buffer_put(b, bytes, n))) exit(1);
}

static void put_text(rrl_buffer *out, const char *text) {
    if (!CHECK_OK(json_nul_text(out, text))) exit(1);
}

static void put_base64(rrl_buffer *out, const char *text) {
    static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    rrl_buffer bytes = {0};
    unsigned bits = 0, have = 0;
    for (; *text && *text != '='; text++) {
        const char *at = strchr(ALPHABET, *text);
        if (!CHECK(at != NULL)) continue;
        bits = (bits << 6 | (unsigned)(at - ALPHABET)) & 0xFFFF;
        have += 6;
        if (have >= 8) {
            have -= 8;
            unsigned char byte = (unsigned char)(bits >> have);
            put(&bytes, &byte, 1);
        }
    }
    /* the one text of a completion: invalid bytes replaced, as the tokenizer's decoder does */
    CHECK_OK(rrl_utf8_replace(out, bytes.data ? bytes.data : "", bytes.len));
    rrl_buffer_free(&bytes);
}

static void completion_of(rrl_buffer *out, const cJSON *c) {
    const cJSON *text = cJSON_GetObjectItem(c, "completion"), *parts = cJSON_GetObjectItem(c, "completion_parts");
    const cJSON *b64 = cJSON_GetObjectItem(c, "completion_b64"), *part;
    put(out, "", 0);
    if (text) put_text(out, text->valuestring);
    if (b64) put_base64(out, b64->valuestring);
    cJSON_ArrayForEach(part, parts) {
        int count = (int)cJSON_GetArrayItem(part, 1)->valuedouble;
        for (int i = 0; i < count; i++) put_text(out, cJSON_GetArrayItem(part, 0)->valuestring);
    }
}

/* ---- one case ---- */

typedef struct {
    char *extracted; /* NULL = none, or none that counts for the gold */
    size_t len;
    char *value;
    bool equal;
} outcome;

static void run_case(outcome *o, const rrl_buffer *completion, const rrl_buffer *gold, const char *verifier) {
    size_t marker_at = 0;
    bool counts = false;
    *o = (outcome){0};
    CHECK_OK(rrl_answer_extract(&o->extracted, &o->len, &marker_at, completion->data, completion->len));
    CHECK(marker_at <= completion->len);
    CHECK_OK(rrl_answer_equal(&o->equal, verifier, o->extracted, o->len, gold->data, gold->len));
    CHECK_OK(rrl_answer_counts(&counts, o->extracted, o->len, gold->data, gold->len));
    CHECK(counts || !o->equal);
    if (!counts) {
        free(o->extracted);
        o->extracted = NULL;
    } else {
        CHECK_OK(rrl_answer_rational(&o->value, o->extracted, o->len));
    }
}

static bool same_spelling(const outcome *o, const cJSON *wanted) {
    if (cJSON_IsNull(wanted) || !wanted) return o->extracted == NULL;
    if (!o->extracted) return false;
    char *a = NULL, *b = NULL;
    CHECK_OK(rrl_answer_normal(&a, o->extracted, o->len));
    CHECK_OK(rrl_answer_normal(&b, wanted->valuestring, strlen(wanted->valuestring)));
    bool same = strcmp(a, b) == 0;
    free(a);
    free(b);
    return same;
}

static bool spelling_accepted(const outcome *o, const cJSON *c) {
    const cJSON *other;
    if (same_spelling(o, cJSON_GetObjectItem(c, "expected_extracted"))) return true;
    const cJSON *others = cJSON_GetObjectItem(c, "also_accepted_extracted");
    cJSON_ArrayForEach(other, others) if (same_spelling(o, other)) return true;
    return false;
}

/* A null value is compared only where no scalar is expected: a value of a thousand digits is left out of the file. */
static bool value_accepted(const outcome *o, const cJSON *c) {
    const cJSON *value = cJSON_GetObjectItem(c, "expected_value");
    if (!cJSON_IsString(value) || !o->extracted) return true;
    return o->value && strcmp(o->value, value->valuestring) == 0;
}

/* Returns 1 for a failed must case. */
static int judge_case(const cJSON *c) {
    rrl_buffer completion = {0}, gold = {0};
    outcome o;
    const cJSON *verifier = cJSON_GetObjectItem(c, "verifier");
    const char *level = cJSON_GetObjectItem(c, "level")->valuestring;
    const char *id = cJSON_GetObjectItem(c, "id")->valuestring;
    completion_of(&completion, c);
    put(&gold, "", 0);
    put_text(&gold, cJSON_GetObjectItem(c, "gold")->valuestring);
    run_case(&o, &completion, &gold, verifier ? verifier->valuestring : "rule");
    bool wanted = cJSON_IsTrue(cJSON_GetObjectItem(c, "expected_equal"));
    bool spelling = spelling_accepted(&o, c), value = value_accepted(&o, c);
    bool agrees = spelling && value && o.equal == wanted, must = strcmp(level, "must") == 0;
    if (!agrees)
        printf("%s %s: extracted %s%.60s%s (%s), value %.60s (%s), equal %d (expected %d)\n",
               must ? "FAILED" : "note: policy", id, o.extracted ? "\"" : "",
               o.extracted ? o.extracted : "none", o.extracted ? "\"" : "",
               spelling ? "as expected" : "differs", o.value ? o.value : "none", value ? "as expected" : "differs",
               o.equal, wanted);
    free(o.extracted);
    free(o.value);
    rrl_buffer_free(&completion);
    rrl_buffer_free(&gold);
    return must && !agrees;
}

static int judge_file(const char *path) {
    char *text = NULL;
    size_t len = 0;
    int failed = 0, cases = 0;
    if (!CHECK_OK(rrl_file_read(&text, &len, path, 256u << 20))) return 1;
    for (char *line = text, *end; line < text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        if (!end) end = text + len;
        if (end == line) continue;
        rrl_buffer json = {0};
        cJSON *c = NULL;
        if (CHECK_OK(json_nul_hide(&json, line, (size_t)(end - line))) &&
            CHECK_OK(rrl_json_parse(&c, json.data, json.len, path))) {
            failed += judge_case(c);
            cases++;
        }
        cJSON_Delete(c);
        rrl_buffer_free(&json);
    }
    free(text);
    CHECK(cases > 0);
    printf("%s: %d cases, %d must cases failed\n", path, cases, failed);
    return failed;
}

/* ---- properties ---- */

/* Zeros of the decimal digits of Unicode 14.0, from Python's unicodedata (each followed by its 1 to 9). */
static const uint32_t ZEROS[] = {
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
    0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0,
    0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50,
    0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950,
    0x1FBF0,
};

static void check_digits(void) {
    for (size_t k = 0; k < sizeof ZEROS / sizeof *ZEROS; k++)
        for (uint32_t v = 0; v < 10; v++) CHECK_EQ_INT(rrl_point_digit(ZEROS[k] + v), v);
    CHECK_EQ_INT(rrl_point_digit(0xB2), -1);   /* superscript two: no decimal digit */
    CHECK_EQ_INT(rrl_point_digit(0x2162), -1); /* Roman numeral three */
    uint32_t run = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) { /* newer scripts: whole tens, in order */
        int v = rrl_point_digit(cp);
        if (v >= 0)
            CHECK_EQ_INT(v, run++ % 10);
        else if (run) {
            CHECK_EQ_INT(run % 10, 0);
            run = 0;
        }
    }
}

/* Our own choices, with words. NULL = none. */
static const struct {
    const char *what, *text, *extracted;
} EXTRACTIONS[] = {
    {"emphasis between marker and colon", "**Final answer**: 12", "12"},
    {"emphasis alone on the marker's line", "**Final answer:**\n\n42", "42"},
    {"display math behind the marker", "The answer is:\n\\[\n42\n\\]", "42"},
    {"a fence behind the marker", "Final answer:\n```\n42\n```", "42"},
    {"a dash without a blank is no separator", "Final answer -12", NULL},
    {"an outer box holds the answer", "\\boxed{3 + \\boxed{4}}", "3 + \\boxed{4}"},
    {"an open outer box hides nothing", "\\boxed{ \\boxed{5}", "5"},
    {"the last box is open", "\\boxed{12} and \\boxed{13", NULL},
    {"escaped braces", "\\boxed{\\{3\\}}", "\\{3\\}"},
    {"a box on the marker's line", "Final answer: \\boxed{7} apples", "7"},
    {"spaces as thousands", "Final answer: 10 000", "10 000"},
    {"a power is no grouping", "Final answer: 2**100", "2**100"},
    {"emphasised digits are not joined", "Final answer: 2 **100**", "2 **100"},
    {"wrapped digits are not joined", "Final answer: 2\\text{100}", "2\\text{100}"},
    {"zero as thousands", "Final answer: 0,500", "0,500"},
    {"thousands or mixed", "Final answer: 1 200/300", "1 200/300"},
    {"fraction character", "Final answer: 2\xC2\xBD cups", "2  1/2"},
    {"full-width digits", "Final answer: \xEF\xBC\x94\xEF\xBC\x92", "\xEF\xBC\x94\xEF\xBC\x92"},
    {"variable and dash", "Final answer: x - 5", "x - 5"},
    {"hyphenated words", "Final answer: T-shirts sold: 12", "12"},
    {"hyphen before digits", "Final answer: x-5", "x-5"},
    {"a factor", "Final answer: 5x", "5x"},
    {"a scale letter", "Final answer: 10k", "10k"},
    {"a scale word", "Final answer: 5 million", "5 million"},
    {"half", "Final answer: 3 and a half", "3 and a half"},
    {"sign in words", "Final answer: minus 5", "minus 5"},
    {"denied", "Final answer: it isn't 12", "it isn't 12"},
    {"signed number in a sentence", "Final answer: It fell by -5 degrees", "-5"},
    {"a dash that may be a minus", "Final answer: It is - 5 degrees", "It is - 5 degrees"},
    {"a dash behind a noun", "Final answer: Total - 12", "12"},
    {"minus before currency", "Final answer: -\xC2\xA3""5 each", "-5"},
    {"speed", "Final answer: 60 km/h", "60"},
    {"rate", "Final answer: $12/hour", "12"},
    {"a quotient with a name", "Final answer: 12/x", "12/x"},
    {"about", "Final answer: ~12", "~12"},
    {"a tie", "Final answer: 12~cm", "12"},
    {"area", "Final answer: 27 m^2", "27"},
    {"degrees", "Final answer: 30^\\circ", "30"},
    {"twice, no sentence between", "Final answer: 12, 12", "12, 12"},
    {"twice, both quantities", "Final answer: 12 apples and 12 pears", "12 apples and 12 pears"},
    {"conclusion", "We add.\nTherefore, the total is **\\$2220**.", "2220"},
    {"conclusion without a comma", "So the total is **42**", "42"},
    {"a name is no conclusion word", "Sofia has **42**", NULL},
    {"conclusion not last", "So the total is **42**\nbye", NULL},
    {"conclusion with two numbers", "So it is **3** or **5**", NULL},
    {"conclusion that denies", "So it is not **5**", NULL},
    {"conclusion with a word", "So it is **green**", NULL},
    {"bare scalar with emphasis", "**42**", "42"},
    {"bare fraction", "\\frac{1}{2}", "\\frac{1}{2}"},
    {"letters behind is", "The answer isn't 12", NULL},
    {"no letter behind is", "The answer is12", "12"},
    {"no number", "Final answer: nan", NULL},
    {"pair in parentheses", "Final answer: (3, 500)", "(3, 500)"},
    {"fraction of sums stays one", "\\boxed{\\frac{1+1}{2}}", "\\frac{1+1}{2}"},
    {"one-digit fraction, then a digit", "\\boxed{\\frac123}", "\\frac123"},
};

static void check_extractions(void) {
    for (size_t k = 0; k < sizeof EXTRACTIONS / sizeof *EXTRACTIONS; k++) {
        char *got = NULL;
        size_t len, at;
        CHECK_OK(rrl_answer_extract(&got, &len, &at, EXTRACTIONS[k].text, strlen(EXTRACTIONS[k].text)));
        if (!CHECK_EQ_STR(got, EXTRACTIONS[k].extracted)) fprintf(stderr, "  case: %s\n", EXTRACTIONS[k].what);
        free(got);
    }
}

static const struct {
    const char *text, *normal, *value; /* value NULL = no scalar */
} NORMALS[] = {
    {"  HELLO world. ", "helloworld", NULL},
    {"+0042", "+0042", "42"},
    {"1,200", "1200", "1200"},
    {"1,2", "1,2", NULL},
    {"\xE2\x88\x92""2", "-2", "-2"},
    {"\\frac{1}{2}", "1/2", "1/2"},
    {"3/6", "3/6", "1/2"},
    {"1e2", "1e2", "100"},
    {"2.5E+2", "2.5e2", "250"},
    {"-1 1/4", "-1 1/4", "-5/4"},
    {"11/4", "11/4", "11/4"},
    {"5 6", "5 6", NULL},
    {"1/0", "1/0", NULL},
    {".5/.25", ".5/.25", "2"},
    {"\\frac{1+1}{2}", "(1+1)/2", NULL},
    {"2.46 \\times 10^{-3}", "2.46e-3", "123/50000"},
    {"Stra\xC3\x9F""e", "strasse", NULL},
    {"E\xCC\x81", "\xC3\xA9", NULL},
    {"1/2/3", "1/2/3", NULL},
    {"--5", "--5", NULL},
    {"$12.50", "12.50", "25/2"},
    {"\\boxed{8}", "8", "8"},
    {"\\left( 8 \\right)", "8", "8"},
    {"1e1000", "1e1000", NULL},
    {"", "", NULL},
};

static void check_normals(void) {
    for (size_t k = 0; k < sizeof NORMALS / sizeof *NORMALS; k++) {
        char *normal = NULL, *value = NULL;
        CHECK_OK(rrl_answer_normal(&normal, NORMALS[k].text, strlen(NORMALS[k].text)));
        CHECK_OK(rrl_answer_rational(&value, NORMALS[k].text, strlen(NORMALS[k].text)));
        CHECK_EQ_STR(normal, NORMALS[k].normal);
        CHECK_EQ_STR(value, NORMALS[k].value);
        free(normal);
        free(value);
    }
}

static void check_limits(void) {
    char digits[400];
    char *value = NULL;
    memset(digits, '7', sizeof digits);
    CHECK_OK(rrl_answer_rational(&value, digits, 256));
    CHECK(value != NULL && strlen(value) == 256);
    free(value);
    CHECK_OK(rrl_answer_rational(&value, digits, 257));
    CHECK(value == NULL);
    bool equal = true; /* refused numbers equal nothing, themselves included */
    CHECK_OK(rrl_answer_equal(&equal, "rule", digits, 257, digits, 257));
    CHECK(!equal);
    CHECK_OK(rrl_answer_equal(&equal, "rule", "1/0", 3, "1/0", 3));
    CHECK(!equal);
    CHECK_OK(rrl_answer_equal(&equal, "rule", NULL, 0, "5", 1));
    CHECK(!equal);
    CHECK_OK(rrl_answer_equal(&equal, "rule", "12", 2, "12 wombats", 10));
    CHECK(equal);
    CHECK_STATUS(rrl_answer_equal(&equal, "lenient", "1", 1, "1", 1), RRL_ERR_CONFIG);
}

static void check_markers(void) {
    static const struct {
        const char *text;
        size_t at;
    } PLACES[] = {
        {"Compute 6*7. Final answer: 42.", 13}, {"42", 2},  {"no answer", 9}, {"a\nSo it is **7**.", 11},
        {"Final answer: \\boxed{5}", 0},         {"ab \\boxed{5}", 3},
    };
    for (size_t k = 0; k < sizeof PLACES / sizeof *PLACES; k++) {
        char *got = NULL;
        size_t len, at;
        CHECK_OK(rrl_answer_extract(&got, &len, &at, PLACES[k].text, strlen(PLACES[k].text)));
        CHECK_EQ_INT(at, PLACES[k].at);
        free(got);
    }
}

/* References that nothing equals are told once a set, the first by its line, whatever the order of the rows. */
static void check_references(void) {
    rrl_question rows[] = {{.id = "a", .reference = "12"},  {.id = "b", .reference = "nan", .line = 9},
                           {.id = "c", .reference = "1/0", .line = 4}, {.id = "d", .reference = "green"},
                           {.id = "e", .reference = "12 k"}};
    rrl_questions q = {.rows = rows, .n = 5};
    rrl_buffer note = {0};
    CHECK_OK(rrl_references_note(&note, &q, "training set"));
    CHECK_EQ_STR(note.data, "training set: 2 of 5 references can never be right, so every answer to them is wrong; the first "
                            "is \"1/0\" in line 4, question c");
    rrl_buffer_free(&note);
    q.n = 1;
    CHECK_OK(rrl_references_note(&note, &q, "training set"));
    CHECK_EQ_INT(note.len, 0);
    rrl_buffer_free(&note);
}

/* Texts of 1 MB that make a parser with backtracking or restarts take hours: quadratic work would be 10^12 steps, which
 * CTest's time limit does not allow. */
static void check_hostile(void) {
    static const char *const PIECES[] = {
        "\\boxed{", "\\boxed {", "\\boxed{5}", "{", "}", "\\boxed", "\\boxed ", "\\fbox{\\boxed{1}", " ", "\n", "#",
        "####", "final answer", "final answer ", "Final answer: ", "final ", "the final answer is", "the ",
        "the answer is ", "*", "**", "** ", "_", "`", "\\", "\\(", "$", "9", "9 ", "1,", "9.", "-", "- 5", "(", ")",
        "\\frac{", "\\frac12", "\\text{", "<answer>", "So **5", "So **", "\xC2\xA0", "\xE2\x80\x8B", "\xFF", "\xE2\x80", "\r",
        "final\t\xE2\x80\x83",
        "\"", "'", "n't ", "\\left(", "12. ", "^", "10^{", "\\times 10^{3}", "\xC2\xBD",
    };
    static const char *const HEADS[] = {"", "Final answer: ", "\\boxed{", "So it is **"};
    enum { BYTES = 1 << 20 };
    for (size_t k = 0; k < sizeof PIECES / sizeof *PIECES; k++)
        for (size_t h = 0; h < sizeof HEADS / sizeof *HEADS; h++) {
            rrl_buffer text = {0};
            char *got = NULL;
            size_t len, at, n = strlen(PIECES[k]);
            put(&text, HEADS[h], strlen(HEADS[h]));
            /* the megabyte behind each head, and the longest that the parser reads as one answer */
            for (size_t bytes = h % 2 ? 4000 : BYTES; text.len < bytes;) put(&text, PIECES[k], n);
            if (h == 3) put(&text, "**", 2);
            CHECK_OK(rrl_answer_extract(&got, &len, &at, text.data, text.len));
            free(got);
            rrl_buffer_free(&text);
        }
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden/answers.jsonl";
    int failed = judge_file(path);
    check_digits();
    check_extractions();
    check_normals();
    check_limits();
    check_markers();
    check_references();
    check_hostile();
    return CHECK_DONE() || failed ? 1 : 0;
}

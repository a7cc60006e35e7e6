/* Tokenizers and prompts: golden ids and texts, near-linear time, and files that must be refused by name. */
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "data/prompt.h"
#include "data/tokenizer.h"
#include "golden_tokenizer.h"

static char folder[] = "/tmp/rrl-tokenizer-XXXXXX"; /* of the made-up files */

static void write_file(const char *name, const char *text, size_t len) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(rrl_file_publish(path, text, len));
}

static void remove_file(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* Ids as "1 2 3". */
static void check_encodes(const rrl_tokenizer *t, const char *text, const char *want) {
    int32_t *ids = NULL;
    int64_t n = 0;
    rrl_buffer got = {0};
    CHECK_OK(rrl_tokenizer_encode(&ids, &n, t, text, strlen(text)));
    CHECK_OK(rrl_buffer_puts(&got, ""));
    for (int64_t i = 0; i < n; i++) CHECK_OK(rrl_buffer_printf(&got, "%s%d", i ? " " : "", ids[i]));
    CHECK_EQ_STR(got.data, want);
    rrl_buffer_free(&got);
    free(ids);
}

/* ---- golden */

static void test_golden(const char *golden) {
    static const char *const FOLDERS[] = {"tokenizer", "tokenizer-qwen"};
    for (int i = 0; i < 2; i++) {
        char path[4096];
        int checks = 0;
        snprintf(path, sizeof path, "%s/%s", golden, FOLDERS[i]);
        CHECK_EQ_INT(golden_tokenizer(&checks, path), 0);
        CHECK(checks > 1000);
    }
}

/* Values of tokenizers 0.22.2 for the marks that came after the Unicode version of its NFC, and one that came
 * before. */
static void test_unicode_age(const char *golden) {
    char path[4096];
    rrl_tokenizer *t = NULL;
    snprintf(path, sizeof path, "%s/tokenizer-qwen", golden);
    if (!CHECK_OK(rrl_tokenizer_open(&t, path))) return;
    static const char *const SAME[][2] = {
        {"e\u0301", "\u00e9"},
        {"a\u0301\u0327", "\u00e1\u0327"},                /* 0327 is put first, a and 0301 still join */
        {"a\u09fe\u0327", "a\u09fe\u0327"},               /* Unicode 11: not reordered */
        {"\U00011935\U00011930", "\U00011935\U00011930"}, /* Unicode 13: not composed */
    };
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        int32_t *ids = NULL;
        int64_t n = 0;
        rrl_buffer b = {0};
        CHECK_OK(rrl_tokenizer_encode(&ids, &n, t, SAME[i][0], strlen(SAME[i][0])));
        CHECK_OK(rrl_tokenizer_decode(&b, t, ids, n, false));
        CHECK_EQ_STR(b.data, SAME[i][1]);
        rrl_buffer_free(&b);
        free(ids);
    }
    rrl_tokenizer_close(&t);
}

/* ---- time */

static double seconds_for(const rrl_tokenizer *t, const char *unit, size_t len) {
    char *text = malloc(len);
    size_t n_unit = strlen(unit);
    for (size_t i = 0; i < len; i++) text[i] = unit[i % n_unit];
    struct timespec a, b;
    int32_t *ids = NULL;
    int64_t n = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    CHECK_OK(rrl_tokenizer_encode(&ids, &n, t, text, len));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    CHECK(n > 0);
    free(ids);
    free(text);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

/* One piece of 256 KiB takes a tenth of a second; quadratic merging would take minutes. */
static void test_time(const char *golden) {
    static const char *const UNITS[] = {
        "a", "ab", "!", "\n", " ", "0", "word and word ", "<|im_", "\u0301\u0327", "e\u0f73", "<|im_end|>"};
    char path[4096];
    for (int k = 0; k < 2; k++) {
        rrl_tokenizer *t = NULL;
        snprintf(path, sizeof path, "%s/%s", golden, k ? "tokenizer-qwen" : "tokenizer");
        if (!CHECK_OK(rrl_tokenizer_open(&t, path))) return;
        for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
            CHECK(seconds_for(t, UNITS[i], 1 << 18) < 5.0);
        rrl_tokenizer_close(&t);
    }
}

/* ---- made-up tokenizers */

static const char SMALL[] =
    "{\"added_tokens\":[{\"id\":5,\"content\":\"<e>\",\"special\":true,\"normalized\":false},"
    "{\"id\":9,\"content\":\"<e>>\",\"special\":false,\"normalized\":false}],"
    "\"normalizer\":null,"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":"
    "true},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"unk_token\":null,"
    "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\u0120\":3,\"\u0120a\":4,\"\u00c3\":6,\"\u00a9\":7,\"1\":8},"
    "\"merges\":[\"a b\",[\"\u0120\",\"a\"]]}}";

/* SMALL with `from` replaced by `to`. */
static rrl_status open_variant(rrl_tokenizer **t, const char *from, const char *to) {
    rrl_buffer b = {0};
    const char *at = strstr(SMALL, from);
    if (!CHECK(at != NULL)) return RRL_ERR_INTERNAL;
    CHECK_OK(rrl_buffer_put(&b, SMALL, (size_t)(at - SMALL)));
    CHECK_OK(rrl_buffer_puts(&b, to));
    CHECK_OK(rrl_buffer_puts(&b, at + strlen(from)));
    write_file("tokenizer.json", b.data, b.len);
    rrl_buffer_free(&b);
    return rrl_tokenizer_open(t, folder);
}

static void test_small(void) {
    rrl_tokenizer *t = NULL;
    if (!CHECK_OK(open_variant(&t, "null", "null"))) return;
    check_encodes(t, "", "");
    check_encodes(t, "abab", "2 2");
    check_encodes(t, "aab a ab", "0 2 4 3 2"); /* "a b" has the better rank, so " ab" is not " a" + "b" */
    check_encodes(t, "11a", "8 8 0");
    check_encodes(t, "a<e>b", "0 5 1");
    check_encodes(t, "<e>><e><", "9 5"); /* the longest added token; "<" has no token and is dropped */
    check_encodes(t, "azb", "2");        /* "z" is dropped and its neighbours meet */
    check_encodes(t, "\xc3\xa9", "6 7");
    int32_t *ids = NULL;
    int64_t n = 0;
    CHECK_STATUS(rrl_tokenizer_encode(&ids, &n, t, "a\xff", 2), RRL_ERR_DATA);

    CHECK_EQ_INT(rrl_tokenizer_size(t), 10);
    CHECK_EQ_INT(rrl_tokenizer_id(t, "<e>"), 5);
    CHECK_EQ_INT(rrl_tokenizer_id(t, "\u0120a"), 4);
    CHECK_EQ_INT(rrl_tokenizer_id(t, "none"), -1);
    CHECK_EQ_INT(rrl_tokenizer_eos(t), -1);
    CHECK(rrl_tokenizer_chat_template(t) == NULL);

    const int32_t list[] = {4, 6, 5, 7, 100, -1, 9, 6, 0};
    rrl_buffer b = {0};
    CHECK_OK(rrl_tokenizer_bytes(&b, t, list, 9, false));
    CHECK_EQ_STR(b.data, " a\xc3<e>\xa9<e>>\xc3"
                         "a");
    b.len = 0;
    CHECK_OK(rrl_tokenizer_decode(&b, t, list, 9, true)); /* bytes meet across the token left out */
    CHECK_EQ_STR(b.data, " a\u00e9<e>>\ufffd"
                         "a");
    rrl_buffer_free(&b);
    rrl_tokenizer_close(&t);
}

static void test_variants(void) {
    rrl_tokenizer *t = NULL;
    if (CHECK_OK(open_variant(&t, "\"unk_token\":null", "\"ignore_merges\":true")))
        check_encodes(t, " a ab", "4 3 2");
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_variant(&t, "\"unk_token\":null", "\"unk_token\":\"1\"")))
        check_encodes(t, "azb", "0 8 1");
    rrl_tokenizer_close(&t);
    static const char SPLIT[] = "{\"type\":\"Digits\",\"individual_digits\":true}";
    if (CHECK_OK(open_variant(
            &t, SPLIT, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"b\"},\"behavior\":\"Isolated\"}")))
        check_encodes(t, "abab", "0 1 0 1");
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_variant(
            &t, SPLIT, "{\"type\":\"Split\",\"pattern\":{\"String\":\"b\"},\"behavior\":\"Removed\"}")))
        check_encodes(t, "abab", "0 0");
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_variant(
            &t, SPLIT,
            "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a|1\"},\"behavior\":\"Removed\",\"invert\":true}")))
        check_encodes(t, "ab1b", "0 8");
    rrl_tokenizer_close(&t);
    /* U+0085 is white space and is cut out; U+180E is none (PCRE2 by itself says it is), it only has no token
     */
    if (CHECK_OK(
            open_variant(&t,
                         "{\"type\":\"Digits\",\"individual_digits\":true},"
                         "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}",
                         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s\"},\"behavior\":\"Removed\"},"
                         "{\"type\":\"ByteLevel\",\"use_regex\":false}"))) {
        check_encodes(t,
                      "a\xe1\xa0\x8e"
                      "b",
                      "2");
        check_encodes(t,
                      "a\xc2\x85"
                      "b",
                      "0 1");
    }
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_variant(
            &t, SPLIT, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x*\"},\"behavior\":\"Isolated\"}")))
        check_encodes(t, "ab\u00e9", "0 1 6 7"); /* empty matches cut between characters, never inside one */
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_variant(&t, "\"special\":true,\"normalized\":false",
                              "\"special\":true,\"normalized\":true")))
        check_encodes(t, "a<e>b<e>>", "0 5 1 9");
    rrl_tokenizer_close(&t);
}

static void test_refused(void) {
    static const struct {
        const char *what, *from, *to, *message;
    } CASES[] = {
        {"other model", "\"BPE\"", "\"Unigram\"", "Unigram"},
        {"no model", "\"model\"", "\"modell\"", "model"},
        {"other normaliser", "\"normalizer\":null", "\"normalizer\":{\"type\":\"NFKC\"}", "NFKC"},
        {"other pre-tokenizer", "\"Digits\"", "\"Metaspace\"", "Metaspace"},
        {"other decoder", "\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":{\"type\":\"WordPiece\"}",
         "WordPiece"},
        {"prefix space", "\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space"},
        {"no ByteLevel", "{\"type\":\"ByteLevel\",\"add",
         "{\"type\":\"Digits\",\"individual_digits\":true,\"add", "ByteLevel"},
        {"step after ByteLevel", "[{\"type\":\"Digits\"", "[{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"",
         "after ByteLevel"},
        {"pattern", "{\"type\":\"Digits\",\"individual_digits\":true}",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}", "pattern ("},
        {"nested set", "{\"type\":\"Digits\",\"individual_digits\":true}",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[b]]\"},\"behavior\":\"Isolated\"}", "nested"},
        {"behaviour", "{\"type\":\"Digits\",\"individual_digits\":true}",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"MergedWithNext\"}",
         "MergedWithNext"},
        {"byte fallback", "\"unk_token\":null", "\"byte_fallback\":true", "byte_fallback"},
        {"dropout", "\"unk_token\":null", "\"dropout\":0.1", "dropout"},
        {"unknown token", "\"unk_token\":null", "\"unk_token\":\"zz\"", "zz"},
        {"token twice", "\"b\":1", "\"a\":1", "\"a\""},
        {"id twice", "\"b\":1", "\"b\":0", "id 0"},
        {"negative id", "\"b\":1", "\"b\":-1", "\"b\""},
        {"id with fraction", "\"b\":1", "\"b\":1.5", "\"b\""},
        {"huge id", "\"b\":1", "\"b\":4194304", "\"b\""},
        {"id is text", "\"b\":1", "\"b\":\"1\"", "\"b\""},
        {"empty vocabulary", "\"vocab\":{", "\"vocab\":{},\"x\":{", "vocab"},
        {"merge of no token", "\"a b\"", "\"a c\"", "right part"},
        {"merge into no token", "\"a b\"", "\"b a\"", "result"},
        {"merge without space", "\"a b\"", "\"ab\"", "pair"},
        {"merge with two spaces", "\"a b\"", "\"a b \"", "pair"},
        {"merge is a number", "\"a b\"", "7", "pair"},
        {"added token's id taken", "\"id\":9", "\"id\":1", "id 1"},
        {"added token elsewhere", "\"content\":\"<e>>\"", "\"content\":\"ab\"", "\"ab\""},
        {"added token twice", "\"content\":\"<e>>\"", "\"content\":\"<e>\"", "<e>"},
        {"added token empty", "\"content\":\"<e>>\"", "\"content\":\"\"", "empty"},
        {"added token strips", "\"special\":true", "\"lstrip\":true", "lstrip"},
        {"added tokens are no list", "\"added_tokens\":[", "\"added_tokens\":3,\"x\":[", "added_tokens"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_tokenizer *t = NULL;
        rrl_status rc = open_variant(&t, CASES[i].from, CASES[i].to);
        if (!CHECK_STATUS(rc, RRL_ERR_DATA) || !CHECK(strstr(rrl_error_message(), CASES[i].message) != NULL))
            fprintf(stderr, "  %s: %s\n", CASES[i].what, rrl_error_message());
        CHECK(t == NULL);
        rrl_tokenizer_close(&t);
    }
    for (size_t len = 0; len + 1 < sizeof SMALL; len++) { /* cut anywhere */
        rrl_tokenizer *t = NULL;
        write_file("tokenizer.json", SMALL, len);
        CHECK_STATUS(rrl_tokenizer_open(&t, folder), RRL_ERR_DATA);
    }
    rrl_tokenizer *t = NULL;
    CHECK_STATUS(rrl_tokenizer_open(&t, "/nonexistent"), RRL_ERR_DATA);
}

/* ---- tokenizer_config.json and prompts */

static rrl_status open_with_config(rrl_tokenizer **t, const char *config) {
    write_file("tokenizer_config.json", config, strlen(config));
    return open_variant(t, "null", "null");
}

static void test_config(void) {
    rrl_tokenizer *t = NULL;
    if (CHECK_OK(open_with_config(&t, "{\"eos_token\":\"<e>\",\"chat_template\":\"x\"}"))) {
        CHECK_EQ_INT(rrl_tokenizer_eos(t), 5);
        CHECK_EQ_STR(rrl_tokenizer_chat_template(t), "x");
        CHECK_EQ_INT(strlen(rrl_tokenizer_digest(t)), 64);
    }
    rrl_tokenizer_close(&t);
    if (CHECK_OK(open_with_config(
            &t, "{\"eos_token\":{\"content\":\"<e>\"},\"chat_template\":"
                "[{\"name\":\"tool\",\"template\":\"y\"},{\"name\":\"default\",\"template\":\"z\"}]}"))) {
        CHECK_EQ_INT(rrl_tokenizer_eos(t), 5);
        CHECK_EQ_STR(rrl_tokenizer_chat_template(t), "z");
    }
    rrl_tokenizer_close(&t);
    char with[65] = "";
    write_file("chat_template.jinja", "j", 1);
    if (CHECK_OK(open_with_config(&t, "{}"))) {
        CHECK_EQ_STR(rrl_tokenizer_chat_template(t), "j");
        snprintf(with, sizeof with, "%s", rrl_tokenizer_digest(t));
    }
    rrl_tokenizer_close(&t);
    remove_file("chat_template.jinja");
    if (CHECK_OK(open_with_config(&t, "{}"))) CHECK(strcmp(with, rrl_tokenizer_digest(t)) != 0);
    rrl_tokenizer_close(&t);
    CHECK_STATUS(open_with_config(&t, "{\"eos_token\":\"</s>\"}"), RRL_ERR_DATA);
    CHECK_STATUS(open_with_config(&t, "[]"), RRL_ERR_DATA);
    CHECK_STATUS(open_with_config(&t, "{\"chat_template\":[{\"name\":1}]}"), RRL_ERR_DATA);
}

static void check_prompt(const rrl_tokenizer *t, const char *format, const char *template, const char *chat,
                         const char *name, const char *want) {
    rrl_prompt *p = NULL;
    rrl_buffer b = {0};
    if (CHECK_OK(rrl_prompt_open(&p, t, format, template, chat))) {
        CHECK_EQ_STR(rrl_prompt_name(p), name);
        CHECK_OK(rrl_prompt_text(&b, p, "1+{question}?"));
        CHECK_EQ_STR(b.data, want);
    }
    rrl_buffer_free(&b);
    rrl_prompt_close(&p);
}

static void check_no_prompt(const rrl_tokenizer *t, const char *format, const char *template,
                            const char *chat, const char *message) {
    rrl_prompt *p = NULL;
    CHECK_STATUS(rrl_prompt_open(&p, t, format, template, chat), RRL_ERR_CONFIG);
    if (!CHECK(strstr(rrl_error_message(), message) != NULL)) fprintf(stderr, "  %s\n", rrl_error_message());
}

static void test_prompts(void) {
    rrl_tokenizer *t = NULL;
    char file[256];
    snprintf(file, sizeof file, "%s/chat.txt", folder);
    CHECK_OK(rrl_file_publish(file, "[{system}|{user}]", 17));
    if (!CHECK_OK(open_with_config(&t, "{\"chat_template\":\"{{ messages }}\"}"))) return;

    /* what is put in is not searched for {question} again */
    check_prompt(t, "text", NULL, NULL, "text",
                 "Solve the problem. End with 'Final answer: <answer>'.\nProblem: 1+{question}?\nSolution:");
    check_prompt(t, "text", "{{question}} {x", NULL, "text", "{1+{question}?} {x");
    check_prompt(t, "chat", "{question}", "chatml", "chatml",
                 "<|im_start|>user\n1+{question}?<|im_end|>\n<|im_start|>assistant\n");
    check_prompt(t, "chat", "q {question}", file, "file", "[|q 1+{question}?]");
    check_no_prompt(t, "chat", NULL, NULL,
                    "f24189f08c85a1eb19a737306c3a13e85462ee33d964f28108d64a2485fa2171");
    check_no_prompt(t, "chat", NULL, "llama9", "smollm2, qwen2.5, chatml");
    check_no_prompt(t, "html", NULL, NULL, "html");
    check_no_prompt(t, "text", "no place", NULL, "{question}");
    CHECK_OK(rrl_file_publish(file, "no place", 8));
    check_no_prompt(t, "chat", NULL, file, "{user}");

    rrl_prompt *p = NULL;
    rrl_buffer b = {0};
    CHECK_OK(rrl_prompt_open(&p, t, "chat", NULL, "qwen2.5"));
    CHECK_STATUS(rrl_prompt_render(&b, p, NULL, 0, true), RRL_ERR_CONFIG);
    CHECK_STATUS(rrl_prompt_render(&b, p, &(rrl_message){"tool", "x"}, 1, true), RRL_ERR_CONFIG);
    rrl_prompt_close(&p);
    rrl_buffer_free(&b);
    rrl_tokenizer_close(&t);
}

/* The embedded model: its template is recognised, the ids are those of tokenizers 0.22.2. */
static void test_embedded(void) {
    static const int32_t WANT[] = {1,   302, 201, 307, 291, 310, 16,  312, 289, 303, 275, 273,
                                   28,  304, 263, 296, 201, 201, 297, 28,  461, 534, 223, 20,
                                   22,  404, 471, 223, 20,  475, 503, 16,  313, 311, 404, 336,
                                   346, 535, 33,  201, 201, 314, 28,  2,   201, 1,   315, 201};
    rrl_tokenizer *t = NULL;
    rrl_prompt *p = NULL;
    int32_t *ids = NULL;
    int64_t n = 0;
    if (!CHECK_OK(rrl_tokenizer_open(&t, RRL_SOURCE_DIR "/data/tiny"))) return;
    CHECK_EQ_INT(rrl_tokenizer_eos(t), 2);
    CHECK_EQ_INT(rrl_tokenizer_size(t), 562);
    CHECK_OK(rrl_prompt_open(
        &p, t, "chat",
        "Solve the problem. End with 'Final answer: <answer>'.\n\nProblem: {question}\n\nSolution:", NULL));
    CHECK_EQ_STR(rrl_prompt_name(p), "chatml");
    CHECK_OK(
        rrl_prompt_ids(&ids, &n, p, "Zoe puts 24 beads into 2 equal bins. How many beads does each hold?"));
    CHECK_EQ_INT(n, sizeof WANT / sizeof *WANT);
    CHECK((size_t)n == sizeof WANT / sizeof *WANT && memcmp(ids, WANT, sizeof WANT) == 0);
    free(ids);
    rrl_prompt_close(&p);
    rrl_tokenizer_close(&t);
}

int main(int argc, char **argv) {
    const char *golden = argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden";
    if (!mkdtemp(folder)) return 1;
    test_golden(golden);
    test_unicode_age(golden);
    test_time(golden);
    test_small();
    test_variants();
    test_refused();
    test_config();
    test_prompts();
    test_embedded();
    remove_file("tokenizer.json");
    remove_file("tokenizer_config.json");
    remove_file("chat.txt");
    rmdir(folder);
    return CHECK_DONE();
}

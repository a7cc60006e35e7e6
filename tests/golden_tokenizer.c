#include "golden_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "data/prompt.h"
#include "data/tokenizer.h"
#include "json_nul.h"

enum { MAX_FILE = 64 << 20, MAX_MESSAGES = 64 };

typedef struct {
    rrl_tokenizer *tokenizer;
    rrl_prompt *prompt;
    const char *folder;
    int failures, checks;
} golden;

static void check(golden *g, int ok, const char *file, int i, const char *what) {
    g->checks++;
    if (ok) return;
    g->failures++;
    fprintf(stderr, "%s/%s: case %d: %s\n", g->folder, file, i, what);
}

/* What a failed call said. */
static void check_ok(golden *g, rrl_status rc, const char *file, int i) {
    check(g, rc == RRL_OK, file, i, rc == RRL_OK ? "" : rrl_error_message());
}

static int same_ids(const cJSON *want, const int32_t *ids, int64_t n) {
    if (!cJSON_IsArray(want) || cJSON_GetArraySize(want) != n) return 0;
    const cJSON *node;
    int64_t i = 0;
    cJSON_ArrayForEach(node, want) if (node->valuedouble != ids[i++]) return 0;
    return 1;
}

static int same_text(const cJSON *want, const rrl_buffer *got) {
    rrl_buffer text = {0};
    int same = cJSON_IsString(want) && json_nul_text(&text, want->valuestring) == RRL_OK && text.len == got->len &&
               (got->len == 0 || memcmp(text.data, got->data, got->len) == 0);
    rrl_buffer_free(&text);
    return same;
}

static void check_ids(golden *g, const cJSON *want, const char *text, size_t len, const char *file, int i) {
    int32_t *ids = NULL;
    int64_t n = 0;
    check_ok(g, rrl_tokenizer_encode(&ids, &n, g->tokenizer, text, len), file, i);
    check(g, same_ids(want, ids, n), file, i, "other ids");
    free(ids);
}

static void check_decoded(golden *g, const cJSON *node, const char *key, bool skip_special, int i) {
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(node, "ids"), *id;
    rrl_buffer text = {0};
    int32_t *list = NULL;
    int64_t n = 0;
    check_ok(g, rrl_alloc(&list, (size_t)cJSON_GetArraySize(ids) + 1, sizeof *list, "ids"), "cases.json", i);
    cJSON_ArrayForEach(id, ids) list[n++] = (int32_t)id->valuedouble;
    check_ok(g, rrl_tokenizer_decode(&text, g->tokenizer, list, n, skip_special), "cases.json", i);
    check(g, same_text(cJSON_GetObjectItemCaseSensitive(node, key), &text), "cases.json", i, key);
    rrl_buffer_free(&text);
    free(list);
}

static void check_case(golden *g, const cJSON *node, int i) {
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(node, "text");
    check(g, cJSON_IsString(text), "cases.json", i, "has no text");
    if (!cJSON_IsString(text)) return;
    rrl_buffer bytes = {0};
    check_ok(g, json_nul_text(&bytes, text->valuestring), "cases.json", i);
    check_ids(g, cJSON_GetObjectItemCaseSensitive(node, "ids"), bytes.data, bytes.len, "cases.json", i);
    rrl_buffer_free(&bytes);
    check_decoded(g, node, "decoded", false, i);
    check_decoded(g, node, "decoded_skip_special", true, i);
}

static void check_chat(golden *g, const cJSON *node, int i) {
    rrl_message messages[MAX_MESSAGES];
    int n = 0;
    const cJSON *m;
    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(node, "messages")) {
        const cJSON *role = cJSON_GetObjectItemCaseSensitive(m, "role");
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(m, "content");
        check(g, n < MAX_MESSAGES && cJSON_IsString(role) && cJSON_IsString(content), "chat.json", i,
              "bad message");
        if (n == MAX_MESSAGES || !cJSON_IsString(role) || !cJSON_IsString(content)) return;
        messages[n++] = (rrl_message){role->valuestring, content->valuestring};
    }
    bool generation = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(node, "add_generation_prompt"));
    rrl_buffer text = {0};
    check_ok(g, rrl_prompt_render(&text, g->prompt, messages, n, generation), "chat.json", i);
    check(g, same_text(cJSON_GetObjectItemCaseSensitive(node, "text"), &text), "chat.json", i, "other text");
    check_ids(g, cJSON_GetObjectItemCaseSensitive(node, "ids"), text.data, text.len, "chat.json", i);
    rrl_buffer_free(&text);
}

static void check_file(golden *g, const char *file, void (*each)(golden *, const cJSON *, int)) {
    char path[4096];
    char *bytes = NULL;
    size_t n = 0;
    rrl_buffer json = {0};
    cJSON *doc = NULL;
    const cJSON *node;
    int i = 0;
    snprintf(path, sizeof path, "%s/%s", g->folder, file);
    check_ok(g, rrl_file_read(&bytes, &n, path, MAX_FILE), file, -1);
    check_ok(g, json_nul_hide(&json, bytes ? bytes : "", n), file, -1);
    check_ok(g, rrl_json_parse(&doc, json.data, json.len, path), file, -1);
    check(g, cJSON_GetArraySize(doc) > 0, file, -1, "has no cases");
    cJSON_ArrayForEach(node, doc) each(g, node, i++);
    cJSON_Delete(doc);
    rrl_buffer_free(&json);
    free(bytes);
}

int golden_tokenizer(int *checks, const char *folder) {
    golden g = {.folder = folder};
    check_ok(&g, rrl_tokenizer_open(&g.tokenizer, folder), "tokenizer.json", -1);
    if (g.tokenizer) {
        check_file(&g, "cases.json", check_case);
        check_ok(&g, rrl_prompt_open(&g.prompt, g.tokenizer, "chat", NULL, NULL), "tokenizer_config.json",
                 -1);
    }
    if (g.prompt) check_file(&g, "chat.json", check_chat);
    rrl_prompt_close(&g.prompt);
    rrl_tokenizer_close(&g.tokenizer);
    *checks += g.checks;
    return g.failures;
}

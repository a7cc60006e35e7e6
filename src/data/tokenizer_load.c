/* tokenizer.json and tokenizer_config.json into the parts of a tokenizer.
 *
 * Whatever would change ids and is not implemented is refused by name rather than skipped: a tokenizer that
 * is almost right trains a model on other tokens than it was made for. Left aside on purpose: truncation,
 * padding and post_processor, which act on whole inputs and add tokens; prompts here are encoded as they are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizer_parts.h"

enum { MAX_FILE = 256 << 20 };

static rrl_status load_normalizer(bool *nfc, const cJSON *node, const char *where) {
    const char *type = NULL;
    *nfc = false;
    if (!node || cJSON_IsNull(node)) return RRL_OK;
    RRL_TRY(rrl_json_string(&type, node, "type", false, where));
    if (strcmp(type, "NFC") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: normalizer %s is not supported (NFC or none are)", where, type);
    *nfc = true;
    return RRL_OK;
}

static rrl_status check_decoder(const cJSON *node, const char *where) {
    const char *type = NULL;
    RRL_TRY(rrl_json_string(&type, node, "type", false, where));
    if (strcmp(type, "ByteLevel") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: decoder %s is not supported (ByteLevel is)", where, type);
    return RRL_OK;
}

/* null, "", false and 0 all say "not used". */
static bool unused(const cJSON *node) {
    return !node || cJSON_IsNull(node) || cJSON_IsFalse(node) ||
           (cJSON_IsString(node) && !node->valuestring[0]) ||
           (cJSON_IsNumber(node) && node->valuedouble == 0);
}

static rrl_status check_model(const cJSON *model, const char *where) {
    static const char *const UNSUPPORTED[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                              "fuse_unk", "byte_fallback"};
    const char *type = NULL;
    RRL_TRY(rrl_json_string(&type, model, "type", false, where));
    if (strcmp(type, "BPE") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: model %s is not supported (BPE is)", where, type);
    for (size_t i = 0; i < sizeof UNSUPPORTED / sizeof *UNSUPPORTED; i++)
        if (!unused(cJSON_GetObjectItemCaseSensitive(model, UNSUPPORTED[i])))
            return RRL_FAIL(RRL_ERR_DATA, "%s: BPE with %s is not supported", where, UNSUPPORTED[i]);
    return RRL_OK;
}

static rrl_status token_id(int64_t *id, const cJSON *node, const char *token, const char *where) {
    double v = cJSON_IsNumber(node) ? node->valuedouble : -1;
    if (!(v >= 0 && v < RRL_VOCAB_MAX) || v != (double)(int64_t)v)
        return RRL_FAIL(RRL_ERR_DATA, "%s: token \"%s\": its id is no whole number from 0 to %d", where,
                        token, RRL_VOCAB_MAX - 1);
    *id = (int64_t)v;
    return RRL_OK;
}

static rrl_status load_vocab(rrl_vocab *v, const cJSON *model, const char *where) {
    const cJSON *vocab = NULL, *node;
    RRL_TRY(rrl_json_get(&vocab, model, "vocab", false, where));
    if (!cJSON_IsObject(vocab) || !vocab->child)
        return RRL_FAIL(RRL_ERR_DATA, "%s: model.vocab is no object of tokens", where);
    cJSON_ArrayForEach(node, vocab) {
        int64_t id = 0;
        RRL_TRY(token_id(&id, node, node->string, where));
        RRL_TRY(rrl_vocab_add(v, node->string, id, where));
    }
    return RRL_OK;
}

/* A merge is "left right" or ["left", "right"]; the result is the token left + right. */
static rrl_status load_merge(rrl_bpe *b, const rrl_vocab *v, rrl_buffer *joined, const cJSON *node,
                             const char *where) {
    const char *left = NULL, *right = NULL;
    size_t n_left = 0;
    if (cJSON_IsString(node)) {
        const char *space = strchr(node->valuestring, ' ');
        if (space && !strchr(space + 1, ' ')) {
            left = node->valuestring;
            n_left = (size_t)(space - left);
            right = space + 1;
        }
    } else if (cJSON_IsArray(node) && cJSON_GetArraySize(node) == 2 && cJSON_IsString(node->child) &&
               cJSON_IsString(node->child->next)) {
        left = node->child->valuestring;
        n_left = strlen(left);
        right = node->child->next->valuestring;
    }
    if (!left) return RRL_FAIL(RRL_ERR_DATA, "%s: a merge is no pair of tokens", where);

    joined->len = 0;
    RRL_TRY(rrl_buffer_put(joined, left, n_left));
    RRL_TRY(rrl_buffer_puts(joined, right));
    int32_t a = rrl_vocab_find(v, left, n_left), b_id = rrl_vocab_find(v, right, strlen(right));
    int32_t merged = rrl_vocab_find(v, joined->data, joined->len);
    if (a < 0 || b_id < 0 || merged < 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: merge \"%.*s\" + \"%s\": %s is no token", where, (int)n_left, left,
                        right,
                        a < 0      ? "the left part"
                        : b_id < 0 ? "the right part"
                                   : "the result");
    return rrl_bpe_merge(b, a, b_id, merged);
}

static rrl_status load_model(rrl_tokenizer *t, const cJSON *model, const char *where) {
    rrl_status rc = RRL_OK;
    rrl_buffer joined = {0};
    const cJSON *merges = NULL, *node;
    const char *unknown = NULL;
    bool whole_first = false;
    int32_t unknown_id = -1;

    RRL_GOTO(check_model(model, where));
    RRL_GOTO(rrl_vocab_open(&t->vocab));
    RRL_GOTO(load_vocab(t->vocab, model, where));
    node = cJSON_GetObjectItemCaseSensitive(model, "unk_token");
    if (!unused(node)) RRL_GOTO(rrl_json_string(&unknown, model, "unk_token", false, where));
    if (unknown && (unknown_id = rrl_vocab_find(t->vocab, unknown, strlen(unknown))) < 0) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: unk_token \"%s\" is no token", where, unknown);
        goto done;
    }
    RRL_GOTO(rrl_json_bool(&whole_first, model, "ignore_merges", true, where));
    RRL_GOTO(rrl_json_get(&merges, model, "merges", false, where));
    if (!cJSON_IsArray(merges)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: model.merges is no list", where);
        goto done;
    }
    RRL_GOTO(rrl_bpe_open(&t->bpe, t->vocab, (size_t)cJSON_GetArraySize(merges), unknown_id, whole_first));
    cJSON_ArrayForEach(node, merges) RRL_GOTO(load_merge(t->bpe, t->vocab, &joined, node, where));
done:
    rrl_buffer_free(&joined);
    return rc;
}

static rrl_status load_added_token(rrl_tokenizer *t, const cJSON *node, const char *where) {
    static const char *const UNSUPPORTED[] = {"single_word", "lstrip", "rstrip"};
    rrl_status rc = RRL_OK;
    rrl_buffer normal = {0};
    const char *content = NULL;
    int64_t id = -1;
    bool special = false, normalized = false;
    RRL_GOTO(rrl_json_string(&content, node, "content", false, where));
    RRL_GOTO(token_id(&id, cJSON_GetObjectItemCaseSensitive(node, "id"), content, where));
    RRL_GOTO(rrl_json_bool(&special, node, "special", true, where));
    RRL_GOTO(rrl_json_bool(&normalized, node, "normalized", true, where));
    for (size_t i = 0; i < sizeof UNSUPPORTED / sizeof *UNSUPPORTED; i++)
        if (!unused(cJSON_GetObjectItemCaseSensitive(node, UNSUPPORTED[i]))) {
            rc = RRL_FAIL(RRL_ERR_DATA, "%s: added token \"%s\": %s is not supported", where, content,
                          UNSUPPORTED[i]);
            goto done;
        }
    if (!content[0]) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: added token %lld is empty", where, (long long)id);
        goto done;
    }
    /* an added token may stand in the vocabulary too, then with the same id; else vocab_add names the
     * conflict */
    if (rrl_vocab_find(t->vocab, content, strlen(content)) != id)
        RRL_GOTO(rrl_vocab_add(t->vocab, content, id, where));
    if (normalized && t->nfc) {
        RRL_GOTO(rrl_nfc(&normal, content, strlen(content)));
        content = normal.data;
    }
    RRL_GOTO(rrl_added_tokens_add(t->added, content, (int32_t)id, special, normalized));
done:
    rrl_buffer_free(&normal);
    return rc;
}

static rrl_status load_added(rrl_tokenizer *t, const cJSON *list, const char *where) {
    const cJSON *node;
    RRL_TRY(rrl_added_tokens_open(&t->added));
    if (list && !cJSON_IsNull(list) && !cJSON_IsArray(list))
        return RRL_FAIL(RRL_ERR_DATA, "%s: added_tokens is no list", where);
    cJSON_ArrayForEach(node, list) RRL_TRY(load_added_token(t, node, where));
    rrl_added_tokens_sort(t->added);
    return RRL_OK;
}

static rrl_status load_json(rrl_tokenizer *t, const cJSON *doc, const char *where) {
    const cJSON *normalizer = NULL, *pretokenizer = NULL, *decoder = NULL, *model = NULL, *added = NULL;
    if (!cJSON_IsObject(doc)) return RRL_FAIL(RRL_ERR_DATA, "%s: is no JSON object", where);
    RRL_TRY(rrl_json_get(&model, doc, "model", false, where));
    RRL_TRY(rrl_json_get(&normalizer, doc, "normalizer", true, where));
    RRL_TRY(rrl_json_get(&pretokenizer, doc, "pre_tokenizer", true, where));
    RRL_TRY(rrl_json_get(&decoder, doc, "decoder", false, where));
    RRL_TRY(rrl_json_get(&added, doc, "added_tokens", true, where));
    RRL_TRY(load_normalizer(&t->nfc, normalizer, where));
    RRL_TRY(rrl_pretokenizer_open(&t->pretokenizer, pretokenizer, where));
    RRL_TRY(check_decoder(decoder, where));
    RRL_TRY(load_model(t, model, where));
    return load_added(t, added, where);
}

/* chat_template is a text or a list of {name, template}, of which "default" counts. */
static rrl_status load_chat_template(char **out, const cJSON *doc, const char *where) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(doc, "chat_template"), *entry;
    if (cJSON_IsString(node)) return rrl_strdup(out, node->valuestring);
    cJSON_ArrayForEach(entry, node) {
        const char *name = NULL, *text = NULL;
        RRL_TRY(rrl_json_string(&name, entry, "name", false, where));
        RRL_TRY(rrl_json_string(&text, entry, "template", false, where));
        if (strcmp(name, "default") == 0) return rrl_strdup(out, text);
    }
    return RRL_OK;
}

static rrl_status load_config(rrl_tokenizer *t, const cJSON *doc, const char *where) {
    if (!cJSON_IsObject(doc)) return RRL_FAIL(RRL_ERR_DATA, "%s: is no JSON object", where);
    RRL_TRY(load_chat_template(&t->chat_template, doc, where));
    const cJSON *eos = cJSON_GetObjectItemCaseSensitive(doc, "eos_token");
    if (cJSON_IsObject(eos)) eos = cJSON_GetObjectItemCaseSensitive(eos, "content");
    if (!cJSON_IsString(eos)) return RRL_OK;
    t->eos = rrl_tokenizer_id(t, eos->valuestring);
    if (t->eos < 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: eos_token \"%s\" is no token of tokenizer.json", where,
                        eos->valuestring);
    return RRL_OK;
}

/* Read, hash and parse one file of the folder. */
static rrl_status read_part(cJSON **doc, rrl_sha256 *hash, const char *path) {
    rrl_status rc = RRL_OK;
    char *text = NULL;
    size_t len = 0;
    RRL_GOTO(rrl_file_read(&text, &len, path, MAX_FILE));
    RRL_GOTO(rrl_sha256_add(hash, text, len));
    RRL_GOTO(rrl_json_parse(doc, text, len, path));
done:
    free(text);
    return rc;
}

/* Newer folders keep the chat template in a file of its own. */
static rrl_status load_template_file(rrl_tokenizer *t, rrl_sha256 *hash, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    size_t len = 0;
    RRL_GOTO(rrl_path_join(&path, dir, "chat_template.jinja"));
    if (t->chat_template || !rrl_file_exists(path)) goto done;
    RRL_GOTO(rrl_file_read(&t->chat_template, &len, path, MAX_FILE));
    RRL_GOTO(rrl_sha256_add(hash, t->chat_template, len));
done:
    free(path);
    return rc;
}

rrl_status rrl_tokenizer_load(rrl_tokenizer *t, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *config = NULL;
    cJSON *doc = NULL, *config_doc = NULL;
    rrl_sha256 *hash = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(rrl_path_join(&path, dir, "tokenizer.json"));
    RRL_GOTO(rrl_path_join(&config, dir, "tokenizer_config.json"));
    if (!rrl_file_exists(path)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: does not exist; a model folder needs its tokenizer", path);
        goto done;
    }
    RRL_GOTO(rrl_sha256_open(&hash));
    RRL_GOTO(read_part(&doc, hash, path));
    RRL_GOTO(load_json(t, doc, path));
    if (rrl_file_exists(config)) {
        RRL_GOTO(read_part(&config_doc, hash, config));
        RRL_GOTO(load_config(t, config_doc, config));
    }
    RRL_GOTO(load_template_file(t, hash, dir));
    RRL_GOTO(rrl_sha256_end(hash, digest));
    rrl_sha256_hex(t->digest, digest);
done:
    rrl_sha256_close(&hash);
    cJSON_Delete(doc);
    cJSON_Delete(config_doc);
    free(path);
    free(config);
    return rc;
}

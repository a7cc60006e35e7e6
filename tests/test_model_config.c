/* Reading config.json: what is accepted and what it becomes, and a refusal naming the key for everything
 * else. */
#include "check.h"

#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "model/model.h"
#include "model/rope.h"

static char dir[512];

static void write_file(const char *name, const char *text) {
    char path[640];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (text)
        CHECK_OK(rrl_file_publish(path, text, strlen(text)));
    else
        unlink(path);
}

static const char LLAMA[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":112,\"vocab_size\":272,\"max_position_embeddings\":256,"
    "\"rms_norm_eps\":1e-05,\"rope_theta\":50000.0,\"rope_scaling\":null,\"tie_word_embeddings\":true,"
    "\"hidden_act\":\"silu\",\"attention_bias\":false,\"mlp_bias\":false,\"eos_token_id\":2}";

/* LLAMA with members replaced or added (edit: an object; a value null removes the member); model_type
 * decides. */
static void write_config(const char *edit) {
    cJSON *root = cJSON_Parse(LLAMA), *change = cJSON_Parse(edit);
    if (!CHECK(change != NULL)) fprintf(stderr, "  %s\n", edit);
    while (change && change->child) {
        cJSON *item = cJSON_DetachItemViaPointer(change, change->child);
        cJSON_DeleteItemFromObjectCaseSensitive(root, item->string);
        if (cJSON_IsNull(item))
            cJSON_Delete(item);
        else
            cJSON_AddItemToObject(root, item->string, item);
    }
    char *text = cJSON_Print(root);
    write_file("config.json", text);
    cJSON_free(text);
    cJSON_Delete(change);
    cJSON_Delete(root);
}

static rrl_model_config read_edit(const char *edit) {
    rrl_model_config c = {0};
    write_config(edit);
    if (!CHECK_OK(rrl_model_config_read(&c, dir))) fprintf(stderr, "  %s\n", edit);
    return c;
}

static const struct {
    const char *what, *edit, *names; /* names: text that the message must hold */
} REFUSED[] = {
    {"other family", "{\"model_type\":\"mistral\"}", "mistral"},
    {"no family", "{\"model_type\":null}", "model_type"},
    {"no hidden size", "{\"hidden_size\":null}", "hidden_size"},
    {"hidden size 0", "{\"hidden_size\":0}", "hidden_size"},
    {"layers as text", "{\"num_hidden_layers\":\"2\"}", "num_hidden_layers"},
    {"negative layers", "{\"num_hidden_layers\":-1}", "num_hidden_layers"},
    {"layers 1.5", "{\"num_hidden_layers\":1.5}", "num_hidden_layers"},
    {"huge vocabulary", "{\"vocab_size\":99999999999}", "vocab_size"},
    {"no positions", "{\"max_position_embeddings\":null}", "max_position_embeddings"},
    {"heads do not divide into groups", "{\"num_key_value_heads\":3}", "num_key_value_heads"},
    {"hidden size not by heads", "{\"hidden_size\":66}", "hidden_size"},
    {"odd head width", "{\"head_dim\":15}", "head width"},
    {"head width too large", "{\"head_dim\":512}", "head_dim"},
    {"other activation", "{\"hidden_act\":\"gelu\"}", "hidden_act"},
    {"eps 0", "{\"rms_norm_eps\":0}", "rms_norm_eps"},
    {"attention bias in llama", "{\"attention_bias\":true}", "attention_bias"},
    {"MLP bias", "{\"mlp_bias\":true}", "mlp_bias"},
    {"sliding window in llama", "{\"sliding_window\":4096}", "sliding_window"},
    {"sliding window in qwen2", "{\"model_type\":\"qwen2\",\"use_sliding_window\":true}",
     "use_sliding_window"},
    {"sliding layers", "{\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", "layer_types"},
    {"quantised", "{\"quantization_config\":{\"bits\":4}}", "quantization_config"},
    {"attention dropout", "{\"attention_dropout\":0.1}", "attention_dropout"},
    {"partial rotary", "{\"partial_rotary_factor\":0.5}", "partial_rotary_factor"},
    {"tied as a number", "{\"tie_word_embeddings\":1}", "tie_word_embeddings"},
    {"rope yarn", "{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}}", "yarn"},
    {"rope linear, old key", "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "linear"},
    {"rope dynamic", "{\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2.0}}", "dynamic"},
    {"rope without type", "{\"rope_scaling\":{\"factor\":2.0}}", "rope_type"},
    {"rope not an object", "{\"rope_scaling\":4}", "rope_scaling"},
    {"llama3 without factor",
     "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"low_freq_factor\":1,"
     "\"high_freq_factor\":4,\"original_max_position_embeddings\":64}}",
     "factor"},
    {"llama3 low above high",
     "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
     "\"high_freq_factor\":1,\"original_max_position_embeddings\":64}}",
     "low_freq_factor"},
    {"llama3 factor below 1",
     "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":0.5,\"low_freq_factor\":1,"
     "\"high_freq_factor\":4,\"original_max_position_embeddings\":64}}",
     "factor"},
    {"llama3 with a key of another type",
     "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
     "\"low_freq_factor\":1,\"high_freq_factor\":4,"
     "\"original_max_position_embeddings\":64,\"beta_fast\":32}}",
     "beta_fast"},
    {"default with a factor", "{\"rope_scaling\":{\"rope_type\":\"default\",\"factor\":2}}", "factor"},
    {"two rope objects",
     "{\"rope_scaling\":{\"rope_type\":\"default\"},"
     "\"rope_parameters\":{\"rope_type\":\"default\"}}",
     "rope_parameters"},
    {"two thetas", "{\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0}}", "rope_theta"},
    {"theta 0", "{\"rope_theta\":0}", "rope_theta"},
    {"end token outside", "{\"eos_token_id\":272}", "eos_token_id"},
    {"end token negative", "{\"eos_token_id\":-1}", "eos_token_id"},
    {"end token a text", "{\"eos_token_id\":\"</s>\"}", "eos_token_id"},
    {"no end tokens in a list", "{\"eos_token_id\":[]}", "eos_token_id"},
    {"no end token anywhere", "{\"eos_token_id\":null}", "eos_token_id"},
};

static void refusals(void) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        rrl_model_config c = {.hidden = 7};
        write_config(REFUSED[i].edit);
        int good = CHECK_STATUS(rrl_model_config_read(&c, dir), RRL_ERR_DATA) &&
                   CHECK(strstr(rrl_error_message(), REFUSED[i].names) != NULL) && CHECK_EQ_INT(c.hidden, 7);
        if (!good) fprintf(stderr, "  %s: %s\n", REFUSED[i].what, rrl_error_message());
    }
    rrl_model_config c;
    write_file("config.json", "{\"model_type\":\"llama\"");
    CHECK_STATUS(rrl_model_config_read(&c, dir), RRL_ERR_DATA);
    write_file("config.json", "[]");
    CHECK_STATUS(rrl_model_config_read(&c, dir), RRL_ERR_DATA);
    write_file("config.json", NULL);
    CHECK_STATUS(rrl_model_config_read(&c, dir), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "config.json") != NULL);
}

static void accepted(void) {
    rrl_model_config c = read_edit("{}");
    CHECK_EQ_STR(c.family, "llama");
    CHECK_EQ_INT(c.hidden, 64);
    CHECK_EQ_INT(c.layers, 2);
    CHECK_EQ_INT(c.heads, 4);
    CHECK_EQ_INT(c.kv_heads, 2);
    CHECK_EQ_INT(c.head_dim, 16);
    CHECK_EQ_INT(c.intermediate, 112);
    CHECK_EQ_INT(c.vocab, 272);
    CHECK_EQ_INT(c.max_positions, 256);
    CHECK(c.rms_eps == 1e-5f && c.rope_theta == 50000.0 && c.rope_factor == 0);
    CHECK(c.tied && !c.qkv_bias);
    /* what transformers leaves out of a file when it is the default */
    c = read_edit("{\"num_key_value_heads\":null,\"tie_word_embeddings\":null,\"rms_norm_eps\":null,"
                  "\"rope_theta\":null,\"hidden_act\":null}");
    CHECK_EQ_INT(c.kv_heads, 4);
    CHECK(!c.tied && c.rms_eps == 1e-6f && c.rope_theta == 10000.0);
    c = read_edit("{\"head_dim\":32,\"hidden_size\":66}");
    CHECK_EQ_INT(c.head_dim, 32);
    c = read_edit("{\"model_type\":\"qwen2\",\"sliding_window\":32768,\"use_sliding_window\":false,"
                  "\"layer_types\":[\"full_attention\",\"full_attention\"]}");
    CHECK(c.qkv_bias);
    CHECK_EQ_STR(c.family, "qwen2");
    c = read_edit(
        "{\"rope_theta\":null,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5000.0}}");
    CHECK(c.rope_theta == 5000.0);
}

static void end_tokens(void) {
    rrl_model_config c = read_edit("{\"eos_token_id\":[5,6]}");
    CHECK(c.n_eos == 2 && c.eos[0] == 5 && c.eos[1] == 6);
    write_file("generation_config.json", "{\"eos_token_id\":[7,8,9],\"temperature\":0.1}");
    c = read_edit("{\"eos_token_id\":5}");
    CHECK(c.n_eos == 3 && c.eos[0] == 7 && c.eos[2] == 9);
    write_file("generation_config.json", "{\"eos_token_id\":272}");
    write_config("{}");
    CHECK_STATUS(rrl_model_config_read(&c, dir), RRL_ERR_DATA);
    write_file("generation_config.json", "{\"temperature\":0.1}");
    write_file("tokenizer_config.json",
               "{\"eos_token\":\"<e>\",\"added_tokens_decoder\":{\"3\":{\"content\":\"<s>\"},"
               "\"4\":{\"content\":\"<e>\"}}}");
    c = read_edit("{\"eos_token_id\":5}");
    CHECK(c.n_eos == 1 && c.eos[0] == 5);
    c = read_edit("{\"eos_token_id\":null}");
    CHECK(c.n_eos == 1 && c.eos[0] == 4);
    write_file("tokenizer_config.json", "{\"eos_token\":{\"content\":\"<s>\"},\"added_tokens_decoder\":{"
                                        "\"3\":{\"content\":\"<s>\"}}}");
    c = read_edit("{\"eos_token_id\":null}");
    CHECK(c.n_eos == 1 && c.eos[0] == 3);
    write_file("tokenizer_config.json", NULL);
    write_file("generation_config.json", NULL);
}

/* Llama-3.2-1B's frequencies by the formula of transformers' _compute_llama3_parameters, computed once in
 * Python doubles: unchanged, blended and stretched ones. */
static void llama3_frequencies(void) {
    static const struct {
        int i;
        double want;
    } CASES[] = {{0, 1.0},
                 {1, 0.6636012376960885},
                 {14, 0.0032114459947525913},
                 {15, 0.001290547928209264},
                 {16, 0.00042955679655936815},
                 {17, 9.70828780262767e-05},
                 {18, 1.9461638184831125e-05},
                 {31, 9.418306725434909e-08}};
    double frequency[32];
    rrl_model_config c = read_edit(
        "{\"head_dim\":64,\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":32.0,"
        "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}}");
    rrl_rope_frequencies(frequency, &c);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        CHECK_NEAR(frequency[CASES[i].i], CASES[i].want, 1e-13 * CASES[i].want);
}

static void rope_tables(void) {
    rrl_model_config c = read_edit("{}");
    float *table = calloc(2 * 256 * 8, sizeof *table);
    CHECK_OK(rrl_rope_tables(table, table + 256 * 8, &c));
    for (int p = 0; p < 256; p++)
        for (int i = 0; i < 8; i++) {
            double angle = p * pow(50000.0, -i / 8.0);
            CHECK_NEAR(table[p * 8 + i], cos(angle), 4e-8);
            CHECK_NEAR(table[256 * 8 + p * 8 + i], sin(angle), 4e-8);
        }
    free(table);
}

int main(void) {
    snprintf(dir, sizeof dir, "%s/test_model_config.XXXXXX", RRL_BINARY_DIR);
    if (!mkdtemp(dir)) return 1;
    accepted();
    end_tokens();
    refusals();
    llama3_frequencies();
    rope_tables();
    write_file("config.json", NULL);
    rmdir(dir);
    return CHECK_DONE();
}

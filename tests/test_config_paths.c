/* Where relative paths, hub ids and named data sets are looked up, and what is said when they are not there.
 */
#include "check.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "config/config_paths.h"

static char root[4096]; /* a folder of this test's own */

static char *below(const char *name) {
    static char paths[8][4200];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void make_file(const char *name, const char *text) {
    char *folder = NULL;
    CHECK_OK(rrl_path_parent(&folder, below(name)));
    CHECK_OK(rrl_dir_make(folder));
    CHECK_OK(rrl_file_publish(below(name), text, strlen(text)));
    free(folder);
}

static rrl_config *open_config(const char *name, const char *set) {
    rrl_config *c = NULL;
    const char *const sets[] = {set};
    CHECK_OK(rrl_config_open(&c, below(name), sets, set ? 1 : 0));
    return c;
}

static void test_bases(void) {
    make_file("a/run.yaml", "output_dir: out/\ndataset: {path: ./d.jsonl}\nmodel: {adapter: /abs/x}\n");
    make_file("a/configs/run.yaml",
              "output_dir: out\nmodel: {name: m/n, chat_template: t.txt, tokenizer: tok}\n");
    rrl_config *c = open_config("a/run.yaml", NULL);
    CHECK_EQ_STR(c->output_dir, below("a/out"));
    CHECK_EQ_STR(c->dataset.path, below("a/d.jsonl"));
    CHECK_EQ_STR(c->model.adapter, "/abs/x");
    CHECK_EQ_STR(c->base, below("a"));
    rrl_config_close(&c);

    /* the folder is called configs: its parent counts, also for a path that does not say so */
    c = open_config("a/configs/run.yaml", NULL);
    CHECK_EQ_STR(c->output_dir, below("a/out"));
    CHECK_EQ_STR(c->model.name, "m/n"); /* a hub id while there is no such folder */
    CHECK_EQ_STR(c->model.chat_template, below("a/t.txt"));
    CHECK_EQ_STR(c->model.tokenizer, below("a/tok"));
    rrl_config_close(&c);
    CHECK_EQ_INT(chdir(below("a/configs")), 0);
    CHECK_OK(rrl_config_open(&c, "run.yaml", NULL, 0));
    CHECK_EQ_STR(c->output_dir, below("a/out"));
    rrl_config_close(&c);

    /* sets count from the working directory */
    c = open_config("a/configs/run.yaml", "output_dir=here");
    CHECK_EQ_STR(c->output_dir, below("a/configs/here"));
    CHECK_EQ_STR(c->model.tokenizer, below("a/tok"));
    rrl_config_close(&c);
    CHECK_OK(rrl_dir_make(below("a/m/n")));
    c = open_config("a/configs/run.yaml", "model.chat_template=chatml");
    CHECK_EQ_STR(c->model.name, below("a/m/n"));
    CHECK_EQ_STR(c->model.chat_template, "chatml");
    rrl_config_close(&c);
    CHECK_EQ_INT(chdir(root), 0);
}

static void test_open_errors(void) {
    rrl_config *c = NULL;
    CHECK_STATUS(rrl_config_open(&c, below("none.yaml"), NULL, 0), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "none.yaml") != NULL);
    CHECK_STATUS(rrl_config_open(&c, below("none/none.yaml"), NULL, 0), RRL_ERR_CONFIG);
    CHECK_STATUS(rrl_config_open(&c, root, NULL, 0), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "is a folder") != NULL);
    make_file("bad.yaml", "seed: 1\nsed: 2\n");
    CHECK_STATUS(rrl_config_open(&c, below("bad.yaml"), NULL, 0), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "bad.yaml:2: unknown key 'sed'; did you mean 'seed'?") != NULL);
}

static void expect_model(rrl_config *c, const char *want) {
    char *dir = NULL;
    if (CHECK_OK(rrl_config_model_dir(&dir, c))) CHECK_EQ_STR(dir, want);
    free(dir);
}

static void expect_missing(rrl_status rc, const char *part) {
    CHECK_STATUS(rc, RRL_ERR_DATA);
    if (!CHECK(strstr(rrl_error_message(), part) != NULL)) fprintf(stderr, "  %s\n", rrl_error_message());
}

static void test_models(void) {
    char *dir = NULL;
    make_file("b/hub.yaml", "model: {name: Qwen/Qwen2.5-0.5B, revision: 7ae5576}\n");
    rrl_config *c = open_config("b/hub.yaml", NULL);
    expect_missing(rrl_config_model_dir(&dir, c), "tools/get_model.sh Qwen/Qwen2.5-0.5B 7ae5576");
    expect_missing(rrl_config_model_dir(&dir, c),
                   "no folder Qwen--Qwen2.5-0.5B@7ae5576 or Qwen--Qwen2.5-0.5B under");
    CHECK_EQ_INT(rrl_status_exit_code(RRL_ERR_DATA), 3);
    CHECK_OK(rrl_dir_make(below("models/Qwen--Qwen2.5-0.5B"))); /* the working directory's */
    expect_model(c, "./models/Qwen--Qwen2.5-0.5B");
    CHECK_OK(rrl_dir_make(below("b/models/Qwen--Qwen2.5-0.5B")));
    expect_model(c, below("b/models/Qwen--Qwen2.5-0.5B"));
    CHECK_OK(rrl_dir_make(below("b/models/Qwen--Qwen2.5-0.5B@7ae5576")));
    expect_model(c, below("b/models/Qwen--Qwen2.5-0.5B@7ae5576"));
    rrl_config_close(&c);

    c = open_config("b/hub.yaml", "model.name=b/models/none/here");
    expect_missing(rrl_config_model_dir(&dir, c), "model.name: no folder");
    rrl_config_close(&c);
    c = open_config("b/hub.yaml", "model.revision=..");
    expect_missing(rrl_config_model_dir(&dir, c), "model.revision: '..' leads out");
    rrl_config_close(&c);
    c = open_config("b/hub.yaml", "model.name=\"\"");
    expect_missing(rrl_config_model_dir(&dir, c), "model.name is empty");
    rrl_config_close(&c);
}

/* Path of the data set that a file with this section has; NULL and the message checked when it is not there.
 */
static void expect_dataset(const char *section, const char *want, const char *message) {
    rrl_buffer text = {0};
    rrl_config *c = NULL;
    char *path = NULL;
    CHECK_OK(rrl_buffer_printf(&text, "experiment: {train_dataset: %s}\n", section));
    CHECK_OK(rrl_config_parse(&c, text.data, text.len, "t.yaml", below("c"), NULL, 0));
    if (c && message) {
        expect_missing(rrl_config_dataset_path(&path, c, &c->experiment.train_dataset), message);
        CHECK(strstr(rrl_error_message(), "experiment.train_dataset") != NULL);
    } else if (c && CHECK_OK(rrl_config_dataset_path(&path, c, &c->experiment.train_dataset))) {
        CHECK_EQ_STR(path, want);
    }
    free(path);
    rrl_buffer_free(&text);
    rrl_config_close(&c);
}

static void test_datasets(void) {
    CHECK_OK(rrl_dir_make(below("c")));
    expect_dataset("{path: d, split: ../x}", NULL, "split: '../x' leads out");
    expect_dataset("{source: huggingface, name: a/b, subset: x/.., split: s}", NULL, "subset: 'x/..' leads out");
    expect_dataset("{path: d}", NULL, "no file");
    expect_dataset("{source: gsm8k, split: test}", NULL, "tools/get_gsm8k.sh");
    expect_dataset("{source: huggingface, name: openai/gsm8k, split: test}", NULL, "tools/get_gsm8k.sh");
    expect_dataset("{source: huggingface, name: a/b, subset: main, split: test}", NULL,
                   "no file data/a--b/main/test.jsonl under");
    expect_dataset("{source: synthetic, limit: 4}", NULL, NULL);

    make_file("c/d/test.jsonl", "{}\n");
    expect_dataset("{path: d/test.jsonl}", below("c/d/test.jsonl"), NULL);
    expect_dataset("{path: d, split: test}", below("c/d/test.jsonl"), NULL);
    expect_dataset("{path: d}", NULL, "give experiment.train_dataset.split");
    expect_dataset("{path: d, split: train}", NULL, "no file");

    make_file("c/data/gsm8k/test.jsonl", "{}\n");
    expect_dataset("{source: gsm8k, split: test}", below("c/data/gsm8k/test.jsonl"), NULL);
    expect_dataset("{source: gsm8k, path: d, split: test}", below("c/d/test.jsonl"), NULL);
    expect_dataset("{source: huggingface, name: openai/gsm8k, subset: main, split: test}",
                   below("c/data/gsm8k/test.jsonl"), NULL);
    make_file("c/data/openai--gsm8k/main/test.jsonl", "{}\n");
    expect_dataset("{source: huggingface, name: openai/gsm8k, subset: main, split: test}",
                   below("c/data/openai--gsm8k/main/test.jsonl"), NULL);
    make_file("c/data/openai--gsm8k@1a2b/main/test.jsonl", "{}\n");
    expect_dataset("{source: huggingface, name: openai/gsm8k, subset: main, split: test, revision: 1a2b}",
                   below("c/data/openai--gsm8k@1a2b/main/test.jsonl"), NULL);
}

static void test_pools(void) {
    rrl_config *c = NULL;
    char *path = NULL;
    const char *text =
        "dataset: {source: gsm8k, split: test, pool: p}\nexperiment: {train_dataset: {path: d/test.jsonl}}\n";
    CHECK_OK(rrl_config_parse(&c, text, strlen(text), "t.yaml", below("c"), NULL, 0));
    expect_missing(rrl_config_pools_path(&path, c, &c->dataset), "dataset.pool p: no pools.json");
    make_file("c/data/gsm8k/pools.json", "{}\n");
    CHECK_OK(rrl_config_pools_path(&path, c, &c->dataset));
    CHECK_EQ_STR(path, below("c/data/gsm8k/pools.json"));
    free(path);
    CHECK_OK(rrl_config_pools_path(&path, c, &c->experiment.train_dataset));
    CHECK(path == NULL);
    rrl_config_close(&c);
}

/* A chat template's file counts by its content, not by its place. */
static void test_template_digest(void) {
    char a[65], b[65], other[65];
    make_file("t1.txt", "{user}");
    make_file("t2.txt", "{user}");
    make_file("t3.txt", "{user}!");
    make_file("tt.yaml", "{}\n");
    rrl_config *c = open_config("tt.yaml", "model.chat_template=t1.txt");
    CHECK_OK(rrl_config_digest(a, c, NULL));
    rrl_config_close(&c);
    c = open_config("tt.yaml", "model.chat_template=t2.txt");
    CHECK_OK(rrl_config_digest(b, c, NULL));
    rrl_config_close(&c);
    c = open_config("tt.yaml", "model.chat_template=t3.txt");
    CHECK_OK(rrl_config_digest(other, c, NULL));
    rrl_config_close(&c);
    CHECK_EQ_STR(a, b);
    CHECK(strcmp(a, other) != 0);
}

int main(void) {
    char name[] = RRL_BINARY_DIR "/paths-XXXXXX";
    char *real = mkdtemp(name) ? realpath(name, NULL) : NULL;
    if (!CHECK(real != NULL)) return CHECK_DONE();
    snprintf(root, sizeof root, "%s", real);
    free(real);
    CHECK_EQ_INT(chdir(root), 0);
    test_bases();
    test_open_errors();
    test_models();
    test_datasets();
    test_pools();
    test_template_digest();
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK_EQ_INT(chdir("/"), 0);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_DONE();
}

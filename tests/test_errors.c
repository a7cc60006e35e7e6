/* What is wrong with a command line, a config, data, a model or an output folder ends the program with the right exit
 * code and one line that names it, before anything looks complete. The program runs as a user runs it. */
#include "check.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error_inputs.h"
#include "program.h"
#include "record/record.h"

static char folder[PROGRAM_PATH]; /* of this test; %D in commands, %S is the source folder */

#define OUT   "output_dir=%D/out "
#define SMALL                                                                                                          \
    "--quiet --threads 1 training.max_steps=1 dataset.limit=2 experiment.train_dataset.limit=2 "                      \
    "generation.max_tokens=4 training.batch_size=8 "
#define TRAIN "train %S/configs/train.yaml " SMALL OUT
#define EVAL  "eval %S/configs/train.yaml " SMALL OUT
#define STUDY "study %S/configs/quick.yaml " SMALL OUT

static void expand(char out[4096], const char *text) {
    size_t n = 0;
    for (; *text && n < 4000 - PROGRAM_PATH; text++) {
        const char *with = text[0] == '%' && text[1] == 'D' ? folder : text[0] == '%' && text[1] == 'S' ? RRL_SOURCE_DIR
                                                                                                       : NULL;
        if (!with) {
            out[n++] = *text;
            continue;
        }
        n += (size_t)snprintf(out + n, 4096 - n, "%s", with);
        text++;
    }
    out[n] = 0;
}

static const char *path_of(const char *text) {
    static char path[4096];
    expand(path, text);
    return path;
}

/* Parts are joined with "|"; each must stand in the error line. */
static bool has_parts(const char *line, const char *parts) {
    char copy[1024], expanded[4096], *save = NULL;
    snprintf(copy, sizeof copy, "%s", parts);
    bool all = true;
    for (char *p = strtok_r(copy, "|", &save); p; p = strtok_r(NULL, "|", &save)) {
        expand(expanded, p);
        all = all && strstr(line, expanded);
    }
    return all;
}

/* One error line with these parts, this code, nothing that looks complete, no temporary left. */
static void expect(const char *what, const char *command, int code, const char *parts) {
    char line[4096], prefix[PROGRAM_PATH + 8];
    program_end e;
    expand(line, command);
    snprintf(prefix, sizeof prefix, "%s/run", folder);
    program_run(&e, prefix, "%s", line);
    const char *error = strstr(e.err, "rrl: error: ");
    int good = CHECK_EQ_INT(e.code, code);
    good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: "), 1);
    good &= CHECK(error && has_parts(error, parts));
    good &= CHECK(!program_exists(path_of("%D/out/run.h5")));
    good &= CHECK(!program_has_below(path_of("%D/out"), ".tmp"));
    good &= CHECK(!program_exists(path_of("%D/out/lock")));
    good &= CHECK(!strstr(e.err, "Sanitizer") && !strstr(e.err, "signal"));
    if (!good) fprintf(stderr, "  %s: %s\n  expected: %s\n%s\n", what, line, parts, e.err);
    program_end_free(&e);
    program_remove(path_of("%D/out"));
}

/* --- command lines and keys */

static const struct {
    const char *what, *command;
    int code;
    const char *parts;
} LINES[] = {
    {"no command", "", 2, "no command given"},
    {"unknown command", "trian a", 2, "unknown command \"trian\"|did you mean \"train\"?"},
    {"unknown option", TRAIN "--thraeds 2", 2, "unknown option --thraeds; did you mean --threads?"},
    {"no config", "train", 2, "rrl train: 0 of 1 arguments"},
    {"two configs", "train a b", 2, "unexpected argument \"b\""},
    {"option without value", "train a --threads", 2, "--threads needs a value"},
    {"no threads", "train a --threads 0", 2, "--threads 0: expected a whole number of at least 1"},
    {"option of another command", "train a --completion 1", 2, "rrl train does not take --completion"},
    {"unknown instruction set", TRAIN "--isa neon", 2, "instruction set \"neon\" is not available|portable"},
    {"no such config", "train %D/none.yaml", 2, "%D/none.yaml: cannot be opened"},
    {"config is a folder", "train %D", 2, "is a folder"},
    {"misspelt key", TRAIN "training.lerning_rate=1", 2, "unknown key 'lerning_rate'; did you mean 'learning_rate'?"},
    {"wrong type", TRAIN "training.max_steps=many", 2, "training.max_steps: expects a whole number; 'many' found"},
    {"NaN", TRAIN "generation.temperature=.nan", 2, "generation.temperature: |NaN is no setting"},
    {"out of range", TRAIN "generation.top_p=1.2", 2, "generation.top_p: 1.2 is out of range: from |to 1"},
    {"top_p 0", TRAIN "generation.top_p=0", 2, "generation.top_p: 0 is out of range"},
    {"negative seed", TRAIN "seed=-1", 2, "seed: -1 is out of range: from 0 to 2^63 - 1"},
    {"seed of 2^63", TRAIN "seed=9223372036854775808", 2, "seed: 9223372036854775808 is out of range"},
    {"negative batch", TRAIN "training.batch_size=-8", 2, "training.batch_size: -8 is out of range"},
    {"probability 1.2", TRAIN "training_verifier.members[0].corruption.probability=1.2", 2, "from 0 to 1"},
    {"confidence scale", TRAIN "training_verifier.members[0].corruption.confidence_scale=1.1", 2, "from 0 to 1"},
    {"G of 1", TRAIN "generation.num_generations=1 evaluation.k=[1]", 2, "num_generations is 1|at least 2"},
    {"temperature 0 in training", TRAIN "generation.temperature=0", 2, "generation.temperature is 0"},
    {"batch not divisible", TRAIN "training.batch_size=12", 2, "training.batch_size 12|generation.num_generations 8"},
    {"k above G", TRAIN "evaluation.k=[1,9]", 2, "evaluation.k has 9, above generation.num_generations 8"},
    {"thresholds crossed", TRAIN "reward.moderate_threshold=0.95", 2, "moderate_threshold 0.95|severe_threshold 0.9"},
    {"slot not divisible", TRAIN "training.slot_rows=3", 2, "training.slot_rows 3"},
    {"unknown module", TRAIN "training.lora.target_modules=[foo]", 2, "training.lora: LoRA target module \"foo\"|q_proj"},
    {"unknown module in a plan", "validate %S/configs/train.yaml training.lora.target_modules=[q_prj]", 2,
     "did you mean \"q_proj\""},
    {"key of a part", TRAIN "training_verifier.members[0].seed=1", 2, "'seed' here; did you mean 'corruption.seed'?"},
    {"full training", TRAIN "training.lora.enabled=false", 2, "training.lora.enabled"},
    {"roles without ranks", TRAIN "parallel.roles.generators=2 parallel.roles.verifiers=1 parallel.roles.learners=1", 2,
     "1 ranks|teams of 4|parallel.roles"},
    {"a role without ranks", TRAIN "parallel.roles.generators=1", 2, "parallel.roles has generators 1, verifiers 0"},
    {"teams that do not divide", "mpirun -n 3 " TRAIN "parallel.ranks_per_team=2", 2, "3 ranks|teams of 2"},
    {"roles against teams",
     TRAIN "parallel.roles.generators=1 parallel.roles.verifiers=1 parallel.roles.learners=1 parallel.ranks_per_team=2",
     2, "parallel.roles add up to 3 ranks, parallel.ranks_per_team is 2"},
    {"no CUDA here", TRAIN "model.device=cuda", 2, "model.device cuda"},
    {"NCCL without GPUs", TRAIN "model.device=cpu parallel.collectives=nccl", 2,
     "parallel.collectives nccl: rank 0 works on the cpu device"},
    {"NCCL without GPUs in an evaluation", EVAL "model.device=cpu parallel.collectives=nccl", 2,
     "parallel.collectives nccl: rank 0 works on the cpu device"},
    {"NCCL without GPUs on two ranks", "mpirun -n 2 " TRAIN "model.device=cpu parallel.collectives=nccl", 2,
     "parallel.collectives nccl|works on the cpu device"},
    {"NCCL without GPUs on split ranks",
     "mpirun -n 3 " TRAIN "model.device=cpu parallel.collectives=nccl parallel.roles.generators=1 "
     "parallel.roles.verifiers=1 parallel.roles.learners=1",
     2, "parallel.collectives nccl|works on the cpu device"},
    {"unknown chat template", TRAIN "model.chat_template=nix", 2, "chat template|smollm2, qwen2.5, chatml"},
    {"template without question", TRAIN "model.prompt_template=hello", 2, "prompt_template has no {question}"},
    {"unknown method", STUDY "experiment.arms[0].methods=[robus]", 2, "method 'robus'|did you mean 'robust'?"},
    {"fixture cannot train", TRAIN "model.backend=fixture", 2, "model.backend fixture cannot be trained"},
    /* inputs that are not there */
    {"no model", TRAIN "model.name=%D/none", 3, "model.name: no folder %D/none"},
    {"no hub model", TRAIN "model.name=owner/name", 3, "owner--name|fetch it with"},
    {"no data", TRAIN "dataset.path=%D/none", 3, "evaluation set|no file %D/none"},
    {"no training data", TRAIN "experiment.train_dataset.path=%D/none.jsonl", 3, "training set|%D/none.jsonl"},
    {"empty data", TRAIN "dataset.path=/dev/null", 3, "evaluation set: /dev/null: has no rows"},
    {"train and test share", TRAIN "dataset.path=%S/data/tiny/train.jsonl", 3, "share 2 ids: train-0000, train-0001"},
    {"no adapter", TRAIN "model.adapter=%D/none", 3, "model.adapter: no file %D/none/adapter_model.safetensors"},
    {"no checkpoint", TRAIN "--resume %D/none", 3, "checkpoint %D/none is not there"},
    {"prompt beyond the context", TRAIN "generation.max_tokens=250", 3,
     "question train-0000|tokens|generation.max_tokens 250|context of 256"},
    {"model without tokenizer", TRAIN "model.name=%S/tests/golden/llama/model", 3, "tokenizer.json: does not exist"},
    {"another model's tokenizer", TRAIN "model.tokenizer=%S/tests/golden/tokenizer", 3,
     "question train-0000|token|vocabulary of 562|model.tokenizer"},
    /* one line from many ranks */
    {"key on two ranks", "mpirun -n 2 " TRAIN "training.lerning_rate=1", 2, "unknown key 'lerning_rate'"},
    {"data on two ranks", "mpirun -n 2 " TRAIN "dataset.path=%D/none", 3, "no file %D/none"},
    {"model of split ranks",
     "mpirun -n 3 " TRAIN "model.name=%D/none parallel.roles.generators=1 parallel.roles.verifiers=1 "
     "parallel.roles.learners=1",
     3, "no folder %D/none"},
    {"study without data", STUDY "dataset.path=%D/none", 3, "no file %D/none"},
    {"show nothing", "show %D/none", 3, "%D/none"},
    {"report on nothing", "report %D/none", 3, "%D/none"},
};

/* Refused before anything is written: no folder is left. */
static void test_nothing_left(void) {
    static const char *const REFUSED[] = {
        TRAIN "training.lora.target_modules=[foo]", TRAIN "--resume %D/none",
        TRAIN "model.device=cpu parallel.collectives=nccl"};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        char line[4096], prefix[PROGRAM_PATH + 8];
        program_end e;
        expand(line, REFUSED[i]);
        snprintf(prefix, sizeof prefix, "%s/run", folder);
        program_run(&e, prefix, "%s", line);
        CHECK(e.code == 2 || e.code == 3);
        CHECK(!program_exists(path_of("%D/out")));
        program_end_free(&e);
    }
}

static void test_lines(void) {
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        expect(LINES[i].what, LINES[i].command, LINES[i].code, LINES[i].parts);
}

/* --- what is no error, but said */

static void said(const char *command, int code, const char *parts, const char *not) {
    char line[4096];
    program_end e;
    expand(line, command);
    program_run(&e, path_of("%D/run"), "%s", line);
    int good = CHECK_EQ_INT(e.code, code);
    good &= CHECK(has_parts(code == 0 ? e.out : e.err, parts));
    good &= CHECK(!not || !strstr(e.err, not));
    if (!good) fprintf(stderr, "  %s\n  expected: %s\n%s\n%s\n", line, parts, e.out, e.err);
    program_end_free(&e);
}

/* A plan for nodes with GPUs is valid where there is none. */
static void test_plan_for_elsewhere(void) {
    if (!access("/dev/nvidiactl", F_OK)) return;
    said("validate %S/configs/train.yaml model.device=cuda", 0, "for train|train will fail on this machine", NULL);
    said("validate %S/configs/quick.yaml model.device=cuda", 0, "for study|study will fail on this machine", NULL);
}

/* Two ranks on one core; where each has one thread, fewer threads are no advice. The run ends at its output folder. */
static void test_oversubscribed(void) {
#define ON_A_DEVICE "mpirun -n 2 train %S/configs/train.yaml output_dir=/dev/null model.device=cpu --threads "
    CHECK(setenv("OMPI_MCA_hwloc_base_cpu_list", "0", 1) == 0);
    said(ON_A_DEVICE "1", 1, "oversubscribed|advice=\"fewer ranks\"", "--threads 1");
    said(ON_A_DEVICE "2", 1, "oversubscribed|advice=\"fewer ranks or --threads 1\"", NULL);
    CHECK(unsetenv("OMPI_MCA_hwloc_base_cpu_list") == 0);
}

/* --- config files; single keys and values: test_config.c */

static const struct {
    const char *what, *text, *parts;
} CONFIGS[] = {
    {"empty", "", "%D/c.yaml: is empty"},
    {"no YAML", "seed: [1\n", "%D/c.yaml:2: is no YAML"},
    {"misspelt section", "seed: 1\ntrainig: {}\n", "%D/c.yaml:2: unknown key 'trainig'; did you mean 'training'?"},
    {"repeated key", "seed: 1\noutput_dir: a\nseed: 2\n", "%D/c.yaml:3: |seed|twice|1"},
    {"alias bomb", "a: &a [x, x]\nb: &b [*a, *a]\n", "%D/c.yaml:1: anchor &a"},
    {"no data set", "model: {name: data/tiny}\n", "%D/c.yaml: dataset is missing"},
};

static void test_configs(void) {
    for (size_t i = 0; i < sizeof CONFIGS / sizeof *CONFIGS; i++) {
        input_write(path_of("%D/c.yaml"), CONFIGS[i].text, strlen(CONFIGS[i].text));
        expect(CONFIGS[i].what, "train %D/c.yaml --quiet", 2, CONFIGS[i].parts);
    }
}

/* --- data; single rows: test_questions.c */

static const struct {
    const char *what, *text, *parts;
} DATA[] = {
    {"repeated id",
     "{\"id\":\"x\",\"question\":\"a?\",\"answer\":\"1\"}\n{\"id\":\"x\",\"question\":\"b?\",\"answer\":\"2\"}\n",
     "lines 1 and 2|same id|x"},
    {"cut line", "{\"id\":\"x\",\"question\":\"a?\",\"answer\":\"1\"}\n{\"id\":\"y\",\"ques", "%D/d.jsonl, line 2"},
    {"no object", "[1]\n", "%D/d.jsonl, line 1: is no JSON object"},
    {"repeated key", "{\"id\":\"x\",\"question\":\"a?\",\"answer\":\"1\",\"answer\":\"2\"}\n", "%D/d.jsonl, line 1"},
    {"10^400", "{\"id\":\"x\",\"question\":\"a?\",\"answer\":\"1\",\"metadata\":{\"n\":1e400}}\n", "%D/d.jsonl, line 1"},
};

static void test_data(void) {
    for (size_t i = 0; i < sizeof DATA / sizeof *DATA; i++) {
        input_write(path_of("%D/d.jsonl"), DATA[i].text, strlen(DATA[i].text));
        expect(DATA[i].what, TRAIN "dataset.path=%D/d.jsonl", 3, DATA[i].parts);
    }
    enum { DEPTH = 100000 };
    static const char HEAD[] = "{\"question\":\"a?\",\"answer\":\"1\",\"metadata\":{\"n\":";
    char *deep = malloc(sizeof HEAD + DEPTH);
    memcpy(deep, HEAD, sizeof HEAD - 1);
    memset(deep + sizeof HEAD - 1, '[', DEPTH);
    input_write(path_of("%D/d.jsonl"), deep, sizeof HEAD - 1 + DEPTH);
    free(deep);
    expect("nesting", TRAIN "dataset.path=%D/d.jsonl", 3, "%D/d.jsonl, line 1");
}

/* --- models: the header of the weights, other files; every way a header can lie: test_safetensors.c */

static const struct {
    const char *what, *from, *to, *parts;
} HEADERS[] = {
    {"overlap", "\"data_offsets\":[287744,288256]", "\"data_offsets\":[287740,288252]",
     "model.layers.0.input_layernorm.weight|overlap"},
    {"beyond the file", "\"data_offsets\":[2651136,2651648]", "\"data_offsets\":[2651136,9651648]",
     "model.norm.weight|9651648"},
    {"backwards", "\"data_offsets\":[287744,288256]", "\"data_offsets\":[288256,287744]", "backwards"},
    {"size overflows", "\"shape\":[562,128]", "\"shape\":[4503599627370496,4096]", "overflows"},
    {"size and range differ", "\"shape\":[562,128]", "\"shape\":[561,128]", "model.embed_tokens.weight|needs"},
    {"unknown type", "\"dtype\":\"F32\",\"shape\":[562", "\"dtype\":\"F31\",\"shape\":[562", "dtype F31 is not known"},
    {"integer weights", "\"dtype\":\"F32\",\"shape\":[562", "\"dtype\":\"I32\",\"shape\":[562", "model.embed_tokens"},
    {"name twice", "\"model.layers.3.self_attn.v_proj.weight\"", "\"model.norm.weight\"", "model.norm.weight|twice"},
    {"missing tensor", "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_prix.weight",
     "model.layers.0.mlp.up_pr"},
    {"wrong shape", "\"shape\":[562,128]", "\"shape\":[128,562]", "model.embed_tokens.weight|[562,128]"},
    {"no JSON", "{\"__metadata__\"", "{__metadata__", "model.safetensors"},
};

static const struct {
    const char *what, *file, *from, *to, *parts;
} FILES[] = {
    {"no weights", "model.safetensors", NULL, NULL, "model.safetensors"},
    {"weights are text", "model.safetensors", NULL, "hello, I am no model", "model.safetensors: header of"},
    {"no config", "config.json", NULL, NULL, "no config.json"},
    {"config is no JSON", "config.json", NULL, "{", "config.json"},
    {"another family", "config.json", "\"llama\"", "\"mamba\"", "\"model_type\" is \"mamba\""},
    {"layers that are not there", "config.json", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5",
     "model.layers.4."},
    {"absurd size", "config.json", "\"hidden_size\": 128", "\"hidden_size\": 1000000000000", "hidden_size"},
    {"broken tokenizer", "tokenizer.json", "\"model\"", "\"modell\"", "tokenizer.json|\"model\""},
    {"empty tokenizer", "tokenizer.json", NULL, "", "tokenizer.json"},
    {"id of two tokens", "tokenizer.json", "\"id\": 1,", "\"id\": 0,", "tokenizer.json|"},
    {"no chat template", "tokenizer_config.json", "\"chat_template\"", "\"chat_templat\"", "chat template"},
    {"eos is no token", "tokenizer_config.json", "\"eos_token\": \"<|im_end|>\"", "\"eos_token\": \"<end>\"",
     "eos_token \"<end>\""},
};

static void test_models(void) {
    static const char COMMAND[] = TRAIN "model.name=%D/model";
    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
        input_model(path_of("%D/model"));
        input_edit_header(path_of("%D/model"), HEADERS[i].from, HEADERS[i].to);
        expect(HEADERS[i].what, COMMAND, 3, HEADERS[i].parts);
        program_remove(path_of("%D/model"));
    }
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        input_model(path_of("%D/model"));
        input_edit(path_of("%D/model"), FILES[i].file, FILES[i].from, FILES[i].to);
        expect(FILES[i].what, COMMAND, strstr(FILES[i].what, "chat template") ? 2 : 3, FILES[i].parts);
        program_remove(path_of("%D/model"));
    }
    input_model(path_of("%D/model"));
    input_cut(path_of("%D/model"), "model.safetensors", 1300000);
    expect("cut weights", COMMAND, 3, "truncated file?");
    input_header_length(path_of("%D/model"), 1ULL << 40);
    expect("huge header", COMMAND, 3, "header of 1099511627776 bytes in a file of 1300000");
    program_remove(path_of("%D/model"));
}

/* Steps of 10 on one batch at a low temperature. */
#define WILD                                                                                                           \
    "training.max_steps=6 training.num_iterations=4 training.learning_rate=10 training.beta=1000 "                    \
    "generation.temperature=0.05 generation.max_tokens=16 experiment.train_dataset.limit=32 training.batch_size=16"

/* Here every loss is finite and the gradient is not: the event names all questions of the batch, as /rollouts has them.
 * (test_learn has losses that are not.) */
static void check_named(const rrl_record *r, int64_t step, const char *named) {
    char want[512] = "", list[512] = "";
    for (int64_t i = 0, last = -1; i < r->training.n; i++) {
        const rrl_rollout_row *row = &r->training.rollouts[i];
        if (row->step != step || (int64_t)row->question == last) continue;
        last = row->question;
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s%s", want[0] ? " " : "",
                 r->training.questions[last].id);
    }
    snprintf(list, sizeof list, "%.*s", (int)strcspn(named, "\"\n"), named);
    CHECK(want[0] && strchr(want, ' '));
    CHECK_EQ_STR(list, want);
}

static void test_nonfinite_event(void) {
    enum { EVENTS = 3, UPDATES = 4 /* of a batch */ };
    char line[4096];
    program_end e;
    rrl_record *r = NULL;
    expand(line, TRAIN WILD " records.steps_per_segment=1 records.writer_share=1");
    program_run(&e, path_of("%D/run"), "%s", line);
    CHECK_EQ_INT(e.code, 5);
    if (CHECK_OK(rrl_record_read(&r, path_of("%D/out"), 1))) {
        int n = 0;
        for (const char *at = e.err; (at = strstr(at, " event=nonfinite ")) != NULL; at++, n++) {
            const char *begin = at, *named = strstr(at, " questions=");
            while (begin > e.err && strncmp(begin, "step=", 5) != 0) begin--;
            int64_t step = strtoll(begin + 5, NULL, 10);
            if (CHECK(named != NULL)) check_named(r, step - step % UPDATES, named + strlen(" questions=") + 1);
        }
        CHECK_EQ_INT(n, EVENTS);
    }
    rrl_record_free(&r);
    program_end_free(&e);
    program_remove(path_of("%D/out"));
}

/* Weights that are not numbers: nothing is sampled past the end, no step is applied, the run says so. */
static void test_nonfinite(void) {
    enum { NORM_AT = 2651136, HIDDEN = 128 };
    input_model(path_of("%D/model"));
    input_fill(path_of("%D/model"), NORM_AT, HIDDEN, NAN);
    expect("weights that are NaN", TRAIN "model.name=%D/model training.max_nonfinite=1", 5, "finite");
    program_remove(path_of("%D/model"));
    expect("a KL term that overflows", TRAIN WILD, 5, "3 steps had a loss or gradient that is not finite|max_nonfinite 3");
    expect("the same on two ranks", "mpirun -n 2 " TRAIN WILD, 5, "3 steps had a loss or gradient that is not finite");
    test_nonfinite_event();
}

/* --- places */

static const struct {
    const char *what, *out;
    int code;
    const char *parts;
} PLACES[] = {
    {"a device", "/dev/null", 1, "/dev/null: is a device"},
    {"below a device", "/dev/null/x", 1, "/dev/null"},
    {"a file", "%D/file", 1, "%D/file: is a file"},
    {"below a file", "%D/file/x", 1, "a file of this name is there"},
    {"a pipe", "%D/pipe", 1, "%D/pipe: is a pipe"},
    {"where nobody may write", "/proc/rrl", 1, "/proc/rrl: folder cannot be made"},
    {"a link to nowhere", "%D/link", 1, "%D/link"},
    {"records of unknown origin", "%D/foreign", 2, "%D/foreign: holds records but no run.json"},
};

static void test_places(void) {
    input_write(path_of("%D/file"), "mine\n", 5);
    CHECK(mkfifo(path_of("%D/pipe"), 0666) == 0);
    CHECK(symlink("/nowhere/at/all", path_of("%D/link")) == 0);
    CHECK(mkdir(path_of("%D/foreign"), 0777) == 0);
    input_write(path_of("%D/foreign/run.h5"), "theirs\n", 7);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        char command[2048];
        snprintf(command, sizeof command, "%soutput_dir=%s", TRAIN, PLACES[i].out);
        expect(PLACES[i].what, command, PLACES[i].code, PLACES[i].parts);
    }
    size_t n;
    char *text = input_read(&n, path_of("%D/file"));
    CHECK_EQ_STR(text, "mine\n");
    free(text);
    text = input_read(&n, path_of("%D/foreign/run.h5"));
    CHECK_EQ_STR(text, "theirs\n");
    free(text);
}

/* --- an output folder that holds another run */

static const struct {
    const char *what, *more, *parts;
} REUSES[] = {
    {"another seed", "seed=43", "seed: 42 -> 43|--fresh"},
    {"another learning rate", "training.learning_rate=0.5", "training.learning_rate: 0.001 -> 0.5"},
    {"two keys", "training.beta=0.5 training.lora.r=4", "training.beta: 0.04 -> 0.5|training.lora.r: 8 -> 4"},
    {"other data", "dataset.limit=1", "model, data or adapter files differ"},
    {"another model", "model.name=%D/model", "model, data or adapter files differ"},
};

static void test_reuse(void) {
    char command[4096], line[4096], digest[2][80] = {"", ""};
    program_end e;
    input_model(path_of("%D/model"));
    input_fill(path_of("%D/model"), 0, 1, 0.5f);
    expand(line, "train %S/configs/train.yaml " SMALL "output_dir=%D/kept");
    program_run(&e, path_of("%D/run"), "%s", line);
    CHECK_EQ_INT(e.code, 0);
    program_end_free(&e);
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < sizeof REUSES / sizeof *REUSES && after; i++) {
            snprintf(command, sizeof command, "train %%S/configs/train.yaml %soutput_dir=%%D/kept %s", SMALL,
                     REUSES[i].more);
            expect(REUSES[i].what, command, 2, REUSES[i].parts);
        }
        expand(line, "show --digest %D/kept");
        program_run(&e, path_of("%D/run"), "%s", line);
        CHECK_EQ_INT(e.code, 0);
        snprintf(digest[after], sizeof digest[after], "%s", e.out);
        program_end_free(&e);
    }
    CHECK(strlen(digest[0]) >= 64);
    CHECK_EQ_STR(digest[0], digest[1]);
}

int main(void) {
    program_folder(folder, "test_errors");
    test_lines();
    test_nothing_left();
    test_plan_for_elsewhere();
    test_oversubscribed();
    test_configs();
    test_data();
    test_models();
    test_nonfinite();
    test_places();
    test_reuse();
    if (check_failures == 0) program_remove(folder);
    return CHECK_DONE();
}

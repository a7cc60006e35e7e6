/* The strict reader: what it refuses and how it says so, what sets do, what a resolved config writes and
 * digests. */
#include "check.h"

#include <locale.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "rrl/config.h"

static rrl_config *parse(const char *text, const char *const *sets, int n_sets) {
    rrl_config *c = NULL;
    CHECK_OK(rrl_config_parse(&c, text, strlen(text), "t.yaml", "/base", sets, n_sets));
    return c;
}

/* --- refusals */

static const struct {
    const char *what, *text, *message; /* message: parts that must stand in it, '|' between */
} REFUSED[] = {
    {"empty file", "", "t.yaml: is empty"},
    {"only a comment", "# nothing\n", "is empty"},
    {"a list", "- 1\n", "t.yaml:1: expects a section|list"},
    {"unknown key", "seed: 1\ntraining:\n  lerning_rate: 1\n",
     "t.yaml:3: training: unknown key 'lerning_rate'; did you mean 'learning_rate'?"},
    {"unknown section", "trainig: {}\n", "t.yaml:1: unknown key 'trainig'; did you mean 'training'?"},
    {"key of another section", "temperature: 1\n",
     "unknown key 'temperature' here; there is generation.temperature"},
    {"key of a part of the section", "training_verifier:\n  members:\n    - kind: rule\n      seed: 1\n",
     "unknown key 'seed' here; did you mean 'corruption.seed'?"},
    {"unknown without a near one", "generation:\n  qqqqqqqqqqqq: 1\n",
     "known here: num_generations, sample_batch_size"},
    {"deep unknown key",
     "training_verifier:\n  members:\n    - kind: rule\n      corruption:\n        knd: flip\n",
     "t.yaml:5: training_verifier.members[0].corruption: unknown key 'knd'; did you mean 'kind'?"},
    {"repeated key", "seed: 1\noutput_dir: a\nseed: 2\n",
     "t.yaml:3: key 'seed' is given twice, first at line 1"},
    {"repeated deep key", "training:\n  lora:\n    r: 1\n    r: 2\n",
     "t.yaml:4: key 'r' is given twice, first at line 3"},
    {"repeated section", "reward: {penalty: 1}\nmodel: {}\nreward: {}\n",
     "t.yaml:3: key 'reward' is given twice"},
    {"octal", "seed: 010\n", "t.yaml:1: seed: expects a whole number; '010' found: a leading zero"},
    {"hexadecimal", "seed: 0x10\n", "'0x10' found: hexadecimal"},
    {"base 60", "training: {max_steps: 1:30}\n",
     "training.max_steps: expects a whole number; '1:30' found: a:b is base 60"},
    {"underscores", "seed: 1_000\n", "without underscores"},
    {"quoted number", "seed: \"42\"\n",
     "seed: expects a whole number; the text \"42\" in quotes found: remove the quotes"},
    {"quoted real", "generation: {top_p: '0.9'}\n", "remove the quotes"},
    {"real for a whole number", "seed: 1.5\n", "expects a whole number; '1.5' found"},
    {"exponent for a whole number", "training: {max_steps: 1e3}\n", "write 1000"},
    {"text for a number", "generation: {top_p: high}\n", "generation.top_p: expects a number; 'high' found"},
    {"decimal comma", "generation: {temperature: \n 0,7}\n", ""},
    {"NaN", "generation: {temperature: .nan}\n",
     "generation.temperature: expects a number; '.nan' found: NaN is no setting"},
    {"NaN without the dot", "generation: {temperature: NaN}\n", "NaN is no setting"},
    {"infinity", "training: {beta: .inf}\n", "infinite"},
    {"too large for a double", "training: {beta: 1e999}\n", "too large"},
    {"too small for a double", "training: {beta: 1e-999}\n", "too small to tell from 0"},
    {"octal real", "training: {beta: 007}\n", "leading zero"},
    {"real out of range", "generation:\n  top_p: 1.2\n",
     "t.yaml:2: generation.top_p: 1.2 is out of range: from 1e-09 to 1"},
    {"negative batch", "training: {batch_size: -8}\n",
     "training.batch_size: -8 is out of range: from 1 to 1000000"},
    {"negative seed", "seed: -1\n", "from 0 to 2^63 - 1"},
    {"seed of 2^63", "seed: 9223372036854775808\n", "9223372036854775808 is out of range"},
    {"probability above 1", "experiment: {levels: [0, 1.2]}\n",
     "experiment.levels[1]: 1.2 is out of range: from 0 to 1"},
    {"confidence scale above 1", "experiment: {corruption: {confidence_scale: 1.5}}\n", "from 0 to 1"},
    {"pipeline depth", "parallel: {pipeline_depth: 2}\n",
     "parallel.pipeline_depth: 2 is out of range: from 0 to 1"},
    {"yes for a boolean", "training: {use_cpu: yes}\n", "'yes' found: YAML readers differ on it, write true"},
    {"no for a boolean", "training: {use_cpu: no}\n", "write false"},
    {"number for a boolean", "training: {use_cpu: 1}\n", "write true"},
    {"quoted boolean", "training: {use_cpu: \"true\"}\n", "remove the quotes"},
    {"unknown word", "reward: {strategy: combinde}\n",
     "expects one of standard | confidence | penalized | combined | "
     "conservative; 'combinde' found (did you mean 'combined'?)"},
    {"unknown source", "dataset:\n  source: json\n",
     "t.yaml:2: dataset.source: expects one of jsonl | gsm8k|'jsonl'?"},
    {"no value", "seed:\n", "t.yaml:1: seed: has no value"},
    {"null for a number", "seed: ~\n", "has no value"},
    {"section for a key", "seed: {a: 1}\n", "seed: expects a whole number; a section found"},
    {"list for a key", "output_dir: [a]\n", "output_dir: expects a path; a list found"},
    {"value for a section", "training: 3\n",
     "training: expects a section, `key: value` lines; a single value found"},
    {"value for a list of sections", "training_verifier: {members: rule}\n", "expects a list"},
    {"section in a list of numbers", "experiment: {seeds: [{a: 1}]}\n",
     "experiment.seeds[0]: expects a whole number"},
    {"empty name in a list", "experiment: {methods: ['']}\n",
     "experiment.methods[0]: expects a text; an empty one"},
    {"alias", "model: &m {name: a}\nreward: *m\n", "t.yaml:1: anchor &m: anchors and aliases"},
    {"merge key", "model: {<<: *m}\n", "alias *m|refused"},
    {"tag", "seed: !!int 42\n", "tag tag:yaml.org,2002:int: tags are refused"},
    {"second document", "seed: 1\n---\nseed: 2\n", "t.yaml:2: a second document"},
    {"complex key", "? [a]\n: 1\n", "a key must be a plain name"},
    {"no YAML", "seed: [1\n", "t.yaml:2: is no YAML"},
    {"a tab", "training:\n\tmax_steps: 1\n", "t.yaml:2: is no YAML"},
    {"broken UTF-8", "output_dir: \xc3\x28\n", "is no UTF-8 text: invalid byte at offset 12"},
    {"NUL in a text", "output_dir: \"a\\0b\"\n", "NUL"},
    {"arm with both",
     "experiment:\n  arms:\n    - {name: a, corruption: flip, members: [none, none, none]}\n",
     "t.yaml:3: experiment.arms[0]: has both corruption and members"},
    {"levels of fixed members", "experiment: {arms: [{name: a, levels: [0], members: [none, none, none]}]}\n",
     "has both levels and members"},
    {"fixed members without a name", "experiment: {arms: [{members: [none, none, none]}]}\n",
     "has members and no name"},
};

static bool has_parts(const char *message, const char *parts) {
    char part[256];
    while (*parts) {
        /* " | " belongs to a list of words; a bare bar separates parts */
        size_t n = 0;
        while (parts[n] && !(parts[n] == '|' && (n == 0 || parts[n - 1] != ' '))) n++;
        snprintf(part, sizeof part, "%.*s", (int)n, parts);
        if (!strstr(message, part)) return false;
        parts += n + (parts[n] == '|');
    }
    return true;
}

static void expect_refused(const char *what, rrl_status rc, const char *parts) {
    bool ok = CHECK_STATUS(rc, RRL_ERR_CONFIG) && CHECK(has_parts(rrl_error_message(), parts)) &&
              CHECK(!strchr(rrl_error_message(), '\n'));
    if (!ok) fprintf(stderr, "  case \"%s\": %s\n  wanted: %s\n", what, rrl_error_message(), parts);
}

static void test_refused(void) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        rrl_config *c = NULL;
        rrl_status rc =
            rrl_config_parse(&c, REFUSED[i].text, strlen(REFUSED[i].text), "t.yaml", "/base", NULL, 0);
        expect_refused(REFUSED[i].what, rc, REFUSED[i].message);
        CHECK(c == NULL);
        rrl_config_close(&c);
    }
    CHECK_EQ_INT(rrl_status_exit_code(RRL_ERR_CONFIG), 2);
}

/* Nine levels of nine, deep nesting, many values: refused at once, not worked through. */
static void test_bombs(void) {
    static char text[1 << 21];
    rrl_config *c = NULL;
    double start = (double)clock();
    size_t n = (size_t)snprintf(text, sizeof text, "a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (char k = 'b'; k <= 'i'; k++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", k, k, k - 1, k - 1,
                              k - 1, k - 1, k - 1, k - 1, k - 1, k - 1, k - 1);
    expect_refused("alias bomb", rrl_config_parse(&c, text, n, "t.yaml", NULL, NULL, 0), "anchor &a");

    memset(text, '[', 100000);
    expect_refused("depth", rrl_config_parse(&c, text, 100000, "t.yaml", NULL, NULL, 0),
                   "nested deeper than 32");
    n = (size_t)snprintf(text, sizeof text, "experiment: {seeds: [");
    for (int i = 0; i < 20000; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d, ", i);
    n += (size_t)snprintf(text + n, sizeof text - n, "1]}\n");
    expect_refused("many values", rrl_config_parse(&c, text, n, "t.yaml", NULL, NULL, 0),
                   "more than 10000 values");
    memset(text, '#', sizeof text);
    expect_refused("long file", rrl_config_parse(&c, text, sizeof text, "t.yaml", NULL, NULL, 0),
                   "are more than");
    CHECK(((double)clock() - start) / CLOCKS_PER_SEC < 5);
}

/* --- values and defaults */

static void test_defaults(void) {
    rrl_config *c = parse("{}\n", NULL, 0);
    CHECK_EQ_INT(c->seed, 42);
    CHECK_EQ_STR(c->output_dir, "/base/runs/run");
    CHECK_EQ_STR(c->model.name, "data/tiny"); /* no such folder below /base: left as a hub id */
    CHECK_EQ_INT(c->model.backend, RRL_BACKEND_TRANSFORMER);
    CHECK_EQ_INT(c->generation.num_generations, 8);
    CHECK(c->generation.temperature == 0.7 && c->generation.top_p == 0.95);
    CHECK_EQ_INT(c->generation.max_tokens, 512);
    CHECK_EQ_INT(c->evaluation.k.n, 3);
    CHECK_EQ_INT(c->evaluation.k.v[0], 1);
    CHECK_EQ_INT(c->evaluation.k.v[2], 8);
    CHECK_EQ_INT(c->training_verifier.n_members, 3);
    CHECK_EQ_INT(c->training_verifier.strategy, RRL_ENSEMBLE_MEAN);
    CHECK_EQ_INT(c->training_verifier.members[2].kind, RRL_MEMBER_RULE);
    CHECK_EQ_INT(c->training_verifier.members[2].corruption.kind, RRL_CORRUPT_NONE);
    CHECK_EQ_INT(c->evaluation_verifier.n_members, 1);
    CHECK(c->training_verifier.members[0].corruption.noise_std == 0.1);
    CHECK(c->training_verifier.members[0].corruption.confidence_scale == 1);
    CHECK_EQ_STR(c->training_verifier.members[0].corruption.bias_key, "class");
    CHECK_EQ_STR(c->training_verifier.members[0].corruption.bias_value, "addition");
    CHECK_EQ_INT(c->reward.strategy, RRL_SHAPE_STANDARD);
    CHECK(c->reward.penalty == 0.2 && c->reward.moderate_threshold == 0.4 &&
          c->reward.severe_threshold == 0.9);
    CHECK(c->reward.moderate_scale == 0.5 && c->reward.severe_scale == 0);
    CHECK_EQ_INT(c->experiment.robust_reward.strategy, RRL_SHAPE_COMBINED);
    CHECK(c->experiment.robust_reward.penalty == 0.2);
    CHECK(c->training.learning_rate == 5e-6 && c->training.beta == 0.04 && c->training.epsilon == 0.2);
    CHECK(c->training.epsilon_high == 0.2); /* resolved */
    CHECK_EQ_INT(c->training.slot_rows, 8); /* resolved */
    CHECK_EQ_INT(c->training.scale_rewards, RRL_SCALE_NONE);
    CHECK_EQ_INT(c->training.loss_type, RRL_LOSS_DAPO);
    CHECK_EQ_INT(c->training.lora.r, 8);
    CHECK_EQ_STR(c->training.lora.target_modules.v[0], "all-linear");
    CHECK(!c->dataset.given && !c->experiment.train_dataset.given);
    CHECK_EQ_INT(c->experiment.n_arms, 1);
    CHECK_EQ_STR(c->experiment.arms[0].name, "none");
    CHECK_EQ_INT(c->experiment.arms[0].methods.n, 3);
    CHECK_EQ_INT(c->n_hypotheses, 0);
    CHECK_EQ_STR(c->file, "t.yaml");
    rrl_config_close(&c);
    rrl_config_close(&c); /* NULL is fine */
}

static void test_values(void) {
    rrl_config *c =
        parse("seed: 9223372036854775807\n"
              "training: {learning_rate: 1e-6, beta: -0.0, use_cpu: true, lora: {target_modules: [q_proj, "
              "v_proj]}}\n"
              "model: {revision: 12e5576, adapter: null, device: auto}\n"
              "dataset: {path: d.jsonl, limit: null, split: no}\n"
              "evaluation:\n  k: 1\n"
              "experiment:\n"
              "  methods:\n  - base\n  - robust\n"
              "  robust_reward: {penalty: .3}\n"
              "  corruption: flip\n"
              "  levels: 0.2\n"
              "reward:\n",
              NULL, 0);
    CHECK_EQ_INT(c->seed, 9223372036854775807LL);
    CHECK(c->training.learning_rate == 1e-6);
    CHECK(c->training.beta == 0 && !signbit(c->training.beta));
    CHECK_EQ_INT(c->model.device, RRL_DEVICE_CPU); /* use_cpu */
    CHECK_EQ_INT(c->training.lora.target_modules.n, 2);
    CHECK_EQ_STR(c->training.lora.target_modules.v[1], "v_proj");
    CHECK_EQ_STR(c->model.revision, "12e5576"); /* a text, though it looks like a number */
    CHECK_EQ_STR(c->model.adapter, "");
    CHECK(c->dataset.given);
    CHECK_EQ_STR(c->dataset.path, "/base/d.jsonl");
    CHECK_EQ_STR(c->dataset.split, "no");
    CHECK_EQ_INT(c->dataset.limit, 0);
    CHECK_EQ_INT(c->evaluation.k.n, 1);
    CHECK_EQ_INT(c->experiment.robust_reward.strategy, RRL_SHAPE_COMBINED); /* kept under a given section */
    CHECK(c->experiment.robust_reward.penalty == 0.3 && c->reward.penalty == 0.2);
    CHECK_EQ_INT(c->experiment.seeds.v[0],
                 9223372036854775807LL); /* the run's seed where no seeds are given */
    CHECK_EQ_STR(c->experiment.arms[0].name, "flip");
    CHECK_EQ_INT(c->experiment.arms[0].corruption.kind, RRL_CORRUPT_FLIP);
    CHECK_EQ_INT(c->experiment.arms[0].levels.n, 1);
    CHECK(c->experiment.arms[0].levels.v[0] == 0.2);
    CHECK_EQ_INT(c->experiment.arms[0].methods.n, 2);
    rrl_config_close(&c);
}

static void test_arms(void) {
    rrl_config *c = parse("experiment:\n"
                          "  corruption: {kind: noise, noise_std: 0.3}\n"
                          "  levels: [0, 0.5]\n"
                          "  arms:\n"
                          "    - {levels: [0.1]}\n"
                          "    - {name: both, corruption: false_positive, shared: true, methods: base}\n"
                          "    - {name: lazy, members: [exploit, {kind: flip, probability: 0.2}, none]}\n",
                          NULL, 0);
    const rrl_arm_config *a = c->experiment.arms;
    CHECK_EQ_INT(c->experiment.n_arms, 3);
    CHECK_EQ_STR(a[0].name, "noise");
    CHECK(a[0].corruption.noise_std == 0.3);
    CHECK_EQ_INT(a[0].levels.n, 1);
    CHECK_EQ_INT(a[1].corruption.kind, RRL_CORRUPT_FALSE_POSITIVE);
    CHECK(a[1].shared && !a[0].shared);
    CHECK_EQ_INT(a[1].levels.n, 2);
    CHECK_EQ_INT(a[1].methods.n, 1);
    CHECK_EQ_INT(a[2].levels.n, 0);
    CHECK_EQ_INT(a[2].n_members, 3);
    CHECK_EQ_INT(a[2].members[0].kind, RRL_CORRUPT_EXPLOIT);
    CHECK(a[2].members[0].probability == 1 && a[2].members[1].probability == 0.2);
    CHECK_EQ_INT(a[2].members[2].kind, RRL_CORRUPT_NONE);
    rrl_config_close(&c);

    c = parse("experiment: {mode: fixture, levels: [0, 0.2], corruption: flip}\nmodel: {backend: fixture}\n",
              NULL, 0);
    CHECK_EQ_INT(c->experiment.arms[0].methods.n, 1);
    CHECK_EQ_STR(c->experiment.arms[0].methods.v[0], RRL_METHOD_AUDIT);
    rrl_config_close(&c);
}

/* --- sets */

static void test_sets(void) {
    const char *const sets[] = {
        "seed=7",
        "experiment.seeds=[1,2]",
        "training_verifier.members[0].corruption.kind=flip",
        "training_verifier.members[0].corruption.probability=0.4",
        "training_verifier.members[3]={kind: exact}",
        "experiment.corruption.probability=0.5", /* the file has `corruption: flip` */
        "model.prompt_template=Q: {question} # all of it",
        "reward={strategy: combined, penalty: 1}",
        "training.lora.r=16",
        "generation.top_p=1",
        "generation.top_p=0.5", /* the last one wins */
        "model.adapter=",
        "dataset.path=\"a b\"",
        "experiment.arms[0].corruption=flip",
    };
    rrl_config *c = parse("experiment: {corruption: flip, arms: [{name: x}]}\nreward: {penalty: 2}\n", sets,
                          (int)(sizeof sets / sizeof *sets));
    char cwd[4096], path[4200];
    CHECK(getcwd(cwd, sizeof cwd) != NULL);
    snprintf(path, sizeof path, "%s/a b", cwd);
    CHECK_EQ_INT(c->seed, 7);
    CHECK_EQ_INT(c->experiment.seeds.n, 2);
    CHECK_EQ_INT(c->experiment.seeds.v[1], 2);
    CHECK_EQ_INT(c->training_verifier.n_members, 4); /* the default three and one more */
    CHECK_EQ_INT(c->training_verifier.members[0].corruption.kind, RRL_CORRUPT_FLIP);
    CHECK(c->training_verifier.members[0].corruption.probability == 0.4);
    CHECK_EQ_INT(c->training_verifier.members[1].corruption.kind, RRL_CORRUPT_NONE);
    CHECK_EQ_INT(c->training_verifier.members[3].kind, RRL_MEMBER_EXACT);
    CHECK_EQ_INT(c->experiment.corruption.kind, RRL_CORRUPT_FLIP);
    CHECK(c->experiment.corruption.probability == 0.5);
    CHECK_EQ_STR(c->model.prompt_template, "Q: {question} # all of it");
    CHECK_EQ_INT(c->reward.strategy, RRL_SHAPE_COMBINED);
    CHECK(c->reward.penalty == 1);
    CHECK_EQ_INT(c->training.lora.r, 16);
    CHECK(c->generation.top_p == 0.5);
    CHECK_EQ_STR(c->dataset.path, path);
    CHECK_EQ_INT(c->experiment.arms[0].corruption.kind, RRL_CORRUPT_FLIP);
    rrl_config_close(&c);
}

static void test_sets_refused(void) {
    static const struct {
        const char *set, *message;
    } CASES[] = {
        {"seed", "--set seed: '=' is missing"},
        {"=1", "a key is missing"},
        {"seeds=1", "--set seeds=1: unknown key 'seeds' here; there is experiment.seeds"},
        {"training.lora.rr=1", "unknown key 'rr'; did you mean 'r'?"},
        {"seed=x", "--set seed=x: seed: expects a whole number; 'x' found"},
        {"seed.a=1", "seed is a single key"},
        {"experiment.seeds[0]=1", "seeds is a single key: write =value after it, a list as [a, b]"},
        {"training_verifier.members[4].kind=rule", "members has 3 elements; index 4 is past its end"},
        {"training_verifier.members.kind=rule", "members is a list: go on with members[0]."},
        {"training_verifier.members[x]=rule", "a list index must be a whole number"},
        {"training[0]=1", "training is a section: go on with training.key"},
        {"generation.top_p=[", "--set generation.top_p=[: is no YAML"},
        {"generation.top_p=2", "--set generation.top_p=2: generation.top_p: 2 is out of range"},
        {"reward={penalty: 1, penalty: 2}", "key 'penalty' is given twice"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_config *c = NULL;
        const char *const sets[] = {CASES[i].set};
        expect_refused(CASES[i].set, rrl_config_parse(&c, "seed: 1\n", 8, "t.yaml", "/base", sets, 1),
                       CASES[i].message);
    }
}

/* --- writing, copies, digests */

static const char RICH[] =
    "seed: 7\n"
    "output_dir: \"out: #1\"\n"
    "dataset: {source: gsm8k, split: test, pool: final_test}\n"
    "model: {name: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae5576, prompt_template: \"a\\nb "
    "\\\"{question}\\\" \\u2028\\x7f ü\"}\n"
    "training: {learning_rate: 1e-6, beta: 0.30000000000000004, lora: {target_modules: [q_proj, v_proj]}}\n"
    "training_verifier: {strategy: majority, members: [exact, {kind: rule, corruption: {kind: bias, "
    "bias_value: 'null'}}]}\n"
    "experiment:\n"
    "  seeds: [1, 2]\n"
    "  corruption: flip\n"
    "  arms: [{name: clean, corruption: none, levels: [0]}, {levels: [0.1, 1e-7]}, {name: lazy, members: "
    "[exploit, none]}]\n"
    "  train_dataset: {path: sub/a.jsonl}\n"
    "hypotheses: [{name: h, contrast: robust - base, direction: less, levels: [0.1]}]\n"
    "parallel: {ranks_per_team: 4}\n";

static void check_same(const rrl_config *a, const rrl_config *b) {
    char *ya = NULL, *yb = NULL, da[65], db[65];
    CHECK_OK(rrl_config_yaml(&ya, a, NULL));
    CHECK_OK(rrl_config_yaml(&yb, b, NULL));
    CHECK_EQ_STR(ya, yb);
    CHECK_OK(rrl_config_digest(da, a, "x"));
    CHECK_OK(rrl_config_digest(db, b, "x"));
    CHECK_EQ_STR(da, db);
    free(ya);
    free(yb);
}

static void test_round_trip(void) {
    rrl_config *c = parse(RICH, NULL, 0), *again = NULL, *copy = NULL;
    char *yaml = NULL;
    /* absolute, and relative to the base: both read back the same */
    CHECK_OK(rrl_config_yaml(&yaml, c, NULL));
    CHECK(strstr(yaml, "output_dir: \"/base/out: #1\"\n") != NULL);
    again = parse(yaml, NULL, 0);
    check_same(c, again);
    CHECK_EQ_STR(again->model.prompt_template, c->model.prompt_template);
    CHECK_EQ_STR(again->training_verifier.members[1].corruption.bias_value, "null");
    CHECK_EQ_STR(again->dataset.id_prefix, "gsm8k-final-test-");
    CHECK(again->dataset.given && again->experiment.train_dataset.given);
    CHECK(!again->experiment.qualification_dataset.given);
    CHECK_EQ_INT(again->experiment.arms[0].corruption.kind, RRL_CORRUPT_NONE);
    CHECK(again->experiment.arms[1].levels.v[1] == 1e-7);
    CHECK(again->training.beta == 0.30000000000000004);
    free(yaml);
    rrl_config_close(&again);

    CHECK_OK(rrl_config_yaml(&yaml, c, "/base"));
    CHECK(strstr(yaml, "/base") == NULL);
    CHECK(strstr(yaml, "path: sub/a.jsonl\n") != NULL);
    CHECK(strstr(yaml, "learning_rate: 1.0e-06\n") != NULL); /* a number to YAML 1.1 readers too */
    CHECK(strstr(yaml, "revision: \"7ae5576\"\n") != NULL);
    again = parse(yaml, NULL, 0);
    check_same(c, again);
    free(yaml);

    CHECK_OK(rrl_config_copy(&copy, c));
    check_same(c, copy);
    char *moved = NULL;
    CHECK_OK(rrl_config_text(&moved, copy, "/elsewhere"));
    copy->output_dir = moved;
    copy->experiment.arms[2].members[0].probability = 0.5;
    CHECK_EQ_STR(c->output_dir, "/base/out: #1");
    CHECK(c->experiment.arms[2].members[0].probability == 1);
    rrl_config_close(&c);
    CHECK_EQ_STR(copy->experiment.train_dataset.path,
                 "/base/sub/a.jsonl"); /* nothing shared with the original */
    rrl_config_close(&copy);
    rrl_config_close(&again);
}

static void digest_with(char out[65], const char *set, const char *extra) {
    const char *const sets[] = {set};
    rrl_config *c = parse(RICH, sets, set ? 1 : 0);
    CHECK_OK(rrl_config_digest(out, c, extra));
    rrl_config_close(&c);
}

static void test_digest(void) {
    static const char *const CHANGES[] = {"seed=8",
                                          "training.beta=0.3",
                                          "training_verifier.members[0].kind=rule",
                                          "model.prompt_template={question}",
                                          "experiment.arms[1].levels=[0.1]",
                                          "generation.kv_dtype=float32",
                                          "training.lora.target_modules=[q_proj]",
                                          "experiment.arms[2].name=lazier"};
    static const char *const KEEPS[] = {"parallel.ranks_per_team=2",
                                        "output_dir=/x",
                                        "model.cpu_threads=3",
                                        "generation.batch_limit=7",
                                        "records.steps_per_segment=3",
                                        "dataset.limit=3",
                                        "training.logging_steps=3",
                                        "training.bf16=true",
                                        "model.name=/y",
                                        "experiment.label=z",
                                        "training.learning_rate=0.000001",
                                        "training.slot_rows=8",
                                        "training.epsilon_high=0.2"};
    char base[65], other[65];
    digest_with(base, NULL, NULL);
    CHECK_EQ_INT(strlen(base), 64);
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        digest_with(other, CHANGES[i], NULL);
        if (!CHECK(strcmp(base, other) != 0)) fprintf(stderr, "  %s\n", CHANGES[i]);
    }
    for (size_t i = 0; i < sizeof KEEPS / sizeof *KEEPS; i++) {
        digest_with(other, KEEPS[i], "");
        if (!CHECK_EQ_STR(base, other)) fprintf(stderr, "  %s\n", KEEPS[i]);
    }
    digest_with(other, NULL, "model=1\n");
    CHECK(strcmp(base, other) != 0);
}

static void test_difference(void) {
    const char *const sets[] = {"training.lora.r=16", "training.learning_rate=1e-5",
                                "parallel.ranks_per_team=1", "experiment.arms[1].levels=[0.1]"};
    rrl_config *a = parse(RICH, NULL, 0), *b = parse(RICH, sets, 4);
    char *ya = NULL, *yb = NULL, *difference = NULL;
    CHECK_OK(rrl_config_yaml(&ya, a, NULL));
    CHECK_OK(rrl_config_yaml(&yb, b, NULL));
    CHECK_OK(rrl_config_difference(&difference, ya, yb));
    CHECK_EQ_STR(difference, "experiment.arms[1].levels: [0.1, 1e-07] -> [0.1]\n"
                             "training.learning_rate: 1e-06 -> 1e-05\n"
                             "training.lora.r: 8 -> 16\n");
    free(difference);
    CHECK_OK(rrl_config_difference(&difference, ya, ya));
    CHECK(difference == NULL);
    free(ya);
    free(yb);
    rrl_config_close(&a);
    rrl_config_close(&b);
}

static void test_notes(void) {
    rrl_config *c = parse("{}", NULL, 0);
    char *notes = NULL;
    CHECK_OK(rrl_config_notes(&notes, c));
    CHECK_EQ_STR(notes, "");
    free(notes);
    rrl_config_close(&c);
    c = parse(
        "generation: {sample_batch_size: 4}\ntraining: {bf16: true, fp16: true, gradient_checkpointing: true}\n"
        "model: {dtype: float16}\nexperiment: {resume: false, qualification_min_pass1: 0.1}\n"
        "training_verifier: {members: [{corruption: {kind: flip, probability: 0.1}}, {corruption: {kind: "
        "flip, "
        "probability: 0.1}}]}\n",
        NULL, 0);
    CHECK_OK(rrl_config_notes(&notes, c));
    CHECK(has_parts(
        notes, "generation.sample_batch_size has no effect|training.bf16 has no effect|training.fp16 has no "
               "effect|model.dtype float16: weights are read as float16, rounded to bfloat16|"
               "experiment.resume false has no effect|"
               "training_verifier.members[0] and [1] have corruption seed 0 both"));
    free(notes);
    rrl_config_close(&c);
}

/* A decimal comma in the environment changes nothing. */
static void test_locale(void) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool comma = false;
    for (size_t i = 0; i < 4 && !comma; i++)
        comma = setlocale(LC_ALL, NAMES[i]) && *localeconv()->decimal_point == ',';
    if (!comma) fprintf(stderr, "no locale with a decimal comma is installed; checked in the present one\n");
    rrl_config *c = parse("training: {beta: 0.5}\n", NULL, 0);
    char *yaml = NULL;
    CHECK(c->training.beta == 0.5);
    CHECK_OK(rrl_config_yaml(&yaml, c, NULL));
    CHECK(strstr(yaml, "beta: 0.5\n") != NULL);
    free(yaml);
    rrl_config_close(&c);
    setlocale(LC_ALL, "C");
}

int main(void) {
    test_refused();
    test_bombs();
    test_defaults();
    test_values();
    test_arms();
    test_sets();
    test_sets_refused();
    test_round_trip();
    test_digest();
    test_difference();
    test_notes();
    test_locale();
    return CHECK_DONE();
}

/* One run, whatever the layout: the digest of records and adapter is the same for colocated and split roles, threads,
 * batch limits and instruction sets; /provenance shows that every rank of a role worked; counters prove the economy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "check.h"
#include "record/record.h"

enum { MAX_COMMAND = 4096, MAX_DIR = 256, STEPS = 3, GROUPS = 4, G = 8, TESTS = 8, MANY = 16 };

typedef struct {
    const char *what;
    int ranks, generators, verifiers, learners; /* roles 0 = colocated */
    int threads, batch_limit;
    const char *isa;
} layout;

static const layout LAYOUTS[] = {
    {"one rank", 1, 0, 0, 0, 1, 64, "auto"},         {"two threads", 1, 0, 0, 0, 2, 64, "auto"},
    {"batch limit 1", 1, 0, 0, 0, 1, 1, "auto"},     {"batch limit 7", 1, 0, 0, 0, 1, 7, "auto"},
    {"portable", 1, 0, 0, 0, 2, 64, "portable"},     {"colocated 2", 2, 0, 0, 0, 1, 64, "auto"},
    {"colocated 4", 4, 0, 0, 0, 1, 7, "auto"},       {"split 1/1/1", 3, 1, 1, 1, 1, 64, "auto"},
    {"split 2/1/1", 4, 2, 1, 1, 1, 64, "auto"},      {"split 1/2/1", 4, 1, 2, 1, 1, 64, "auto"},
    {"split 1/1/2", 4, 1, 1, 2, 1, 64, "auto"},      {"split 2/2/2", 6, 2, 2, 2, 1, 64, "auto"},
    {"avx2", 1, 0, 0, 0, 1, 64, "avx2"},             {"avx512", 1, 0, 0, 0, 2, 7, "avx512"},
    {"colocated 16", MANY, 0, 0, 0, 1, 64, "auto"},  {"split 8/4/4", MANY, 8, 4, 4, 1, 64, "auto"},
    {"split 4/8/4", MANY, 4, 8, 4, 1, 64, "auto"},
};
enum { N_LAYOUTS = 12, AVX2 = 12, AVX512 = 13, MANY_FIRST = 14 }; /* those of small machines come first */

/* Does this machine lack the layout's instructions? */
static bool lacks(const layout *l) {
#if defined(__x86_64__)
    return (l == &LAYOUTS[AVX2] && !__builtin_cpu_supports("avx2")) ||
           (l == &LAYOUTS[AVX512] && !(__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")));
#else
    return l == &LAYOUTS[AVX2] || l == &LAYOUTS[AVX512];
#endif
}

/* A way to train, and the layouts that must agree on it. */
typedef struct {
    const char *name, *more;
    int groups, tests, slots_a_step, updates_a_batch, depth;
    bool dropout;
    const int *layouts;
    int n;
} variant;

static int run(const char *dir, const layout *l, const variant *v) {
    char command[MAX_COMMAND], roles[256] = "";
    if (l->generators > 0)
        snprintf(roles, sizeof roles,
                 "--set parallel.roles.generators=%d --set parallel.roles.verifiers=%d --set parallel.roles.learners=%d",
                 l->generators, l->verifiers, l->learners);
    snprintf(command, sizeof command,
             "mpirun -n %d %s/rrl train %s/configs/train.yaml --quiet --threads %d --isa %s --set output_dir=%s "
             "--set training.max_steps=%d --set training.batch_size=%d --set dataset.limit=%d "
             "--set generation.batch_limit=%d --set generation.max_tokens=24 --set records.steps_per_segment=2 %s %s "
             ">%s.out 2>&1",
             l->ranks, RRL_BINARY_DIR, RRL_SOURCE_DIR, l->threads, l->isa, dir, STEPS, v->groups * G, v->tests,
             l->batch_limit, roles, v->more, dir);
    return system(command);
}

static int64_t count_of(const cJSON *rank, const char *key) {
    int64_t v = -1;
    CHECK_OK(rrl_json_int(&v, rank, key, false, "provenance"));
    return v;
}

/* Ranks of a role worked where there was work; others did none of it. */
static void check_work(const layout *l, const rrl_record *r, const variant *v) {
    cJSON *json = NULL;
    const cJSON *ranks = NULL, *rank = NULL;
    int64_t prefill = 0, decoded = 0, slots = 0, judged = 0, tokens = 0;
    CHECK_OK(rrl_json_parse(&json, r->provenance_json, strlen(r->provenance_json), "provenance"));
    CHECK_OK(rrl_json_get(&ranks, json, "ranks", false, "provenance"));
    CHECK_EQ_INT(cJSON_GetArraySize(ranks), l->ranks);
    cJSON_ArrayForEach(rank, ranks) {
        CHECK_EQ_INT(count_of(rank, "generator") >= 0, count_of(rank, "groups_generated") > 0);
        CHECK_EQ_INT(count_of(rank, "verifier") >= 0, count_of(rank, "groups_judged") > 0);
        CHECK_EQ_INT(count_of(rank, "learner") >= 0, count_of(rank, "slots_learned") > 0);
        if (l->generators > 0 && count_of(rank, "learner") < 0) CHECK(count_of(rank, "bytes_sent") > 0);
        bool computes = count_of(rank, "generator") >= 0 || count_of(rank, "learner") >= 0;
        CHECK_EQ_INT(count_of(rank, "shared_memory") > 0, l->ranks > 1 && computes); /* one base a node */
        prefill += count_of(rank, "prefill_tokens");
        decoded += count_of(rank, "decode_rows");
        slots += count_of(rank, "slots_learned");
        judged += count_of(rank, "groups_judged");
    }
    CHECK_EQ_INT(slots, STEPS * v->slots_a_step);
    CHECK_EQ_INT(judged, STEPS / v->updates_a_batch * v->groups + v->tests);
    for (int64_t i = 0; i < r->training.n; i++) tokens += r->training.rollouts[i].tokens;
    for (int64_t i = 0; i < r->evaluations[0].n; i++) tokens += r->evaluations[0].rollouts[i].tokens;
    CHECK_EQ_INT(decoded, tokens); /* no row was decoded in vain */
    CHECK(prefill > 0);
    cJSON_Delete(json);
}

/* Recorded log-probs equal the trained forward's; the KL to the base is 0 exactly at step 0. */
static void check_training(const rrl_record *r, const variant *v) {
    CHECK_EQ_INT(r->n_rows, STEPS);
    for (int64_t i = 0; i < r->n_rows; i++) {
        bool on_policy = i % v->updates_a_batch == 0 && (v->depth == 0 || i == 0);
        CHECK_EQ_INT(r->rows[i].policy_version, i < v->depth ? 0 : i - i % v->updates_a_batch - v->depth);
        if (v->depth > 0 && i > 1) CHECK(r->rows[i].rollout_logp_maxdiff > 0); /* sampled one version behind */
        if (on_policy && !v->dropout) CHECK(r->rows[i].rollout_logp_maxdiff == 0);
        if (on_policy && v->dropout && i > 0) CHECK(r->rows[i].rollout_logp_maxdiff > 0);
        CHECK(isfinite(r->rows[i].grad_norm) && r->rows[i].grad_norm > 0);
    }
    if (r->n_rows) CHECK(r->rows[0].kl == 0);
    if (r->n_rows > 1) CHECK(r->rows[1].kl > 0);
    CHECK_EQ_INT(r->training.n, STEPS / v->updates_a_batch * v->groups * G);
}

static void compare(const char *root, const variant *v) {
    char first[65] = "", digest[65], dir[MAX_DIR];
    for (int i = 0; i < v->n; i++) {
        const layout *l = &LAYOUTS[v->layouts ? v->layouts[i] : i];
        rrl_record *r = NULL;
        if (lacks(l)) {
            printf("not tested here: %s\n", l->what);
            continue;
        }
        snprintf(dir, sizeof dir, "%s/%s-%d", root, v->name, i);
        CHECK_EQ_INT(run(dir, l, v), 0);
        rrl_status rc = rrl_record_digest(digest, dir);
        CHECK_OK(rc);
        if (rc != RRL_OK) continue;
        if (i == 0) strcpy(first, digest);
        if (strcmp(first, digest) != 0) fprintf(stderr, "%s, layout: %s\n", v->name, l->what);
        CHECK_EQ_STR(digest, first);
        CHECK_OK(rrl_record_read(&r, dir, 0));
        if (!r) continue;
        check_work(l, r, v);
        check_training(r, v);
        rrl_record_free(&r);
    }
}

/* A study by teams of many ranks: the digest is that of one rank. */
static void compare_teams(const char *root) {
    static const struct {
        const char *what, *ranks, *settings;
    } TEAMS[] = {
        {"one rank", "1", ""},
        {"16 teams of one", "16", ""},
        {"4 teams of 4", "16", "--set parallel.ranks_per_team=4"},
        {"4 teams of 2/1/1", "16",
         "--set parallel.roles.generators=2 --set parallel.roles.verifiers=1 --set parallel.roles.learners=1"},
    };
    char first[65] = "", digest[65], dir[MAX_DIR], command[MAX_COMMAND];
    for (size_t i = 0; i < sizeof TEAMS / sizeof *TEAMS; i++) {
        snprintf(dir, sizeof dir, "%s/teams-%zu", root, i);
        snprintf(command, sizeof command,
                 "mpirun -n %s %s/rrl study %s/configs/quick.yaml --quiet --threads 1 --set output_dir=%s "
                 "--set training.max_steps=2 --set dataset.limit=4 --set experiment.train_dataset.limit=8 "
                 "--set generation.max_tokens=12 %s >%s.out 2>&1",
                 TEAMS[i].ranks, RRL_BINARY_DIR, RRL_SOURCE_DIR, dir, TEAMS[i].settings, dir);
        if (!CHECK_EQ_INT(system(command), 0) || !CHECK_OK(rrl_record_digest(digest, dir))) continue;
        if (i == 0) strcpy(first, digest);
        if (!CHECK_EQ_STR(digest, first)) fprintf(stderr, "teams: %s\n", TEAMS[i].what);
    }
}

/* Without an argument every kind of layout on few ranks; "many": on 16. */
int main(int argc, char **argv) {
    static const int many[] = {0, MANY_FIRST, MANY_FIRST + 1, MANY_FIRST + 2};
    static const variant on_many = {"many", "", MANY, MANY, MANY, 1, 0, false, many, 4};
    static const int few[] = {0, 1, 5, 11}; /* one rank, two threads, colocated 2, split 2/2/2 */
    static const int isas[] = {0, 1, 3, 11, AVX2, AVX512};
    static const variant variants[] = {
        {"plain", "", GROUPS, TESTS, GROUPS, 1, 0, false, NULL, N_LAYOUTS},
        {"dropout", "--set training.lora.dropout=0.1 --set training.lora.dropout_in_rollout=true --set training.slot_rows=4",
         GROUPS, TESTS, 2 * GROUPS, 1, 0, false, few, 4},
        {"iterations", "--set training.num_iterations=3 --set training.lora.dropout=0.1 --set training.loss_type=grpo "
         "--set training.batch_size=16 --set training.gradient_accumulation_steps=2", GROUPS, TESTS, GROUPS, 3, 0, true, few, 4},
        {"ahead", "--set parallel.pipeline_depth=1", GROUPS, TESTS, GROUPS, 1, 1, false, few, 4},
        {"bfloat16", "--set model.dtype=bfloat16", GROUPS, TESTS, GROUPS, 1, 0, false, isas, 6},
    };
    char root[] = "/tmp/rrl-layouts-XXXXXX", command[128];
    CHECK(mkdtemp(root) != NULL);
    if (argc > 1 && strcmp(argv[1], "many") == 0) {
        compare(root, &on_many);
        compare_teams(root);
    } else {
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) compare(root, &variants[i]);
    }
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_DONE();
}

/* The whole program on emulated GPUs: under `exact` every layout gives the records of the CPU, whether gradients and
 * adapters go by NCCL or through host memory; the log says which way and why, /provenance on which GPU a rank was. */
#include "check.h"

#include "record/record.h"

enum { MAX_COMMAND = 2048 };

static const char SETTINGS[] = /* few tokens: the emulation is slow */
    "--threads 1 --set training.max_steps=2 --set generation.num_generations=2 --set training.batch_size=4 "
    "--set generation.max_tokens=4 --set dataset.limit=1 --set evaluation.k=1 --set training.save_steps=0 "
    "--set 'training_verifier.members[0].corruption.probability=0.5' --set model.prompt_format=text "
    "--set 'model.prompt_template={question}' --set training.lora.r=2 --set model.deterministic=exact";
#define SPLIT "--set parallel.roles.generators=1 --set parallel.roles.verifiers=1 --set parallel.roles.learners=1"

static const struct {
    const char *what;
    int ranks, gpus; /* GPUs 0 = on the CPU */
    const char *more;
    const char *logged[3];     /* stand in the log, in any order */
    const char *provenance[3]; /* stand in /provenance */
} CASES[] = {
    {"the CPU", 1, 0, "", {"device=cpu"}, {"\"collectives\": \"none\""}},
    {"two ranks, a GPU each", 2, 2, "",
     {"way=\"nccl emulated\"", "0=GPU-656d756c-6174-6564-0000-000000000000 1=GPU-656d756c-6174-6564-0000-000000000001"},
     {"\"collectives\": \"nccl emulated\"", "\"gpu\": \"GPU-656d756c-6174-6564-0000-000000000000\"",
      "\"gpu\": \"GPU-656d756c-6174-6564-0000-000000000001\""}},
    {"two ranks on one GPU, unasked", 2, 1, "",
     {"way=\"mpi through host memory: ranks 0 and 1 share GPU-", "event=gpu_shared"},
     {"\"collectives\": \"mpi through host memory: ranks 0 and 1 share GPU-"}},
    {"roles split, the verifier without a GPU", 3, 2, SPLIT,
     {"way=\"nccl emulated\"", "0=GPU-656d756c-6174-6564-0000-000000000000 2=GPU-656d756c-6174-6564-0000-000000000001"},
     {"\"collectives\": \"nccl emulated\""}},
};
enum { N = sizeof CASES / sizeof *CASES };

static char *read_text(const char *path) {
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL && fread(text, 1, (1 << 16) - 1, f) > 0);
    if (f) fclose(f);
    return text;
}

static void check_texts(const char *text, const char *const wanted[3], const char *what) {
    for (int i = 0; i < 3 && wanted[i]; i++)
        if (!CHECK(strstr(text, wanted[i]) != NULL)) fprintf(stderr, "  %s: no %s in\n%s\n", what, wanted[i], text);
}

static void run(int i, char digest[65]) {
    char command[MAX_COMMAND], dir[256], log[300];
    rrl_record *r = NULL;
    snprintf(dir, sizeof dir, "%s/test_cuda_ranks-%d", RRL_BINARY_DIR, i);
    snprintf(log, sizeof log, "%s.log", dir);
    snprintf(command, sizeof command,
             "rm -rf %s; EMULATED_GPUS=%d mpirun -n %d %s/tests/cuda_host/rrl train %s/configs/train.yaml "
             "--set model.device=%s --set output_dir=%s %s %s >%s 2>&1",
             dir, CASES[i].gpus, CASES[i].ranks, RRL_BINARY_DIR, RRL_SOURCE_DIR, CASES[i].gpus ? "cuda" : "cpu", dir,
             SETTINGS, CASES[i].more, log);
    const int rc = system(command);
    char *text = read_text(log);
    if (!CHECK_EQ_INT(rc, 0)) fprintf(stderr, "  %s\n%s\n", command, text);
    check_texts(text, CASES[i].logged, CASES[i].what);
    if (rc == 0 && CHECK_OK(rrl_record_digest(digest, dir)) && CHECK_OK(rrl_record_read(&r, dir, 0))) {
        check_texts(r->provenance_json, CASES[i].provenance, CASES[i].what);
        CHECK(r->n_rows == 2 && r->rows[0].grad_norm > 0 && r->rows[1].kl > 0); /* something was learnt */
        CHECK(r->rows[0].rollout_logp_maxdiff == 0 && r->rows[1].rollout_logp_maxdiff == 0);
    }
    rrl_record_free(&r);
    free(text);
}

int main(void) {
    char first[65] = "", digest[65];
    for (int i = 0; i < N; i++) {
        digest[0] = '\0';
        run(i, digest);
        if (i == 0) strcpy(first, digest);
        else if (!CHECK_EQ_STR(digest, first)) fprintf(stderr, "  %s\n", CASES[i].what);
    }
    return CHECK_DONE();
}

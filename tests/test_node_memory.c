/* Two ranks of a node: one packed copy of a base for both, counted by the kernel; who fails while filling; who leaves first;
 * memory that is not to be had. Run under mpirun -n 2. */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "model/merge.h"
#include "roles/node_memory.h"

enum { HIDDEN = 512, LAYERS = 6, HEADS = 8, INTERMEDIATE = 1536, VOCAB = 4096, PROMPT = 5, BYTES = 1 << 16 };
static const char CONFIG[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 6, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 8, \"intermediate_size\": 1536, \"vocab_size\": 4096, \"max_position_embeddings\": 64, "
    "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, \"tie_word_embeddings\": true, \"hidden_act\": \"silu\", "
    "\"eos_token_id\": 0}";

static int rank;

/* --- a model of 90 MB, written once */

typedef struct {
    rrl_st_tensor heads[2 + LAYERS * 9];
    char names[2 + LAYERS * 9][256];
    int n;
    float *numbers;
} weights;

static void add(weights *w, const char *name, int64_t rows, int64_t cols) {
    rrl_st_tensor *t = &w->heads[w->n];
    snprintf(w->names[w->n], sizeof w->names[0], "%s", name);
    *t = (rrl_st_tensor){.name = w->names[w->n++], .dtype = RRL_ST_F32, .n_dims = cols ? 2 : 1, .dims = {rows, cols},
                         .n_elements = rows * (cols ? cols : 1)};
}

static rrl_status numbers_of(const void **bytes, int64_t i, void *context) {
    weights *w = context;
    for (int64_t e = 0; e < w->heads[i].n_elements; e++)
        w->numbers[e] = w->heads[i].n_dims == 1 ? 1.0f : (float)((e * 7919 + i * 104729) % 4001 - 2000) * 2e-5f;
    *bytes = w->numbers;
    return RRL_OK;
}

static void write_model(const char *dir) {
    static const struct {
        const char *name;
        int rows, cols;
    } PARTS[] = {{"self_attn.q_proj", HIDDEN, HIDDEN},      {"self_attn.k_proj", HIDDEN, HIDDEN},
                 {"self_attn.v_proj", HIDDEN, HIDDEN},      {"self_attn.o_proj", HIDDEN, HIDDEN},
                 {"mlp.gate_proj", INTERMEDIATE, HIDDEN},   {"mlp.up_proj", INTERMEDIATE, HIDDEN},
                 {"mlp.down_proj", HIDDEN, INTERMEDIATE},   {"input_layernorm", HIDDEN, 0},
                 {"post_attention_layernorm", HIDDEN, 0}};
    weights *w = calloc(1, sizeof *w);
    char name[256];
    w->numbers = malloc((size_t)VOCAB * HIDDEN * sizeof(float));
    add(w, "model.embed_tokens.weight", VOCAB, HIDDEN);
    add(w, "model.norm.weight", HIDDEN, 0);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", l, PARTS[i].name);
            add(w, name, PARTS[i].rows, PARTS[i].cols);
        }
    CHECK_OK(rrl_dir_make(dir));
    snprintf(name, sizeof name, "%s/model.safetensors", dir);
    CHECK_OK(rrl_safetensors_stream(name, w->heads, w->n, numbers_of, w));
    snprintf(name, sizeof name, "%s/config.json", dir);
    CHECK_OK(rrl_file_publish(name, CONFIG, strlen(CONFIG)));
    free(w->numbers);
    free(w);
}

/* --- what the kernel counts */

/* A line of /proc/self/smaps_rollup, bytes. */
static double counted(const char *key) {
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) kb += strtod(line + strlen(key), NULL);
    if (f) fclose(f);
    return kb * 1024;
}

static double sum(double x) {
    double all = 0;
    MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

typedef struct {
    double proportional, own; /* growth of both ranks: shares of pages counted by their users; pages of one user */
    char digest[65];
    float logits[PROMPT * VOCAB];
    bool filled;
} opened;

/* Open the model as the engine does, in shared memory or, with n NULL, in each rank's own. */
static void open_model(opened *o, rrl_node_memory *n, rrl_dtype dtype, const char *dir) {
    static const int32_t prompt[PROMPT] = {1, 77, 4000, 3, 2048};
    rrl_device *d = NULL;
    rrl_model *m = NULL;
    rrl_model_config c;
    rrl_node_block block;
    rrl_watch watch = {.size = 1, .timeout_s = 60};
    char name[65];
    CHECK_OK(rrl_cpu_open_dtype(&d, dtype, "auto", 1));
    CHECK_OK(rrl_model_config_read(&c, dir));
    malloc_trim(0); /* what was freed before is not to be used again */
    const double proportional = counted("Pss:"), own = counted("Private_Clean:") + counted("Private_Dirty:");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(rrl_model_room_name(name, d, dir));
    rrl_node_block_open(&block, n, name, rrl_model_room_bytes(d, &c), &watch);
    CHECK_EQ_INT(block.data != NULL, n != NULL);
    const rrl_model_room room = {block.data, block.filled};
    CHECK_OK(rrl_model_open_in(&m, d, dir, room.data ? &room : NULL));
    rrl_node_block_filled(n, &block);
    CHECK_OK(rrl_merge_logits(o->logits, m, NULL, prompt, PROMPT)); /* every page is read */
    MPI_Barrier(MPI_COMM_WORLD);
    o->proportional = sum(counted("Pss:") - proportional);
    o->own = sum(counted("Private_Clean:") + counted("Private_Dirty:") - own);
    o->filled = block.filled;
    strcpy(o->digest, rrl_model_digest(m));
    MPI_Barrier(MPI_COMM_WORLD);
    rrl_model_close(&m);
    rrl_node_block_close(n, &block);
    rrl_device_close(&d);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_one_copy(rrl_node_memory *n, const char *dir) {
    static opened alone, shared;
    static const rrl_dtype types[] = {RRL_F32, RRL_BF16};
    rrl_model_config c;
    struct rusage u;
    CHECK_OK(rrl_model_config_read(&c, dir));
    for (int i = 0; i < 2; i++) {
        const double copy = (double)rrl_model_shared_bytes(&c, types[i]), before = counted("Rss:");
        open_model(&alone, NULL, types[i], dir);
        CHECK(alone.proportional > 1.9 * copy && alone.own > 1.9 * copy); /* the measure sees a copy each */
        if (i == 0) { /* pages of the weight file, as large as the copy, are let go while it is packed */
            getrusage(RUSAGE_SELF, &u);
            CHECK((double)u.ru_maxrss * 1024 - before < 1.4 * copy);
        }
        open_model(&shared, n, types[i], dir);
        CHECK(shared.proportional > 0.9 * copy && shared.proportional < 1.2 * copy);
        CHECK(shared.own < 0.2 * copy);
        CHECK_EQ_INT(sum(shared.filled), 1); /* one rank packed, the other found it packed */
        CHECK_EQ_STR(shared.digest, alone.digest);
        CHECK_EQ_INT(memcmp(shared.logits, alone.logits, sizeof alone.logits), 0);
        if (rank == 0)
            printf("%s: %.1f MB a copy; two ranks %.2f of it, without sharing %.2f\n", i ? "bf16" : "f32", copy / 1e6,
                   shared.proportional / copy, alone.proportional / copy);
    }
}

/* --- blocks by themselves */

/* Rank 0 gives up what it was to fill while rank 1 waits for it: rank 1 fills. */
static void test_filler_fails(rrl_node_memory *n) {
    rrl_watch watch = {.size = 1, .timeout_s = 60};
    rrl_node_block b;
    if (rank == 0) {
        rrl_node_block_open(&b, n, "fails", BYTES, &watch);
        CHECK(b.data && !b.filled);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(50000); /* rank 1 is likely to wait by now; if not, it finds the block free: the same end */
        rrl_node_block_close(n, &b);
    } else {
        rrl_node_block_open(&b, n, "fails", BYTES, &watch);
        CHECK(b.data && !b.filled);
        rrl_node_block_close(n, &b);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool in_maps(const char *what) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;
    while (f && fgets(line, sizeof line, f)) found = found || strstr(line, what) != NULL;
    if (f) fclose(f);
    return found;
}

/* The rank that filled leaves first: who has the block keeps it, who comes later fills one of its own. */
static void test_owner_leaves(rrl_node_memory *n) {
    rrl_watch watch = {.size = 1, .timeout_s = 60};
    rrl_node_block b, again, other;
    rrl_node_block_open(&b, rank == 1 ? n : NULL, "owned", BYTES, &watch);
    if (rank == 1) {
        CHECK(b.data && !b.filled && ((char *)b.data)[BYTES - 1] == 0);
        memset(b.data, 'x', BYTES);
        rrl_node_block_filled(n, &b);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        rrl_node_block_open(&b, n, "owned", BYTES, &watch);
        CHECK(b.filled && ((char *)b.data)[BYTES - 1] == 'x');
        CHECK(in_maps("/memfd:rrl-node-memory (deleted)")); /* no name that a kill could leave behind */
        rrl_node_block_open(&other, n, "owned", 2 * BYTES, &watch); /* same name, another size: another block */
        CHECK(other.data && !other.filled);
        rrl_node_block_close(n, &other);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) rrl_node_block_close(n, &b);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK(((char *)b.data)[0] == 'x');
        rrl_node_block_open(&again, n, "owned", BYTES, &watch);
        CHECK(again.data && !again.filled);
        rrl_node_block_close(n, &again);
        rrl_node_block_close(n, &b);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* No memory: every rank is told, and uses its own. */
static void test_refused(rrl_node_memory *n) {
    rrl_watch watch = {.size = 1, .timeout_s = 60};
    rrl_node_block b;
    setenv("RRL_FAULT", "*:node.memory:1:full", 1);
    for (int r = 0; r < 2; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != r) continue;
        rrl_node_block_open(&b, n, "refused", BYTES, &watch);
        CHECK(b.data == NULL && !b.filled);
        rrl_node_block_close(n, &b);
    }
    unsetenv("RRL_FAULT");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* No board: all agree that nothing is shared. */
static void test_no_board(void) {
    rrl_node_memory *n = NULL;
    setenv("RRL_FAULT", "*:node.memory:1:fail", 1);
    CHECK_OK(rrl_node_memory_open(&n, MPI_COMM_WORLD, NULL));
    CHECK(n == NULL);
    unsetenv("RRL_FAULT");
    CHECK_OK(rrl_node_memory_open(&n, MPI_COMM_SELF, NULL)); /* alone there is nobody to share with */
    CHECK(n == NULL);
}

int main(int argc, char **argv) {
    rrl_node_memory *n = NULL;
    int size, failed, any = 0;
    char dir[64] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ_INT(size, 2);
    if (rank == 0) {
        strcpy(dir, "/tmp/rrl-node-memory-XXXXXX");
        CHECK(mkdtemp(dir) != NULL);
        write_model(dir);
    }
    MPI_Bcast(dir, (int)sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_OK(rrl_node_memory_open(&n, MPI_COMM_WORLD, NULL));
    if (CHECK(n != NULL)) {
        test_filler_fails(n);
        test_owner_leaves(n);
        test_refused(n);
        test_one_copy(n, dir);
    }
    test_no_board();
    rrl_node_memory_close(&n);
    if (rank == 0) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", dir);
        CHECK_EQ_INT(system(command), 0);
    }
    failed = CHECK_DONE();
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}

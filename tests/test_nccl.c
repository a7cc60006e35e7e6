/* test_nccl MODULE, under mpirun: collectives over the memory of emulated GPUs. The plan of NCCL calls is the same on
 * all ranks; sums are the tree's bits, or NCCL's where its order is allowed; a rank that never comes ends the call. */
#include "check.h"

#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

#include "cuda_host/nccl_host.h"
#include "device/collective_mpi.h"
#include "device/collective_pair.h"
#include "device/cuda_module.h"
#include "roles/team.h"

enum { MOST_RANKS = 4, N = 1000, LONG = 100000, CALLS = 4096 };

static int rank, size;
static rrl_watch watch;
static const rrl_cuda_module *module;
/* NCCL's stand-in inside the module */
static struct {
    const char *(*calls)(void);
    void (*forget)(void);
    int (*wrong)(void);
    int (*aborted)(void);
    void (*take_away)(int);
} nccl;

static void load(const char *path) {
    if (!CHECK_OK(rrl_cuda_module_load_file(&module, path))) exit(CHECK_DONE());
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    *(void **)&nccl.calls = dlsym(handle, "nccl_host_calls");
    *(void **)&nccl.forget = dlsym(handle, "nccl_host_forget");
    *(void **)&nccl.wrong = dlsym(handle, "nccl_host_wrong");
    *(void **)&nccl.aborted = dlsym(handle, "nccl_host_aborted");
    *(void **)&nccl.take_away = dlsym(handle, "nccl_host_take_away");
}

/* --- a world of ranks with a GPU each, or one for all */

typedef struct {
    rrl_device *device;
    rrl_collective_pair pair;
    rrl_status rc;
} world;

static void pause_watch(void *context, double since) {
    (void)context;
    rrl_watch_pause(&watch, since);
}

static world open_world(rrl_determinism determinism, int gpus, rrl_collective_way way, double timeout_s) {
    world w = {0};
    char text[8];
    rrl_collective *host = NULL;
    const rrl_cuda_options o = {.gpu = rank % gpus, .determinism = determinism};
    rrl_collective_site site = {.pause = pause_watch, .phase = &watch.phase, .timeout_s = timeout_s};
    snprintf(text, sizeof text, "%d", gpus);
    setenv("EMULATED_GPUS", text, 1);
    nccl.forget();
    CHECK_OK(module->open(&w.device, &o));
    CHECK_OK(rrl_collective_mpi_open(&host, MPI_COMM_WORLD, &watch));
    w.rc = rrl_collective_pair_open(&w.pair, host, w.device, &site, way);
    return w;
}

static void close_world(world *w) {
    rrl_collective_pair_close(&w->pair);
    rrl_device_close(&w->device);
}

static void *on_device(world *w, const void *host, size_t bytes) {
    void *p = NULL;
    CHECK_OK(w->device->ops->alloc(w->device, &p, bytes, "test"));
    if (host) CHECK_OK(w->device->ops->upload(w->device, p, host, bytes));
    return p;
}

/* --- sums */

/* Numbers whose sum depends on the order. */
static float number(int of_rank, int i) {
    unsigned h = ((unsigned)of_rank * 7919u + (unsigned)i * 104729u + 1u) * 2654435761u;
    return ldexpf((float)(h >> 8) - 8388608.0f, (int)(h & 15) - 24);
}

/* The rule itself: node i of the next level = node 2i + node 2i+1, an odd last one moves up unchanged. */
static float tree(int active, int i) {
    float node[MOST_RANKS];
    for (int r = 0; r < active; r++) node[r] = number(r, i);
    while (active > 1) {
        for (int k = 0; 2 * k < active; k++) node[k] = 2 * k + 1 < active ? node[2 * k] + node[2 * k + 1] : node[2 * k];
        active = (active + 1) / 2;
    }
    return node[0];
}

/* The order of NCCL's stand-in. */
static float ascending(int active, int i) {
    float sum = number(0, i);
    for (int r = 1; r < size; r++) sum += r < active ? number(r, i) : 0.0f;
    return sum;
}

static void test_sum(world *w, int n, int active, float (*want)(int active, int i)) {
    float *host = calloc((size_t)n, sizeof *host);
    int wrong = 0;
    for (int i = 0; i < n; i++) host[i] = rank < active ? number(rank, i) : NAN; /* idle ranks bring nothing */
    float *x = on_device(w, host, (size_t)n * sizeof *x), *scratch = on_device(w, NULL, (size_t)n * sizeof *x);
    rrl_collective *c = w->pair.device;
    CHECK_OK(c->ops->tree_sum(c, x, scratch, n, active));
    CHECK_OK(w->device->ops->download(w->device, host, x, (size_t)n * sizeof *x));
    for (int i = 0; i < n; i++) wrong += host[i] != want(active, i);
    if (!CHECK_EQ_INT(wrong, 0)) fprintf(stderr, "  rank %d, %d of %d active, %s\n", rank, active, size, w->pair.how);
    w->device->ops->free(w->device, x);
    w->device->ops->free(w->device, scratch);
    free(host);
}

static void test_sums(world *w, float (*want)(int active, int i)) {
    for (int active = 1; active <= size; active++) test_sum(w, N, active, want);
    test_sum(w, LONG, size, want);
}

/* Does the order matter for these numbers? */
static void test_numbers(void) {
    int differ = 0;
    for (int i = 0; i < N; i++) differ += tree(size, i) != ascending(size, i);
    if (size > 2) CHECK(differ > N / 10);
}

/* --- broadcast and rows */

static void test_broadcast(world *w) {
    rrl_collective *c = w->pair.device;
    for (int root = 0; root < size; root++) {
        float host[N];
        for (int i = 0; i < N; i++) host[i] = number(rank, i);
        float *x = on_device(w, host, sizeof host);
        CHECK_OK(c->ops->broadcast(c, x, sizeof host, root));
        CHECK_OK(w->device->ops->download(w->device, host, x, sizeof host));
        int wrong = 0;
        for (int i = 0; i < N; i++) wrong += host[i] != number(root, i);
        CHECK_EQ_INT(wrong, 0);
        w->device->ops->free(w->device, x);
    }
}

/* Rank 1 has none. */
static void test_rows(world *w) {
    enum { ROW = 24, MOST = MOST_RANKS * 3 };
    unsigned char host[MOST * ROW] = {0};
    int32_t first[MOST_RANKS + 1] = {0};
    rrl_collective *c = w->pair.device;
    for (int r = 0; r < size; r++) first[r + 1] = first[r] + (r == 1 ? 0 : r + 1 < 3 ? r + 1 : 3);
    for (int i = first[rank] * ROW; i < first[rank + 1] * ROW; i++) host[i] = (unsigned char)(i * 31 + 7);
    void *x = on_device(w, host, sizeof host);
    CHECK_OK(c->ops->share_rows(c, x, ROW, first));
    CHECK_OK(w->device->ops->download(w->device, host, x, sizeof host));
    int wrong = 0;
    for (int i = 0; i < (int)sizeof host; i++)
        wrong += host[i] != (i < first[size] * ROW ? (unsigned char)(i * 31 + 7) : 0);
    CHECK_EQ_INT(wrong, 0);
    w->device->ops->free(w->device, x);
}

/* --- the plan of calls */

/* Lines of the calls that all ranks make together are the same everywhere. */
static void check_common(void) {
    char common[CALLS] = "", first[CALLS];
    for (const char *line = nccl.calls(), *end; *line; line = end) {
        end = strchr(line, '\n') + 1;
        if (*line == 'a' || *line == 'b') strncat(common, line, (size_t)(end - line));
    }
    strcpy(first, common);
    MPI_Bcast(first, CALLS, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ_STR(common, first);
}

static const struct {
    int size, rank;
    const char *exact, *run; /* a sum of 10 numbers with all ranks active */
} PLANS[] = {
    {1, 0, "", ""},
    {2, 0, "{\nreceive 40 from 1\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
    {2, 1, "{\nsend 40 to 0\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
    {4, 0, "{\nreceive 40 from 1\n}\n{\nreceive 40 from 2\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
    {4, 1, "{\nsend 40 to 0\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
    {4, 2, "{\nreceive 40 from 3\n}\n{\nsend 40 to 0\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
    {4, 3, "{\nsend 40 to 2\n}\nbroadcast 40 from 0\n", "all_reduce 10\n"},
};

static void test_plan(world *w, bool exact) {
    nccl.forget();
    test_sum(w, 10, size, exact ? tree : ascending);
    for (size_t i = 0; i < sizeof PLANS / sizeof *PLANS; i++)
        if (PLANS[i].size == size && PLANS[i].rank == rank)
            CHECK_EQ_STR(nccl.calls(), exact ? PLANS[i].exact : PLANS[i].run);
}

/* --- which rank gets which GPU */

static void test_turns(void) {
    static const struct {
        int gpus, ranks_per_gpu, want[6]; /* of the first ranks of a node */
    } TURNS[] = {
        {4, 1, {0, 1, 2, 3, 0, 1}}, {1, 1, {0, 0, 0, 0, 0, 0}}, {3, 2, {0, 0, 1, 1, 2, 2}}, {2, 2, {0, 0, 1, 1, 0, 0}}};
    for (size_t i = 0; i < sizeof TURNS / sizeof *TURNS; i++)
        for (int turn = 0; turn < 6; turn++) {
            const rrl_team t = {.engine_on_node = turn};
            CHECK_EQ_INT(rrl_team_gpu(&t, TURNS[i].gpus, TURNS[i].ranks_per_gpu), TURNS[i].want[turn]);
        }
}

/* --- all of it, by each way */

static void test_way(rrl_determinism determinism, int gpus, rrl_collective_way way, const char *how) {
    const bool own = strcmp(how, "nccl emulated") == 0;
    const bool exact = determinism == RRL_DETERMINISM_EXACT || !own; /* by MPI it is always the tree */
    world w = open_world(determinism, gpus, way, 60);
    if (CHECK_OK(w.rc)) {
        if (!CHECK(strncmp(w.pair.how, how, strlen(how)) == 0)) fprintf(stderr, "  how: %s\n", w.pair.how);
        CHECK(w.pair.device != w.pair.host);
        test_sums(&w, exact ? tree : ascending);
        test_broadcast(&w);
        test_rows(&w);
        check_common();
        if (own) test_plan(&w, exact);
        else CHECK_EQ_STR(nccl.calls(), "");
    }
    close_world(&w);
    CHECK_EQ_INT(nccl.wrong(), 0);
}

/* --- a way that was asked for and is not there */

static void test_missing(void) {
    nccl.take_away(rank == size - 1);
    char how[96], error[64];
    snprintf(how, sizeof how, "mpi through host memory: rank %d: libnccl.so.2: not found", size - 1);
    snprintf(error, sizeof error, "rank %d cannot, libnccl.so.2: not found", size - 1);
    test_way(RRL_DETERMINISM_RUN, MOST_RANKS, RRL_WAY_BEST, how);
    world w = open_world(RRL_DETERMINISM_RUN, MOST_RANKS, RRL_WAY_OWN, 60);
    CHECK_EQ_INT(w.rc, RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), error) != NULL);
    close_world(&w);
    nccl.take_away(0);
}

/* --- a rank that never comes: it stays away until the others have given up, so no time decides */

static void test_lost(void) {
    world w = open_world(RRL_DETERMINISM_EXACT, MOST_RANKS, RRL_WAY_BEST, 0.5);
    rrl_collective *c = w.pair.device;
    float *x = on_device(&w, NULL, N * sizeof *x), *scratch = on_device(&w, NULL, N * sizeof *x);
    const int before = nccl.aborted();
    char place[64];
    watch.phase = "a test";
    snprintf(place, sizeof place, "rank %d of the NCCL communicator waited", rank);
    if (rank != size - 1) {
        CHECK_EQ_INT(c->ops->tree_sum(c, x, scratch, N, size), RRL_ERR_COMM);
        CHECK(strstr(rrl_error_message(), place) && strstr(rrl_error_message(), "in phase a test"));
        CHECK_EQ_INT(nccl.aborted(), before + 1);
        CHECK_EQ_INT(c->ops->broadcast(c, x, sizeof *x, 0), RRL_ERR_COMM); /* at once: it is given up */
        CHECK(strstr(rrl_error_message(), "has given up") != NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    w.device->ops->free(w.device, x);
    w.device->ops->free(w.device, scratch);
    close_world(&w);
}

static int shared_result(void) {
    int mine = CHECK_DONE(), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return all;
}

int main(int argc, char **argv) {
    rrl_watched ranks[MOST_RANKS] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 0; r < MOST_RANKS; r++) ranks[r].role = "all";
    MPI_Comm control;
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    watch = (rrl_watch){
        .control = control, .rank = rank, .size = size, .phase = "setup", .ranks = ranks, .timeout_s = 60};
    if (argc != 2 || size > MOST_RANKS) return 1;
    load(argv[1]);
    test_numbers();
    test_turns();
    const char *shared = size > 1 ? "mpi through host memory: ranks 0 and 1 share GPU-" : "nccl emulated";
    test_way(RRL_DETERMINISM_EXACT, MOST_RANKS, RRL_WAY_BEST, "nccl emulated");
    test_way(RRL_DETERMINISM_RUN, MOST_RANKS, RRL_WAY_BEST, "nccl emulated");
    test_way(RRL_DETERMINISM_EXACT, 1, RRL_WAY_BEST, shared);
    test_way(RRL_DETERMINISM_EXACT, 1, RRL_WAY_OWN, "nccl emulated");
    test_way(RRL_DETERMINISM_RUN, MOST_RANKS, RRL_WAY_HOST, "mpi through host memory: as parallel.collectives says");
    test_missing();
    if (size > 1) test_lost();
    MPI_Comm_free(&control);
    return shared_result();
}

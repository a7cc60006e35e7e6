/* NCCL between two processes that share the GPU. Each is this program again, so that none inherits a CUDA context; they
 * find each other through a pair of sockets, which is the host's collective here. */
#include "ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/collective_pair.h"

enum { N = 1000003, SKIPPED = 77 };
static const double TIMEOUT_S = 60;

/* --- the host's collective: two ranks, one socket */

static rrl_status put(rrl_collective *c, const void *x, size_t n) {
    for (ssize_t k = 0; n > 0; x = (const char *)x + k, n -= (size_t)k)
        if ((k = write(*(int *)c->state, x, n)) <= 0) return RRL_FAIL(RRL_ERR_COMM, "the other rank is gone");
    return RRL_OK;
}

static rrl_status get(rrl_collective *c, void *x, size_t n) {
    for (ssize_t k = 0; n > 0; x = (char *)x + k, n -= (size_t)k)
        if ((k = read(*(int *)c->state, x, n)) <= 0) return RRL_FAIL(RRL_ERR_COMM, "the other rank is gone");
    return RRL_OK;
}

static rrl_status broadcast(rrl_collective *c, void *x, size_t bytes, int root) {
    return c->rank == root ? put(c, x, bytes) : get(c, x, bytes);
}

static rrl_status share_rows(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first) {
    char *x = rows;
    for (int r = 0; r < RRL_GPU_RANKS; r++)
        RRL_TRY(broadcast(c, x + (size_t)first[r] * row_bytes, (size_t)(first[r + 1] - first[r]) * row_bytes, r));
    return RRL_OK;
}

static rrl_status tree_sum(rrl_collective *c, float *x, float *scratch, int64_t n, int active) {
    const size_t bytes = (size_t)n * sizeof *x;
    if (active == RRL_GPU_RANKS && c->rank == 1) RRL_TRY(put(c, x, bytes));
    if (active == RRL_GPU_RANKS && c->rank == 0) {
        RRL_TRY(get(c, scratch, bytes));
        for (int64_t i = 0; i < n; i++) x[i] += scratch[i];
    }
    return broadcast(c, x, bytes, 0);
}

static void close_sockets(rrl_collective **c) { *c = NULL; }

static const rrl_collective_ops SOCKETS = {"sockets", tree_sum, broadcast, share_rows, close_sockets};

/* --- one rank */

static void nap(void *context, double since) {
    const struct timespec t = {0, 50000};
    (void)context;
    (void)since;
    nanosleep(&t, NULL);
}

static float number(int rank, int i) {
    return (float)(((int64_t)i * 7919 + rank * 104729) % 1000003) * 0x1p-17f - 3.0f;
}

/* Sum of two ranks and broadcast, by the given way: the bits are x0 + x1 whatever the order. */
static rrl_status sums(rrl_device *d, rrl_collective *c, float *host) {
    rrl_status rc = RRL_OK;
    float *x = NULL, *scratch = NULL;
    const size_t bytes = N * sizeof *x;
    int wrong = 0;
    for (int i = 0; i < N; i++) host[i] = number(c->rank, i);
    RRL_GOTO(d->ops->alloc(d, (void **)&x, bytes, "numbers"));
    RRL_GOTO(d->ops->alloc(d, (void **)&scratch, bytes, "numbers"));
    RRL_GOTO(d->ops->upload(d, x, host, bytes));
    RRL_GOTO(c->ops->tree_sum(c, x, scratch, N, RRL_GPU_RANKS));
    RRL_GOTO(d->ops->download(d, host, x, bytes));
    for (int i = 0; i < N; i++) wrong += host[i] != number(0, i) + number(1, i);
    if (c->rank == 1) RRL_GOTO(d->ops->zero(d, x, N));
    RRL_GOTO(c->ops->broadcast(c, x, bytes, 1));
    RRL_GOTO(d->ops->download(d, host, x, bytes));
    for (int i = 0; i < N; i++) wrong += host[i] != 0;
    if (wrong) rc = RRL_FAIL(RRL_ERR_DEVICE, "%d numbers of a sum or broadcast are wrong on rank %d", wrong, c->rank);
done:
    if (x) d->ops->free(d, x);
    if (scratch) d->ops->free(d, scratch);
    return rc;
}

static rrl_status sums_under(const rrl_gpu_check *c, rrl_collective *host, rrl_determinism determinism, float *room) {
    static const char *const phase = "gpu_check";
    const rrl_collective_site site = {.pause = nap, .phase = &phase, .timeout_s = TIMEOUT_S / 2};
    rrl_collective_pair pair = {0};
    rrl_device *d = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_gpu_open(&d, c, RRL_F32, determinism));
    RRL_GOTO(rrl_collective_pair_open(&pair, host, d, &site, RRL_WAY_OWN));
    RRL_GOTO(sums(d, pair.device, room));
done:
    rrl_collective_pair_close(&pair);
    rrl_device_close(&d);
    return rc;
}

int rrl_gpu_rank(const rrl_gpu_check *c, int rank, int socket) {
    rrl_status rc = RRL_OK;
    float *room = NULL;
    rrl_collective host = {.ops = &SOCKETS, .rank = rank, .size = RRL_GPU_RANKS, .state = &socket};
    RRL_GOTO(rrl_alloc(&room, N, sizeof *room, "numbers"));
    RRL_GOTO(sums_under(c, &host, RRL_DETERMINISM_EXACT, room));
    RRL_GOTO(sums_under(c, &host, RRL_DETERMINISM_RUN, room));
done:
    free(room);
    if (rc == RRL_ERR_CONFIG) printf("  %s\n", rrl_error_message());
    else if (rc != RRL_OK) fprintf(stderr, "  rank %d: %s\n", rank, rrl_error_message());
    return rc == RRL_OK ? 0 : rc == RRL_ERR_CONFIG ? SKIPPED : 1;
}

/* --- both */

static pid_t start(const rrl_gpu_check *c, int rank, int socket) {
    char gpu[16], number_of[16], fd[16];
    snprintf(gpu, sizeof gpu, "%d", c->gpu);
    snprintf(number_of, sizeof number_of, "%d", rank);
    snprintf(fd, sizeof fd, "%d", socket);
    pid_t p = fork();
    if (p == 0) {
        execl("/proc/self/exe", "gpu_check", "--module", c->module_path, "--gpu", gpu, "--rank", number_of, fd,
              (char *)NULL);
        _exit(1);
    }
    return p;
}

/* Exit code; both are ended when the time is over. */
static int await(pid_t p, double until) {
    const struct timespec t = {0, 10000000};
    int st = 0;
    while (waitpid(p, &st, WNOHANG) == 0) {
        if (rrl_gpu_clock() > until) kill(p, SIGKILL);
        nanosleep(&t, NULL);
    }
    return WIFEXITED(st) ? WEXITSTATUS(st) : 1;
}

void rrl_gpu_check_ranks(rrl_gpu_check *c) {
    static const char NAME[] = "NCCL, two ranks on one GPU: exact and run";
    int socket[2], code[RRL_GPU_RANKS];
    pid_t ranks[RRL_GPU_RANKS];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, socket) != 0) {
        rrl_gpu_say(c, NAME, "FAILED", "no pair of sockets: %s", strerror(errno));
        return;
    }
    fflush(stdout);
    for (int r = 0; r < RRL_GPU_RANKS; r++) ranks[r] = start(c, r, socket[r]);
    for (int r = 0; r < RRL_GPU_RANKS; r++) close(socket[r]);
    const double until = rrl_gpu_clock() + TIMEOUT_S;
    for (int r = 0; r < RRL_GPU_RANKS; r++) code[r] = await(ranks[r], until);
    const bool skipped = code[0] == SKIPPED && code[1] == SKIPPED, good = code[0] == 0 && code[1] == 0;
    rrl_gpu_say(c, NAME, skipped ? "skipped" : good ? "ok" : "FAILED",
                skipped ? "libnccl.so.2 is not here" : "%d numbers, every bit", N);
}

/* NCCL's place in the tests: ranks are processes, a communicator is a file that they map, with a box for every pair of
 * ranks. What was begun moves on when somebody looks, so a rank that never comes is seen as with NCCL: nothing ends.
 *
 * A sum adds the ranks in ascending order, which is not the tree's order. */
#include "nccl_host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "device/cuda/nccl_calls.h"

void emulated_memory_open(bool open); /* emulator.cpp */

static const int MOST_RANKS = 8;
static const size_t BOX_BYTES = 1 << 17;

/* From one rank to another: empty while bytes is 0. */
struct box {
    std::atomic<uint32_t> bytes;
    char data[BOX_BYTES];
};
struct shared_file {
    std::atomic<uint32_t> joined;
    box boxes[MOST_RANKS][MOST_RANKS]; /* [from][to] */
};

enum step_kind { SEND, RECEIVE, RECEIVE_AND_ADD };
struct step {
    step_kind kind;
    char *x;
    size_t bytes, done;
    int with, group; /* steps of a group move on together, one group after the other */
};

struct rrl_nccl {
    shared_file *file;
    int rank, size, group;
    bool in_group;
    std::vector<step> steps;
};

static std::string calls;
static int wrong, aborted;
static bool gone;

const char *nccl_host_calls(void) {
    return calls.c_str();
}
void nccl_host_forget(void) {
    calls.clear();
}
int nccl_host_wrong(void) {
    return wrong;
}
int nccl_host_aborted(void) {
    return aborted;
}
void nccl_host_take_away(int now_gone) {
    gone = now_gone;
}

const char *rrl_nccl_missing(void) {
    return gone ? "libnccl.so.2: not found" : NULL;
}
const char *rrl_nccl_name(void) {
    return "nccl emulated";
}

/* --- communicators */

/* The id is the file's path. */
rrl_status rrl_nccl_id(char id[RRL_NCCL_ID_BYTES]) {
    memset(id, 0, RRL_NCCL_ID_BYTES);
    snprintf(id, RRL_NCCL_ID_BYTES, "/dev/shm/rrl-nccl-XXXXXX");
    const int file = mkstemp(id);
    if (file < 0 || ftruncate(file, sizeof(shared_file)) != 0) return RRL_FAIL(RRL_ERR_COMM, "%s cannot be made", id);
    close(file);
    return RRL_OK;
}

rrl_status rrl_nccl_join(rrl_nccl **out, const char id[RRL_NCCL_ID_BYTES], int rank, int size, bool shared) {
    calls += "join " + std::to_string(rank) + " of " + std::to_string(size) + (shared ? " shared\n" : "\n");
    const int file = open(id, O_RDWR);
    void *p = file < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof(shared_file), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (p == MAP_FAILED || size > MOST_RANKS) return RRL_FAIL(RRL_ERR_COMM, "%s cannot be mapped", id);
    shared_file *f = (shared_file *)p;
    if (f->joined.fetch_add(1) + 1 == (uint32_t)size) unlink(id); /* all are in */
    *out = new rrl_nccl{f, rank, size, 0, false, {}};
    return RRL_OK;
}

static void leave(rrl_nccl **n) {
    if (!*n) return;
    munmap((*n)->file, sizeof(shared_file));
    delete *n;
    *n = NULL;
}
void rrl_nccl_leave(rrl_nccl **n) {
    leave(n);
}
void rrl_nccl_abort(rrl_nccl **n) {
    if (*n) aborted++;
    leave(n);
}

/* --- moving on */

static void take(step *s, const char *data, size_t n) {
    if (s->kind == RECEIVE) {
        memcpy(s->x + s->done, data, n);
    } else {
        float *x = (float *)(s->x + s->done);
        for (size_t i = 0; i < n / sizeof *x; i++) x[i] = x[i] + ((const float *)data)[i];
    }
}

/* One box more, if there is room or something in it. Sizes that differ never end, as with NCCL. */
static void move(rrl_nccl *n, step *s) {
    const size_t left = s->bytes - s->done;
    box *b = s->kind == SEND ? &n->file->boxes[n->rank][s->with] : &n->file->boxes[s->with][n->rank];
    const size_t full = b->bytes.load(), most = left < BOX_BYTES ? left : BOX_BYTES;
    if (s->kind == SEND ? full != 0 : full == 0 || full > left) return;
    if (s->kind == SEND) {
        memcpy(b->data, s->x + s->done, most);
        b->bytes.store((uint32_t)most);
        s->done += most;
    } else {
        take(s, b->data, full);
        b->bytes.store(0);
        s->done += full;
    }
}

rrl_status rrl_nccl_look(bool *done, rrl_nccl *n, cudaStream_t) {
    int group = -1;
    emulated_memory_open(true);
    for (step &s : n->steps) {
        if (s.done == s.bytes) continue;
        if (group < 0) group = s.group;
        if (s.group == group) move(n, &s);
    }
    emulated_memory_open(false);
    *done = group < 0 && n->file->joined.load() == (uint32_t)n->size;
    if (*done) n->steps.clear();
    return RRL_OK;
}

/* --- what is begun */

static void begin(rrl_nccl *n) {
    wrong += !n->in_group && !n->steps.empty();
}
static void add(rrl_nccl *n, step_kind kind, void *x, size_t bytes, int with) {
    n->steps.push_back({kind, (char *)x, bytes, 0, with, n->group});
    if (!n->in_group) n->group++;
}

rrl_status rrl_nccl_all_reduce(rrl_nccl *n, float *x, int64_t count, cudaStream_t) {
    const size_t bytes = (size_t)count * sizeof *x;
    calls += "all_reduce " + std::to_string(count) + "\n";
    wrong += n->in_group;
    begin(n);
    for (int r = 1; r < n->size; r++) {
        if (n->rank == 0) add(n, RECEIVE_AND_ADD, x, bytes, r);
        if (n->rank == r) add(n, SEND, x, bytes, 0);
    }
    for (int r = 1; r < n->size; r++) {
        if (n->rank == 0) add(n, SEND, x, bytes, r);
        if (n->rank == r) add(n, RECEIVE, x, bytes, 0);
    }
    return RRL_OK;
}

rrl_status rrl_nccl_broadcast(rrl_nccl *n, void *x, size_t bytes, int root, cudaStream_t) {
    calls += "broadcast " + std::to_string(bytes) + " from " + std::to_string(root) + "\n";
    wrong += n->in_group;
    begin(n);
    for (int r = 0; r < n->size; r++)
        if (n->rank == root && r != root) add(n, SEND, x, bytes, r);
    if (n->rank != root) add(n, RECEIVE, x, bytes, root);
    return RRL_OK;
}

rrl_status rrl_nccl_group_start(rrl_nccl *n) {
    calls += "{\n";
    begin(n);
    wrong += n->in_group;
    n->in_group = true;
    return RRL_OK;
}
rrl_status rrl_nccl_group_end(rrl_nccl *n) {
    calls += "}\n";
    wrong += !n->in_group;
    n->in_group = false;
    n->group++;
    return RRL_OK;
}
rrl_status rrl_nccl_send(rrl_nccl *n, const void *x, size_t bytes, int to, cudaStream_t) {
    calls += "send " + std::to_string(bytes) + " to " + std::to_string(to) + "\n";
    wrong += !n->in_group;
    add(n, SEND, (void *)x, bytes, to);
    return RRL_OK;
}
rrl_status rrl_nccl_receive(rrl_nccl *n, void *x, size_t bytes, int from, cudaStream_t) {
    calls += "receive " + std::to_string(bytes) + " from " + std::to_string(from) + "\n";
    wrong += !n->in_group;
    add(n, RECEIVE, x, bytes, from);
    return RRL_OK;
}

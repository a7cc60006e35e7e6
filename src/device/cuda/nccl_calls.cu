/* NCCL by dlopen. What of nccl.h is used stands here: a few functions and numbers, the same since NCCL 2.14. Where
 * an nccl.h is installed, the numbers are compared with it when this is compiled. */
#include "device/cuda/nccl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" {
#include "base/memory.h"
}

#if defined(__has_include)
#if __has_include(<nccl.h>)
#define RRL_NCCL_HEADER
#include <nccl.h>
#endif
#endif

static const int SUCCESS = 0, IN_PROGRESS = 7;   /* ncclResult_t */
static const int TYPE_BYTES = 0, TYPE_FLOAT = 7; /* ncclDataType_t: ncclInt8, ncclFloat32 */
static const int SUM = 0;                        /* ncclRedOp_t */
static const int OLDEST = 21400;                 /* non-blocking communicators */
static const int LEAVE_MS = 5000;
typedef struct {
    char bytes[RRL_NCCL_ID_BYTES];
} unique_id;
/* ncclConfig_t as of 2.14; later ones read `size` bytes of it and take their defaults for the rest. */
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;
static const unsigned MAGIC = 0xcafebeef;

#ifdef RRL_NCCL_HEADER
static_assert(SUCCESS == ncclSuccess && IN_PROGRESS == ncclInProgress, "results");
static_assert(TYPE_BYTES == ncclInt8 && TYPE_FLOAT == ncclFloat32 && SUM == ncclSum, "types");
static_assert(sizeof(unique_id) == sizeof(ncclUniqueId), "identity");
static_assert(offsetof(config, magic) == offsetof(ncclConfig_t, magic), "config");
static_assert(offsetof(config, blocking) == offsetof(ncclConfig_t, blocking), "config");
#endif

/* name, arguments */
#define CALLS(X)                                                                                                      \
    X(GetVersion, (int *version))                                                                                     \
    X(GetUniqueId, (unique_id *id))                                                                                   \
    X(CommInitRankConfig, (void **comm, int size, unique_id id, int rank, config *c))                                 \
    X(CommGetAsyncError, (void *comm, int *result))                                                                   \
    X(CommFinalize, (void *comm))                                                                                     \
    X(CommDestroy, (void *comm))                                                                                      \
    X(CommAbort, (void *comm))                                                                                        \
    X(GroupStart, (void))                                                                                             \
    X(GroupEnd, (void))                                                                                               \
    X(Send, (const void *x, size_t n, int type, int peer, void *comm, cudaStream_t stream))                           \
    X(Recv, (void *x, size_t n, int type, int peer, void *comm, cudaStream_t stream))                                 \
    X(Broadcast, (const void *from, void *to, size_t n, int type, int root, void *comm, cudaStream_t stream))         \
    X(AllReduce, (const void *from, void *to, size_t n, int type, int op, void *comm, cudaStream_t stream))

/* The library: opened once, for the life of the process. */
typedef struct {
#define X(call, arguments) int(*call) arguments;
    CALLS(X)
#undef X
    const char *(*text)(int result);
    int version;
    char name[32], missing[96];
} library;

struct rrl_nccl {
    void *comm;
};

static bool find(library *l, void *handle) {
    bool all = true;
#define X(call, arguments)                                                                                            \
    *(void **)&l->call = dlsym(handle, "nccl" #call);                                                                 \
    all = all && l->call;
    CALLS(X)
#undef X
    *(void **)&l->text = dlsym(handle, "ncclGetErrorString");
    return all && l->text;
}

static library open_library(void) {
    library l = {};
    void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(l.missing, sizeof l.missing, "%.90s", dlerror());
    } else if (!find(&l, handle) || l.GetVersion(&l.version) != SUCCESS || l.version < OLDEST) {
        snprintf(l.missing, sizeof l.missing, "its NCCL is older than 2.14");
    } else {
        snprintf(l.name, sizeof l.name, "nccl %d.%d.%d", l.version / 10000, l.version / 100 % 100, l.version % 100);
    }
    return l;
}

static const library *nccl(void) {
    static const library l = open_library();
    return &l;
}

const char *rrl_nccl_missing(void) {
    return nccl()->missing[0] ? nccl()->missing : NULL;
}

const char *rrl_nccl_name(void) {
    return nccl()->name;
}

/* A call that was begun is no failure. */
static rrl_status check(int result, const char *call) {
    if (result == SUCCESS || result == IN_PROGRESS) return RRL_OK;
    return RRL_FAIL(RRL_ERR_COMM, "nccl%s: %s", call, nccl()->text(result));
}
#define NCCL(call, ...) check(nccl()->call(__VA_ARGS__), #call)

rrl_status rrl_nccl_id(char id[RRL_NCCL_ID_BYTES]) {
    unique_id u;
    RRL_TRY(NCCL(GetUniqueId, &u));
    memcpy(id, u.bytes, sizeof u.bytes);
    return RRL_OK;
}

rrl_status rrl_nccl_join(rrl_nccl **out, const char id[RRL_NCCL_ID_BYTES], int rank, int size, bool shared) {
    rrl_status rc = RRL_OK;
    rrl_nccl *n = NULL;
    unique_id u;
    char host[32];
    config c = {sizeof c, MAGIC, (unsigned)OLDEST, 0};
    memcpy(u.bytes, id, sizeof u.bytes);
    snprintf(host, sizeof host, "rrl-rank-%d", rank);
    if (shared) setenv("NCCL_HOSTID", host, 0); /* what the user set stays */
    RRL_GOTO(rrl_alloc(&n, 1, sizeof *n, "NCCL communicator"));
    RRL_GOTO(NCCL(CommInitRankConfig, &n->comm, size, u, rank, &c));
    *out = n;
    n = NULL;
done:
    free(n);
    return rc;
}

rrl_status rrl_nccl_look(bool *done, rrl_nccl *n, cudaStream_t stream) {
    int state = SUCCESS;
    rrl_status rc = RRL_OK;
    *done = false;
    RRL_GOTO(NCCL(CommGetAsyncError, n->comm, &state));
    if (state == IN_PROGRESS) return RRL_OK; /* not all of it is in the stream yet */
    RRL_GOTO(check(state, " (another rank or the network)"));
    if (cudaStreamQuery(stream) == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RRL_OK;
    }
    RRL_CUDA(cudaStreamQuery(stream));
    *done = true;
done:
    return rc;
}

rrl_status rrl_nccl_all_reduce(rrl_nccl *n, float *x, int64_t count, cudaStream_t stream) {
    return NCCL(AllReduce, x, x, (size_t)count, TYPE_FLOAT, SUM, n->comm, stream);
}

rrl_status rrl_nccl_broadcast(rrl_nccl *n, void *x, size_t bytes, int root, cudaStream_t stream) {
    return NCCL(Broadcast, x, x, bytes, TYPE_BYTES, root, n->comm, stream);
}

rrl_status rrl_nccl_group_start(rrl_nccl *n) {
    (void)n;
    return check(nccl()->GroupStart(), "GroupStart");
}

rrl_status rrl_nccl_group_end(rrl_nccl *n) {
    (void)n;
    return check(nccl()->GroupEnd(), "GroupEnd");
}

rrl_status rrl_nccl_send(rrl_nccl *n, const void *x, size_t bytes, int to, cudaStream_t stream) {
    return NCCL(Send, x, bytes, TYPE_BYTES, to, n->comm, stream);
}

rrl_status rrl_nccl_receive(rrl_nccl *n, void *x, size_t bytes, int from, cudaStream_t stream) {
    return NCCL(Recv, x, bytes, TYPE_BYTES, from, n->comm, stream);
}

/* The ranks of a node finalise together; one that never comes is not waited for for ever. */
void rrl_nccl_leave(rrl_nccl **n) {
    const struct timespec nap = {0, 1000000};
    int state = IN_PROGRESS;
    if (!*n) return;
    int rc = nccl()->CommFinalize((*n)->comm);
    for (int i = 0; i < LEAVE_MS && (rc == SUCCESS || rc == IN_PROGRESS) && state == IN_PROGRESS; i++) {
        rc = nccl()->CommGetAsyncError((*n)->comm, &state);
        if (state == IN_PROGRESS) nanosleep(&nap, NULL);
    }
    if (rc != SUCCESS || state != SUCCESS) {
        rrl_nccl_abort(n);
        return;
    }
    (void)nccl()->CommDestroy((*n)->comm);
    free(*n);
    *n = NULL;
}

void rrl_nccl_abort(rrl_nccl **n) {
    if (!*n) return;
    if ((*n)->comm) (void)nccl()->CommAbort((*n)->comm);
    free(*n);
    *n = NULL;
}

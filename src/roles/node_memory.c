/* Anonymous memory shared through /proc, and the board that says who has what. The board is changed under flock, which the
 * kernel takes back from a rank that dies. */
#define _GNU_SOURCE
#include "roles/node_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

enum { MOST_BLOCKS = 64, NAME_BYTES = 65, NAP_NS = 2000000 };

typedef enum { FREE, FILLING, FILLED, REFUSED } block_state;

/* A block, or that it cannot be had: REFUSED stays, so that one rank says it. */
typedef struct {
    int32_t state, fd;
    int64_t pid;
    uint64_t inode, bytes;
    char name[NAME_BYTES];
} line;

typedef struct {
    line lines[MOST_BLOCKS];
} board;

struct rrl_node_memory {
    board *board;
    int fd; /* of the board: each rank's own, for flock */
    rrl_log *log;
};

/* What rank 0 tells of the board. */
typedef struct {
    int64_t pid, fd, inode; /* fd -1 = there is none */
} place;

static uint64_t inode_of(int fd) {
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Another rank's memory. In a container of its own that process number is some other process or none: the inode tells. */
static int open_other(int64_t pid, int64_t fd, uint64_t inode, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)pid, (long long)fd);
    int mine = open(path, flags | O_CLOEXEC);
    if (mine >= 0 && inode_of(mine) != inode) {
        close(mine);
        mine = -1;
    }
    return mine;
}

/* Memory of `bytes` that is there, not promised: running out later would kill the process. -1 and errno where not. */
static int make_memory(size_t bytes) {
    int fd = rrl_fault("node.memory") ? -1 : memfd_create("rrl-node-memory", MFD_CLOEXEC);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    if (error == 0) return fd;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

static void *map(int fd, size_t bytes, int protection) {
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* --- the board */

rrl_status rrl_node_memory_open(rrl_node_memory **out, MPI_Comm node, rrl_log *log) {
    rrl_status rc = RRL_OK;
    int rank, size, all = 0;
    rrl_node_memory *n = NULL;
    *out = NULL;
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &size);
    if (size == 1) return RRL_OK;
    if (rrl_alloc(&n, 1, sizeof *n, "board of the node") == RRL_OK) *n = (rrl_node_memory){.fd = -1, .log = log};
    if (n && rank == 0) n->fd = make_memory(sizeof(board));
    place at = {.pid = getpid(), .fd = n ? n->fd : -1, .inode = (int64_t)inode_of(n ? n->fd : -1)};
    if (MPI_Bcast(&at, (int)sizeof at, MPI_BYTE, 0, node) != MPI_SUCCESS) {
        rc = RRL_FAIL(RRL_ERR_COMM, "%d ranks of a node could not be told of their board", size);
        goto done;
    }
    if (n && rank != 0 && at.fd >= 0) n->fd = open_other(at.pid, at.fd, (uint64_t)at.inode, O_RDWR);
    if (n) n->board = map(n->fd, sizeof(board), PROT_READ | PROT_WRITE);
    int mine = n && n->board;
    if (MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, node) != MPI_SUCCESS) {
        rc = RRL_FAIL(RRL_ERR_COMM, "%d ranks of a node could not agree on their board", size);
        goto done;
    }
    if (!all) {
        if (rank == 0)
            rrl_event(log, RRL_LOG_WARN, "weights_private", "ranks=%d reason=%s", size,
                      rrl_log_quoted("the ranks of this node cannot open each other's memory; each packs its own weights"));
        goto done;
    }
    *out = n;
    n = NULL;
done:
    rrl_node_memory_close(&n);
    return rc;
}

void rrl_node_memory_close(rrl_node_memory **n) {
    if (!*n) return;
    if ((*n)->board) munmap((*n)->board, sizeof(board));
    if ((*n)->fd >= 0) close((*n)->fd);
    free(*n);
    *n = NULL;
}

static void lock(const rrl_node_memory *n) {
    while (flock(n->fd, LOCK_EX) != 0 && errno == EINTR) {
    }
}

static void unlock(const rrl_node_memory *n) {
    flock(n->fd, LOCK_UN);
}

/* Under the lock: the line of a block, or a free one, or NULL. */
static line *find_line(rrl_node_memory *n, const char *name, size_t bytes) {
    line *unused = NULL;
    for (int i = 0; i < MOST_BLOCKS; i++) {
        line *l = &n->board->lines[i];
        if (l->state == FREE) unused = unused ? unused : l;
        else if (strcmp(l->name, name) == 0 && l->bytes == bytes) return l;
    }
    return unused;
}

/* --- blocks */

static bool is_gone(int64_t pid) {
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* This rank's to fill, or where there is no such memory, to say so for all. */
static void make_block(rrl_node_block *b, rrl_node_memory *n, line *l) {
    int fd = make_memory(b->bytes);
    void *data = map(fd, b->bytes, PROT_READ | PROT_WRITE);
    const int error = errno;
    lock(n);
    l->fd = fd;
    l->inode = inode_of(fd);
    if (!data) l->state = REFUSED;
    unlock(n);
    if (data) {
        b->data = data;
        b->fd = fd;
        b->at = (int)(l - n->board->lines);
        return;
    }
    if (fd >= 0) close(fd);
    rrl_event(n->log, RRL_LOG_WARN, "weights_private", "bytes=%zu reason=%s advice=%s", b->bytes, rrl_log_quoted(strerror(error)),
              rrl_log_quoted("each rank of this node packs its own weights"));
}

/* One look at the board. False: another rank is filling the block. */
static bool try_open(rrl_node_block *b, rrl_node_memory *n, const char *name) {
    lock(n);
    line *l = find_line(n, name, b->bytes);
    bool make = l && (l->state == FREE || (l->state == FILLING && is_gone(l->pid)));
    bool wait = l && !make && l->state == FILLING;
    if (make) {
        *l = (line){.state = FILLING, .fd = -1, .pid = getpid(), .bytes = b->bytes};
        snprintf(l->name, sizeof l->name, "%s", name);
    } else if (l && l->state == FILLED) { /* under the lock its owner cannot give it back */
        int fd = open_other(l->pid, l->fd, l->inode, O_RDONLY);
        b->data = map(fd, b->bytes, PROT_READ);
        b->filled = b->data != NULL;
        if (fd >= 0) close(fd);
    }
    unlock(n);
    if (make) make_block(b, n, l);
    return !wait;
}

void rrl_node_block_open(rrl_node_block *out, rrl_node_memory *n, const char *name, size_t bytes, rrl_watch *watch) {
    const double begun = rrl_clock();
    *out = (rrl_node_block){.bytes = bytes};
    if (!n || bytes == 0) return;
    while (!try_open(out, n, name) && rrl_clock() - begun < watch->timeout_s) {
        rrl_watch_beat(watch);
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
}

void rrl_node_block_filled(rrl_node_memory *n, rrl_node_block *b) {
    if (!b->data || b->filled) return;
    (void)mprotect(b->data, b->bytes, PROT_READ);
    lock(n);
    n->board->lines[b->at].state = FILLED;
    unlock(n);
}

void rrl_node_block_close(rrl_node_memory *n, rrl_node_block *b) {
    if (!b->data) return;
    if (!b->filled) {
        lock(n);
        n->board->lines[b->at].state = FREE;
        unlock(n);
        close(b->fd);
    }
    munmap(b->data, b->bytes);
    *b = (rrl_node_block){0};
}

/* Memory that the ranks of a node hold once between them: a block has a name; the first rank that asks for it fills it, the
 * others map it and read.
 *
 * A block is memory without a name in any file system (memfd), which other ranks open through /proc: nothing is left behind
 * when all are killed, and the size of /dev/shm does not matter. Who has which block stands on a board, a few pages of the
 * same kind. Apart from opening the board nothing here is collective, so teams that never meet share too. */
#ifndef RRL_ROLES_NODE_MEMORY_H
#define RRL_ROLES_NODE_MEMORY_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "device/mpi_wait.h"

typedef struct rrl_node_memory rrl_node_memory;

/** Make the board of the ranks of `node`, all on one machine; collective. *out is NULL where nothing can be shared: one rank,
 *  or ranks that cannot open each other's memory (a container each); the first says so in the log, which is borrowed. Errors:
 *  RRL_ERR_COMM, RRL_ERR_NOMEM. */
rrl_status rrl_node_memory_open(rrl_node_memory **out, MPI_Comm node, rrl_log *log);
/** Local; blocks are closed before. */
void rrl_node_memory_close(rrl_node_memory **n);

typedef struct {
    void *data;  /* page-aligned; NULL = none: the caller uses memory of its own */
    bool filled; /* by another rank: only to be read. Else zeroed, and this rank's to fill */
    size_t bytes;
    int fd, at; /* of who fills it: the memory, and its line on the board */
} rrl_node_block;

/** The block `name` (at most 64 characters) of `bytes`. While another rank fills it this waits, at most watch->timeout_s, and
 *  shows itself alive to its team. Where that rank fails, this one is to fill it. Where the memory is not to be had, or n is
 *  NULL, data is NULL and the first to find out says so. Local. */
void rrl_node_block_open(rrl_node_block *out, rrl_node_memory *n, const char *name, size_t bytes, rrl_watch *watch);
/** What this rank was to fill is whole: others may have it, and nobody writes to it any more. */
void rrl_node_block_filled(rrl_node_memory *n, rrl_node_block *b);
/** Give the block back; others that have it keep it. Not filled: another rank that waits for it fills it. */
void rrl_node_block_close(rrl_node_memory *n, rrl_node_block *b);

#endif

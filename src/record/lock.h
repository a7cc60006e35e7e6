/* DIR/lock: one writer a run folder, whatever the file system thinks of locks. The file is made exclusively
 * and names host, process, its start and the Slurm job, so a lock of the dead is told from one of the living.
 */
#ifndef RRL_RECORD_LOCK_H
#define RRL_RECORD_LOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "rrl/status.h"

/* Who this process is. */
typedef struct {
    char host[256];
    long pid;
    unsigned long long
        start;    /* of the process, clock ticks since boot (/proc/PID/stat, field 22); 0 = unknown */
    char job[64]; /* SLURM_JOB_ID, "" = none */
    long restart; /* SLURM_RESTART_COUNT */
} rrl_process;

void rrl_process_self(rrl_process *p);
/** "host H, process P, job J" into text. */
void rrl_process_text(char *text, size_t n, const rrl_process *p);

/** Take the lock of dir; one of a dead process of this host, or of a job that is gone, is taken over.
 *  Errors: RRL_ERR_BUSY naming the holder, RRL_ERR_IO. */
rrl_status rrl_lock_take(const char *dir);
/** Remove the lock if it is this process's. */
void rrl_lock_drop(const char *dir);
/** Whether dir has a lock, who holds it (set where held), and whether the holder is known to be dead; dead may be NULL,
 *  then nobody is asked. */
rrl_status rrl_lock_look(bool *held, bool *dead, rrl_process *holder, const char *dir);

#endif

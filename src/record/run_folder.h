/* A run's folder: who may write it, whether it is complete, and its history (run.json). */
#ifndef RRL_RECORD_RUN_FOLDER_H
#define RRL_RECORD_RUN_FOLDER_H

#include <stdbool.h>

#include "rrl/status.h"

typedef enum { RRL_RUN_NEW, RRL_RUN_CONTINUES, RRL_RUN_COMPLETE } rrl_run_state;

typedef struct rrl_run_folder rrl_run_folder;
/** Claim dir for this process: makes it, takes DIR/lock (host, pid, job id, process start; exclusive create; a lock of
 *  a dead process of this host, or of a job that is gone, is taken over). Same digest as run.json: continues, or
 *  complete. Other digest: RRL_ERR_CONFIG listing the keys that differ. fresh: an existing run moves to DIR.old-N first.
 *  A living holder: RRL_ERR_BUSY naming it. A device, pipe or read-only path: RRL_ERR_IO at once. config_yaml is
 *  written to DIR/config.yaml by a new run. Called by one rank of a team. */
rrl_status rrl_run_folder_open(rrl_run_folder **out, rrl_run_state *state, const char *dir, const char *digest,
                               const char *config_yaml, bool fresh);
/** Release the lock. */
void rrl_run_folder_close(rrl_run_folder **f);
/** run.json: status "running" | "checkpointed" | "complete" | "failed" with a reason; attempts and failures are kept. */
rrl_status rrl_run_folder_status(rrl_run_folder *f, const char *status, const char *reason);
/** run.json: complete, with the digests of run.h5 and adapter, which stand in their places. */
rrl_status rrl_run_folder_complete(rrl_run_folder *f);

/* What run.json knows to compare files with; "" = not known. */
typedef struct {
    char run[65];     /* of configuration and inputs; a root attribute of every record file */
    char record[65];  /* rrl_record_digest of the complete run */
    char file[65];    /* SHA-256 of its run.h5 */
    char adapter[65]; /* SHA-256 of adapter/adapter_model.safetensors of the complete run */
} rrl_run_digests;
rrl_status rrl_run_folder_digests(rrl_run_digests *out, const char *dir);
/** For a repair, which holds the lock: another status, or a run.json (and config.yaml) made again for existing records. */
rrl_status rrl_run_folder_mark(const char *dir, const char *status, const char *reason);
rrl_status rrl_run_folder_restore(const char *dir, const char *digest, const char *config_yaml);

/** Status text of a run folder from files alone, also while others write: "waiting", "running", "checkpointed",
 *  "complete", "failed", or "interrupted" where run.json says running and the holder of the lock is dead; reason
 *  (caller frees both, reason may be NULL). */
rrl_status rrl_run_folder_read(char **status, char **reason, const char *dir);

/** Why rrl_run_folder_open would refuse this configuration, as far as DIR/config.yaml tells; NULL where it does not:
 *  other models and data have their say in the digest alone. The caller frees *why. */
rrl_status rrl_run_folder_differs(char **why, const char *dir, const char *config_yaml);

#endif

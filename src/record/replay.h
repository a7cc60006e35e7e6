/* Steps recorded before a kill that are computed again after a resume. What is put again takes the place of
 * the old segment only if it differs, and the old one is then kept in DIR/quarantine. Nothing is removed
 * before its successor is durable, so a second kill finds every step once or twice, never not at all. */
#ifndef RRL_RECORD_REPLAY_H
#define RRL_RECORD_REPLAY_H

#include "record/record_file.h"
#include "record/records_folder.h"

typedef struct {
    char *records;           /* DIR/records */
    char *digest;            /* of the run's config */
    rrl_segment_file *ahead; /* segments of steps that are still to be put again, ascending */
    size_t n_ahead;
    size_t room;
    int64_t kept, mismatches;
} rrl_replay;

/** Look through the segments of dir, all of which are read and checked: those before next_step stay, one
 * across it is cut there, later ones are ahead; an unreadable later one goes to quarantine. Errors:
 * RRL_ERR_DATA (an earlier one is damaged, or steps are missing), RRL_ERR_IO. */
rrl_status rrl_replay_open(rrl_replay *p, const char *dir, const char *digest, int64_t next_step);
void rrl_replay_close(rrl_replay *p);
/** First step after the segment that starts at `first`, of at most `most` steps: segments put again end where
 * those ahead do. */
int64_t rrl_replay_end(const rrl_replay *p, int64_t first, int64_t most);
/** Put a segment: publish it, or keep the equal one that is there. */
rrl_status rrl_replay_put(rrl_replay *p, const rrl_segment *s);
/** The same for an evaluation. */
rrl_status rrl_replay_put_evaluation(rrl_replay *p, const rrl_record_set *s);
/** The run ended before steps that are still ahead: to quarantine, each a mismatch. */
rrl_status rrl_replay_end_of_run(rrl_replay *p);

#endif

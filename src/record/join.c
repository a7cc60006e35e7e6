/* Joins the segments of a run into run.h5. The segments are removed only after the joined file was published,
 * opened again and found to hold the same content. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/digest.h"
#include "record/records_folder.h"

static rrl_status replace_text(char **text, const char *with) {
    char *copy = NULL;
    RRL_TRY(rrl_strdup(&copy, with));
    free(*text);
    *text = copy;
    return RRL_OK;
}

rrl_status rrl_records_join(const char *dir, const char *provenance_json) {
    rrl_status rc = RRL_OK;
    rrl_record *r = NULL, *back = NULL;
    char *run = NULL, *records = NULL;
    char wanted[65], found[65];
    RRL_GOTO(rrl_path_join(&run, dir, "run.h5"));
    RRL_GOTO(rrl_path_join(&records, dir, "records"));
    RRL_GOTO(rrl_record_read_segments(&r, dir));
    if (provenance_json) RRL_GOTO(replace_text(&r->provenance_json, provenance_json));
    RRL_GOTO(rrl_record_publish(run, r, RRL_PART_RUN));
    RRL_GOTO(rrl_record_content_digest(wanted, r));
    rrl_record_free(&r);

    rc = rrl_record_read(&back, run, 1);
    if (rc == RRL_OK) rc = rrl_record_content_digest(found, back);
    if (rc == RRL_OK && strcmp(wanted, found) != 0)
        rc = RRL_FAIL(
            RRL_ERR_IO,
            "%s: read back, its content is not that of the segments (%s, expected %s); segments kept", run,
            found, wanted);
    /* what was not written well must not win over the segments */
    if (rc != RRL_OK) (void)rrl_quarantine(records, run);
done:
    rrl_record_free(&r);
    rrl_record_free(&back);
    free(run);
    free(records);
    return rc;
}

rrl_status rrl_records_remove(const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_records_folder f = {0};
    RRL_GOTO(rrl_records_list(&f, dir));
    /* the head last: with it gone, a reader no longer takes the folder for a run in progress */
    for (size_t i = 0; i < f.n_segments + f.n_evaluations + 1; i++) {
        const char *path = i < f.n_segments                     ? f.segments[i].path
                           : i < f.n_segments + f.n_evaluations ? f.evaluations[i - f.n_segments]
                                                                : f.head;
        if (path && (rrl_fault("join.remove") || (unlink(path) != 0 && errno != ENOENT)))
            RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be removed: %s", path, strerror(errno)));
    }
    rmdir(f.dir); /* stays where a temporary of a dead process lies in it */
done:
    rrl_records_free(&f);
    return rc;
}

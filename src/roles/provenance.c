/* Where and with what a run was made: one JSON for /provenance. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "roles/session.h"
#include "rrl/version.h"

enum { HOST_BYTES = 64 };

/* What each rank tells of itself; sent as it is between ranks of one program. */
typedef struct {
    char host[HOST_BYTES], gpu[RRL_GPU_CHARS];
    int64_t generator, verifier, learner, threads;
    rrl_work work;
} rank_report;

static rank_report own_report(const rrl_session *s) {
    rank_report r = {.generator = s->team->generators.index, .verifier = s->team->verifiers.index,
                     .learner = s->team->learners.index, .work = s->team->work};
    if (gethostname(r.host, sizeof r.host - 1) != 0) strcpy(r.host, "unknown");
    rrl_gpu_name(r.gpu, s->engine->device);
    r.work.peak_memory = rrl_peak_memory();
    r.work.shared_memory = s->engine->weights.data ? (int64_t)s->engine->weights.bytes : 0;
    return r;
}

static rrl_status put_rank(rrl_buffer *b, const rank_report *r, int rank) {
    RRL_TRY(rrl_buffer_printf(b, "%s{\"rank\": %d, \"host\": ", rank ? ", " : "", rank));
    RRL_TRY(rrl_json_quote(b, r->host, strlen(r->host)));
    if (r->gpu[0]) RRL_TRY(rrl_buffer_printf(b, ", \"gpu\": \"%s\"", r->gpu));
    RRL_TRY(rrl_buffer_printf(b, ", \"generator\": %lld, \"verifier\": %lld, \"learner\": %lld", (long long)r->generator,
                              (long long)r->verifier, (long long)r->learner));
#define X(field, unit, doc)                                                                                            \
    RRL_TRY(rrl_buffer_printf(b, ", \"" #field "\": %lld", (long long)r->work.field));
    RRL_WORK_COUNTERS(X)
#undef X
    return rrl_buffer_puts(b, "}");
}

static rrl_status put_head(rrl_buffer *b, const rrl_session *s) {
    const rrl_team *t = s->team;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0;
    MPI_Get_library_version(mpi, &len);
    char *end = strchr(mpi, ',');
    if (end) *end = '\0';
    RRL_TRY(rrl_buffer_printf(b, "{\"rrl_version\": \"%s\", \"git_commit\": \"%s\", \"compiler\": ", RRL_VERSION,
                              RRL_GIT_COMMIT));
    RRL_TRY(rrl_json_quote(b, __VERSION__, strlen(__VERSION__)));
    RRL_TRY(rrl_buffer_puts(b, ", \"mpi\": "));
    RRL_TRY(rrl_json_quote(b, mpi, strlen(mpi)));
    RRL_TRY(rrl_buffer_puts(b, ", \"collectives\": "));
    RRL_TRY(rrl_json_quote(b, rrl_links_how(&s->engine->links), strlen(rrl_links_how(&s->engine->links))));
    return rrl_buffer_printf(b,
                             ", \"isa\": \"%s\", \"layout\": {\"ranks\": %d, \"colocated\": %s, \"generators\": %d, "
                             "\"verifiers\": %d, \"learners\": %d}, \"batch_limit\": %lld, \"job\": \"%s\"",
                             s->engine->device ? rrl_device_isa(s->engine->device) : "none", t->size,
                             t->colocated ? "true" : "false", t->generators.n, t->verifiers.n, t->learners.n,
                             (long long)s->config->generation.batch_limit,
                             getenv("SLURM_JOB_ID") ? getenv("SLURM_JOB_ID") : "");
}

rrl_status rrl_provenance(char **out, rrl_session *s, bool gather) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    rank_report mine = own_report(s), *all = NULL;
    rrl_team *t = s->team;
    if (gather) {
        MPI_Request req;
        RRL_GOTO(rrl_alloc(&all, (size_t)t->size, sizeof *all, "provenance"));
        if (MPI_Igather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, t->recorder, t->comm, &req) !=
            MPI_SUCCESS) {
            rc = RRL_FAIL(RRL_ERR_COMM, "the ranks' work counts could not be gathered");
            goto done;
        }
        RRL_GOTO(rrl_watch_wait(&t->watch, &req));
        if (t->rank != t->recorder) goto done;
    }
    RRL_GOTO(put_head(&b, s));
    if (gather) {
        RRL_GOTO(rrl_buffer_printf(&b, ", \"seconds\": %.3f, \"ranks\": [", rrl_clock() - s->started));
        for (int r = 0; r < t->size; r++) RRL_GOTO(put_rank(&b, &all[r], r));
        RRL_GOTO(rrl_buffer_puts(&b, "]"));
    }
    RRL_GOTO(rrl_buffer_puts(&b, "}"));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    free(all);
    return rc;
}

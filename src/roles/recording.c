/* Pieces of writing. Their run() is called in the writer's thread, so it touches nothing that the loop goes on with: groups
 * that were taken or copied, a checkpoint taken, the session's recorder and what never changes. */
#include "roles/recording.h"

#include <stdlib.h>

#include "base/memory.h"

/* --- a step */

typedef struct {
    rrl_write write; /* first */
    rrl_session *s;
    rrl_training_row row;
    rrl_group **groups; /* [s->groups] */
    int n;              /* 0 or s->groups */
} step_piece;

static void free_step(rrl_write *w) {
    step_piece *p = (step_piece *)w;
    for (int32_t g = 0; p->groups && g < p->s->groups; g++) rrl_group_free(&p->groups[g]);
    free(p->groups);
    free(p);
}

static rrl_status write_step(rrl_write *w) {
    step_piece *p = (step_piece *)w;
    return (w->more ? rrl_recorder_join : rrl_recorder_step)(p->s->recorder, p->groups, p->n, &p->row);
}

static rrl_status copy_group(rrl_group **out, const rrl_group *g) {
    char *bytes = NULL;
    size_t n = 0;
    RRL_TRY(rrl_group_pack(&bytes, &n, g));
    rrl_status rc = rrl_group_unpack(out, bytes, n);
    free(bytes);
    return rc;
}

rrl_status rrl_record_step(rrl_writer *w, rrl_session *s, rrl_step_groups *b, const rrl_training_row *row, bool last_use) {
    rrl_status rc = RRL_OK;
    step_piece *p = NULL;
    RRL_TRY(rrl_alloc(&p, 1, sizeof *p, "step to record"));
    *p = (step_piece){.write = {.run = write_step, .done = free_step, .of = s}, .s = s, .row = *row};
    RRL_GOTO(rrl_alloc(&p->groups, (size_t)s->groups, sizeof *p->groups, "groups to record"));
    if (row->step % s->config->training.num_iterations == 0) p->n = s->groups;
    for (int32_t g = 0; g < p->n; g++) {
        if (!last_use) {
            RRL_GOTO(copy_group(&p->groups[g], b->groups[g]));
            continue;
        }
        p->groups[g] = b->groups[g];
        b->groups[g] = NULL;
    }
    rrl_writer_put(w, &p->write);
    p = NULL;
done:
    if (p) free_step(&p->write);
    return rc;
}

/* --- a checkpoint */

typedef struct {
    rrl_write write; /* first */
    rrl_session *s;
    rrl_checkpoint *checkpoint;
    rrl_pace *pace;
    int64_t step;
    double seconds;
} checkpoint_piece;

static void free_checkpoint(rrl_write *w) {
    checkpoint_piece *p = (checkpoint_piece *)w;
    if (p->write.ran) {
        rrl_session_focus(p->s);
        rrl_event(p->s->team->log, RRL_LOG_INFO, "checkpoint", "next_step=%lld", (long long)p->step);
        rrl_pace_save(p->pace, p->seconds);
    }
    rrl_checkpoint_free(&p->checkpoint);
    free(p);
}

/* The open segment first: no checkpoint stands without the steps before it. */
static rrl_status write_checkpoint(rrl_write *w) {
    checkpoint_piece *p = (checkpoint_piece *)w;
    const double began = rrl_clock();
    RRL_TRY(rrl_recorder_flush(p->s->recorder));
    RRL_TRY(rrl_checkpoint_write(p->checkpoint, p->s->spec->dir, p->s->config->records.keep_checkpoints));
    p->seconds = rrl_clock() - began;
    return RRL_OK;
}

rrl_status rrl_record_checkpoint(rrl_writer *w, rrl_session *s, const rrl_step_groups *ahead, rrl_pace *pace) {
    rrl_status rc = RRL_OK;
    rrl_buffer in_flight = {0};
    checkpoint_piece *p = NULL;
    RRL_GOTO(rrl_alloc(&p, 1, sizeof *p, "checkpoint"));
    *p = (checkpoint_piece){.write = {.run = write_checkpoint, .done = free_checkpoint}, .s = s, .pace = pace,
                            .step = s->state.step};
    if (ahead) RRL_GOTO(rrl_step_groups_pack(&in_flight, ahead, s));
    RRL_GOTO(rrl_checkpoint_take(&p->checkpoint, s->learner, s->adapter, &s->state, &in_flight, s->digest));
    rrl_writer_put(w, &p->write);
    p = NULL;
done:
    free(p);
    rrl_buffer_free(&in_flight);
    return rc;
}

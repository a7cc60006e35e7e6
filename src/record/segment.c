/* Steps in memory: what the recorder collects until a segment is full. */
#include "record/record_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *rrl_record_part_text(rrl_record_part part) {
    static const char *const TEXTS[] = {
#define X(name, text) text,
        RRL_RECORD_PARTS(X)
#undef X
    };
    return TEXTS[part];
}

rrl_status rrl_segment_add(rrl_segment *s, rrl_group *const *groups, int n_groups,
                           const rrl_training_row *row) {
    int64_t before = s->set.n;
    RRL_TRY(rrl_grow(&s->rows, &s->rows_room, (size_t)s->n + 1, sizeof *s->rows, "training rows"));
    RRL_TRY(
        rrl_grow(&s->rollouts, &s->rollouts_room, (size_t)s->n + 1, sizeof *s->rollouts, "training rows"));
    for (int i = 0; i < n_groups; i++) RRL_TRY(rrl_set_add_group(&s->set, &s->room, groups[i]));
    if (s->n == 0) s->first = row->step;
    s->rows[s->n] = *row;
    s->rollouts[s->n] = s->set.n - before;
    s->n++;
    return RRL_OK;
}

rrl_status rrl_segment_slice(rrl_segment *out, const rrl_segment *s, int64_t from, int64_t to) {
    int64_t first = 0, end;
    rrl_segment cut = {.first = s->first + from, .n = to - from};
    for (int64_t i = 0; i < from; i++) first += s->rollouts[i];
    end = first;
    for (int64_t i = from; i < to; i++) end += s->rollouts[i];
    RRL_TRY(rrl_grow(&cut.rows, &cut.rows_room, (size_t)cut.n, sizeof *cut.rows, "training rows"));
    rrl_status rc =
        rrl_grow(&cut.rollouts, &cut.rollouts_room, (size_t)cut.n, sizeof *cut.rollouts, "training rows");
    if (rc == RRL_OK) rc = rrl_set_slice(&cut.set, &s->set, first, end);
    if (rc != RRL_OK) {
        rrl_segment_clear(&cut);
        return rc;
    }
    if (cut.n) {
        memcpy(cut.rows, s->rows + from, (size_t)cut.n * sizeof *cut.rows);
        memcpy(cut.rollouts, s->rollouts + from, (size_t)cut.n * sizeof *cut.rollouts);
    }
    *out = cut; /* complete; it is not added to, so its room is of no interest */
    return RRL_OK;
}

void rrl_segment_clear(rrl_segment *s) {
    free(s->rows);
    free(s->rollouts);
    rrl_set_clear(&s->set);
    *s = (rrl_segment){0};
}

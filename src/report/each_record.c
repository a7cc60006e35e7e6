#include "report/each_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "study/study.h"

typedef struct {
    int64_t *n;
    rrl_buffer *left_out;
    int with_text;
    rrl_record_visitor *visit;
    void *context;
} walk;

/* One run; without a record it is named and left out. */
static rrl_status visit_run(const walk *w, const char *dir, const char *below) {
    rrl_record *r = NULL;
    rrl_status rc = rrl_record_read(&r, dir, w->with_text);
    if (rc == RRL_ERR_DATA) return rrl_buffer_printf(w->left_out, "%s: %s\n", below, rrl_error_message());
    if (rc != RRL_OK) return rc;
    rc = w->visit(w->context, r, below);
    ++*w->n;
    rrl_record_free(&r);
    return rc;
}

rrl_status rrl_each_record(int64_t *n_visited, rrl_buffer *left_out, const char *dir, int with_text,
                           rrl_record_visitor *visit, void *context) {
    const walk w = {n_visited, left_out, with_text, visit, context};
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    char *qualification = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_study_state(&s, &n, dir));
    RRL_GOTO(rrl_path_join(&qualification, dir, "qualification"));
    if (rrl_dir_exists(qualification)) RRL_GOTO(visit_run(&w, qualification, "qualification"));
    for (int64_t i = 0; i < n; i++) {
        const char *below = s[i].dir + (strncmp(s[i].dir, dir, strlen(dir)) == 0 ? strlen(dir) : 0);
        while (*below == '/') below++;
        RRL_GOTO(visit_run(&w, s[i].dir, *below ? below : "."));
    }
done:
    rrl_study_state_free(&s, n);
    free(qualification);
    return rc;
}

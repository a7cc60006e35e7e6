/* A made-up run: groups and training rows that are a pure function of (step, slot, sample), so a test knows
 * what it must read back. Some texts are empty, hold a NUL or several bytes a character; some rewards are
 * missing. */
#ifndef RRL_TESTS_RECORD_CASE_H
#define RRL_TESTS_RECORD_CASE_H

#include "record/record.h"

enum { CASE_GROUPS = 2, CASE_SIZE = 4, CASE_MEMBERS = 3, CASE_QUESTIONS = 5 };

/* What a test may change in one place to see that it matters. */
typedef struct {
    int64_t step;  /* the step that is changed; -1 = none */
    int ulp, text; /* next float of one advantage; another byte of one text */
    int joined;    /* all steps but the last join the next one */
} case_change;

rrl_group *case_group(int64_t step, int32_t slot);
rrl_training_row case_row(int64_t step);
/* Pool of CASE_QUESTIONS rows; freed by case_questions_free. */
rrl_questions *case_questions(void);
void case_questions_free(rrl_questions **q);
/* Verifier and header with static texts; train is borrowed. */
rrl_record_header case_header(const rrl_questions *train);
rrl_status case_steps(rrl_recorder *r, int64_t from, int64_t to, case_change change);
rrl_status case_evaluation(rrl_recorder *r, const char *name, const rrl_questions *q);
/* A whole run of n steps and one evaluation in dir; finish 0 leaves the segments. */
rrl_status case_run(const char *dir, int64_t n, int64_t per_segment, int finish, case_change change);
/* An empty folder of this name below the build folder; what was there is removed. The path is static. */
const char *case_folder(const char *name);

#endif

/* Steps put again after a resume: kept where equal, quarantined where not, cut where segments and checkpoint
 * disagree. */
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "record/record.h"
#include "record_case.h"

static const case_change NONE = {.step = -1};
static rrl_questions *questions;

/* Steps [0, n) in segments, left as after a kill. */
static const char *recorded(const char *name, int64_t n, int64_t per_segment) {
    rrl_recorder *r = NULL;
    const char *dir = case_folder(name);
    rrl_record_header h = case_header(questions);
    CHECK_OK(rrl_recorder_open(&r, dir, &h, per_segment, 0));
    if (r) CHECK_OK(case_steps(r, 0, n, NONE));
    rrl_recorder_close(&r);
    return dir;
}

static rrl_status reopen(rrl_recorder **r, const char *dir, int64_t per_segment, int64_t next) {
    rrl_record_header h = case_header(questions);
    return rrl_recorder_open(r, dir, &h, per_segment, next);
}

static int there(const char *dir, const char *name) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return rrl_file_exists(path) || rrl_dir_exists(path);
}

/* Digest of the segments in dir against an undisturbed run of n steps. */
static void check_digest(const char *dir, int64_t n, case_change change) {
    char got[65] = "", want[65] = "none";
    rrl_recorder *r = NULL;
    const char *plain = case_folder("replay-plain");
    CHECK_OK(reopen(&r, plain, 1000, 0));
    CHECK_OK(case_steps(r, 0, n, change));
    CHECK_OK(rrl_recorder_flush(r));
    rrl_recorder_close(&r);
    CHECK_OK(rrl_record_digest(want, plain));
    CHECK_OK(rrl_record_digest(got, dir));
    CHECK_EQ_STR(got, want);
}

static void check_counts(const rrl_recorder *r, int64_t kept, int64_t mismatches) {
    int64_t k = -1, m = -1;
    rrl_recorder_replay(r, &k, &m);
    CHECK_EQ_INT(k, kept);
    CHECK_EQ_INT(m, mismatches);
}

static void test_equal(void) {
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 9, 3);
    if (!CHECK_OK(reopen(&r, dir, 3, 3))) return;
    CHECK_OK(case_steps(r, 3, 9, NONE));
    check_counts(r, 2, 0);
    CHECK(!there(dir, "quarantine"));
    rrl_recorder_close(&r);
    check_digest(dir, 9, NONE);
}

/* Steps that are joined are one segment, however many; where segments are there, they still end where those do. */
static void test_joined(void) {
    const case_change joined = {.step = -1, .joined = 1};
    rrl_recorder *r = NULL;
    rrl_record_header h = case_header(questions);
    const char *dir = case_folder("replay-joined");
    if (!CHECK_OK(rrl_recorder_open(&r, dir, &h, 2, 0))) return;
    CHECK_OK(case_steps(r, 0, 7, joined));
    CHECK(there(dir, "records/000001.h5"));
    for (int k = 2; k <= 7; k++) {
        char name[32];
        snprintf(name, sizeof name, "records/%06d.h5", k);
        CHECK(!there(dir, name));
    }
    CHECK_OK(case_steps(r, 7, 9, NONE)); /* and on as before */
    CHECK(there(dir, "records/000008.h5") && !there(dir, "records/000009.h5"));
    rrl_recorder_close(&r);
    check_digest(dir, 9, NONE);

    dir = recorded("replay", 9, 3);
    if (!CHECK_OK(reopen(&r, dir, 2, 3))) return;
    CHECK_OK(case_steps(r, 3, 12, joined));
    check_counts(r, 2, 0);
    CHECK(there(dir, "records/000007.h5") && there(dir, "records/000010.h5") && !there(dir, "quarantine"));
    rrl_recorder_close(&r);
    check_digest(dir, 12, NONE);
}

static void test_different(void) {
    rrl_recorder *r = NULL;
    case_change change = {.step = 4, .ulp = 1};
    const char *dir = recorded("replay", 9, 3);
    if (!CHECK_OK(reopen(&r, dir, 3, 0))) return;
    CHECK_OK(case_steps(r, 0, 9, change));
    check_counts(r, 2, 1);
    CHECK(there(dir, "quarantine/000004.h5.1"));
    rrl_recorder_close(&r);
    check_digest(dir, 9, change);

    if (!CHECK_OK(reopen(&r, dir, 3, 0)))
        return; /* and back: the second one in quarantine has a name of its own */
    CHECK_OK(case_steps(r, 0, 9, NONE));
    check_counts(r, 2, 1);
    CHECK(there(dir, "quarantine/000004.h5.2"));
    rrl_recorder_close(&r);
}

/* Another segment size, and checkpoints at other steps than before. */
static void test_other_cuts(void) {
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 10, 5);
    if (!CHECK_OK(reopen(&r, dir, 3, 0))) return;
    CHECK_OK(case_steps(r, 0, 2, NONE));
    CHECK_OK(rrl_recorder_flush(r)); /* in the middle of the segment that is there */
    check_counts(r, 1, 0);
    check_digest(dir, 10, NONE); /* the other steps are still there */
    CHECK_OK(case_steps(r, 2, 14, NONE));
    check_counts(r, 3, 0);
    CHECK_OK(rrl_recorder_flush(r));
    rrl_recorder_close(&r);
    CHECK(there(dir, "records/000003.h5") && there(dir, "records/000006.h5") &&
          there(dir, "records/000011.h5"));
    check_digest(dir, 14, NONE);
}

static void test_straddling(void) {
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 10, 5);
    if (!CHECK_OK(reopen(&r, dir, 5, 7))) return;
    check_digest(dir, 10, NONE);
    CHECK_OK(case_steps(r, 7, 10, NONE));
    check_counts(r, 1, 0);
    rrl_recorder_close(&r);
    check_digest(dir, 10, NONE);
}

/* A kill between the two halves of a cut leaves the whole and its tail. */
static void test_overlap(void) {
    char command[1500];
    rrl_recorder *r = NULL;
    rrl_record *record = NULL;
    const char *dir = recorded("replay", 10, 10);
    snprintf(command, sizeof command, "cp '%s/records/000001.h5' '%s/whole'", dir, dir);
    CHECK_EQ_INT(system(command), 0);
    CHECK_OK(reopen(&r, dir, 10, 4));
    rrl_recorder_close(&r);
    snprintf(command, sizeof command, "mv '%s/whole' '%s/records/000001.h5'", dir, dir);
    CHECK_EQ_INT(system(command), 0);
    check_digest(dir, 10, NONE); /* read as it lies */
    if (CHECK_OK(rrl_record_read(&record, dir, 0))) CHECK_EQ_INT(record->n_rows, 10);
    rrl_record_free(&record);
    CHECK_OK(reopen(&r, dir, 10, 4)); /* and put right */
    rrl_recorder_close(&r);
    check_digest(dir, 10, NONE);
}

static void test_end_before_recorded(void) {
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 9, 3);
    if (!CHECK_OK(reopen(&r, dir, 3, 3))) return;
    CHECK_OK(case_steps(r, 3, 6, NONE));
    CHECK_OK(rrl_recorder_finish(r, NULL));
    check_counts(r, 1, 1);
    rrl_recorder_close(&r);
    CHECK(there(dir, "quarantine/000007.h5.1"));
    check_digest(dir, 6, NONE);
}

static void test_evaluations(void) {
    rrl_recorder *r = NULL;
    const char *dir = case_folder("replay");
    rrl_metric other = {.name = "x", .value = 1, .defined = 1};
    if (!CHECK_OK(reopen(&r, dir, 3, 0))) return;
    CHECK_OK(case_evaluation(r, "final", questions));
    CHECK_OK(case_evaluation(r, "final", questions));
    check_counts(r, 1, 0);
    CHECK_OK(rrl_recorder_evaluation(r, "final", questions, NULL, 0, &other, 1));
    check_counts(r, 1, 1);
    CHECK(there(dir, "quarantine/evaluation-final.h5.1"));
    rrl_recorder_close(&r);
}

static void spoil(const char *dir, const char *name, long at) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r+b");
    if (!CHECK(f != NULL)) return;
    fseek(f, at, SEEK_SET);
    fwrite("spoilt spoilt spoilt", 1, 20, f);
    fclose(f);
}

static void test_damaged(void) {
    char path[700];
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 9, 3);
    spoil(dir, "records/000004.h5", 0);
    CHECK_STATUS(reopen(&r, dir, 3, 6), RRL_ERR_DATA); /* before the checkpoint: cannot be made again */
    CHECK(strstr(rrl_error_message(), "000004.h5") && strstr(rrl_error_message(), "--fresh"));
    if (CHECK_OK(reopen(&r, dir, 3, 3))) { /* after it: is made again */
        CHECK(there(dir, "quarantine/000004.h5.1"));
        CHECK_OK(case_steps(r, 3, 9, NONE));
        check_counts(r, 1, 0);
    }
    rrl_recorder_close(&r);
    check_digest(dir, 9, NONE);

    snprintf(path, sizeof path, "%s/records/000004.h5", dir);
    unlink(path);
    CHECK_STATUS(reopen(&r, dir, 3, 9), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "steps 3 to 5 are missing") != NULL);
    CHECK_STATUS(reopen(&r, dir, 3, 12), RRL_ERR_DATA);
}

/* Without its records a checkpoint is of no use; one of another folder begins a record at its step. */
static void test_lost(void) {
    char path[700];
    rrl_recorder *r = NULL;
    const char *dir = case_folder("replay");
    CHECK_OK(reopen(&r, dir, 3, 5));
    if (r) CHECK_OK(case_steps(r, 5, 6, NONE));
    rrl_recorder_close(&r);
    snprintf(path, sizeof path, "%s/checkpoints/step-5", dir);
    CHECK_OK(rrl_dir_make(path));
    CHECK_STATUS(reopen(&r, dir, 3, 5), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "steps 0 to 4 are missing") != NULL);
    CHECK_OK(reopen(&r, dir, 3, 0));
    rrl_recorder_close(&r);

    dir = case_folder("replay"); /* a broken run.h5 and no segments: made again only from the start */
    snprintf(path, sizeof path, "%s/run.h5", dir);
    CHECK_OK(rrl_file_publish(path, "no record", 9));
    CHECK_STATUS(reopen(&r, dir, 3, 5), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "truncated") && strstr(rrl_error_message(), "--fresh"));
    CHECK(there(dir, "run.h5"));
    CHECK_OK(reopen(&r, dir, 3, 0));
    rrl_recorder_close(&r);
    CHECK(there(dir, "quarantine/run.h5.1"));
}

/* What calls itself run.h5 but is none gives way to the segments; temporaries of the dead are not looked at.
 */
static void test_foreign_files(void) {
    char path[700];
    rrl_recorder *r = NULL;
    const char *dir = recorded("replay", 3, 3);
    snprintf(path, sizeof path, "%s/run.h5", dir);
    CHECK_OK(rrl_file_publish(path, "no record", 9));
    snprintf(path, sizeof path, "%s/records/000004.h5.99-0.tmp", dir);
    CHECK_OK(rrl_file_publish(path, "half", 4));
    check_digest(dir, 3, NONE);
    CHECK_OK(reopen(&r, dir, 3, 3));
    CHECK(there(dir, "quarantine/run.h5.1") && !there(dir, "run.h5"));
    if (r) CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
    check_digest(dir, 3, NONE);
    CHECK(there(dir, "records/000004.h5.99-0.tmp"));

    dir = recorded("replay", 3, 3); /* segments of another configuration */
    rrl_record_header h = case_header(questions);
    h.digest = "another";
    CHECK_OK(rrl_recorder_open(&r, dir, &h, 3, 0));
    CHECK(there(dir, "quarantine/000001.h5.1"));
    rrl_recorder_close(&r);
}

int main(void) {
    questions = case_questions();
    test_equal();
    test_joined();
    test_different();
    test_other_cuts();
    test_straddling();
    test_overlap();
    test_end_before_recorded();
    test_evaluations();
    test_damaged();
    test_lost();
    test_foreign_files();
    case_questions_free(&questions);
    return CHECK_DONE();
}

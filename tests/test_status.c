/* rrl status: every state a condition can be in, from files alone; while others write; in 80 columns and as JSON. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "check.h"
#include "program.h"
#include "record/run_folder.h"
#include "record/run_progress.h"
#include "record_case.h"
#include "rrl/config.h"
#include "study/study_file.h"

static char folder[PROGRAM_PATH];
static const char DIGEST[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const char YAML[] = "seed: 42\n";

/* What stands in the study, in its order. */
#define CONDITIONS(X)                                                                                                  \
    X(waiting, "waiting") X(running, "running") X(evaluating, "running") X(checkpointed, "checkpointed")               \
    X(complete, "complete") X(failed, "failed") X(interrupted, "interrupted") X(lost, "failed") X(torn, "failed")
enum {
#define X(name, status) AT_##name,
    CONDITIONS(X)
#undef X
        N_CONDITIONS
};
static const char *const STATUS[] = {
#define X(name, status) status,
    CONDITIONS(X)
#undef X
};
static const char *const NAMES[] = {
#define X(name, status) #name,
    CONDITIONS(X)
#undef X
};

static const char *in(const char *name) {
    static char path[8][PROGRAM_PATH + 200];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static const char *dir_of(int i) {
    char name[128];
    snprintf(name, sizeof name, "an-arm-with-a-long-name/level-0.2/seed-%d/%s", i, NAMES[i]);
    return in(name);
}

static void write_plan(void) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_buffer_puts(&b, "{\"version\": 1, \"conditions\": [\n"));
    for (int i = 0; i < N_CONDITIONS; i++)
        CHECK_OK(rrl_buffer_printf(&b, "%s{\"arm\": \"an-arm-with-a-long-name\", \"level\": 0.2, \"seed\": %d, \"method\": "
                                   "\"%s\", \"dir\": \"an-arm-with-a-long-name/level-0.2/seed-%d/%s\"}\n", i ? "," : "", i,
                                   NAMES[i], i, NAMES[i]));
    CHECK_OK(rrl_buffer_puts(&b, "]}\n"));
    CHECK_OK(rrl_file_publish(in("study.json"), b.data, b.len));
    rrl_buffer_free(&b);
}

static rrl_run_folder *open_run(int i) {
    rrl_run_folder *f = NULL;
    rrl_run_state state;
    CHECK_OK(rrl_run_folder_open(&f, &state, dir_of(i), DIGEST, YAML, false));
    return f;
}

static void say(int i, const char *phase, int64_t step, double step_s) {
    rrl_run_progress p = {.step = step, .steps = 200, .step_s = step_s};
    snprintf(p.phase, sizeof p.phase, "%s", phase);
    CHECK_OK(rrl_run_progress_write(dir_of(i), &p));
}

/* Ends with this status; the lock is let go. */
static void ended(int i, const char *status, const char *reason) {
    rrl_run_folder *f = open_run(i);
    CHECK_OK(rrl_run_folder_status(f, status, reason));
    rrl_run_folder_close(&f);
}

/* A process that took the run and was killed. */
static void killed(int i) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        rrl_run_folder *f = open_run(i);
        kill(getpid(), f ? SIGKILL : SIGTERM);
    }
    waitpid(child, NULL, 0);
}

static void test_states(rrl_run_folder **held) {
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    write_plan();
    held[0] = open_run(AT_running);
    say(AT_running, "train", 50, 0.5);
    held[1] = open_run(AT_evaluating);
    say(AT_evaluating, "evaluate", 200, 0.5);
    ended(AT_checkpointed, "checkpointed", "stopped by a signal after step 29");
    say(AT_checkpointed, "train", 30, 60);
    ended(AT_complete, "running", NULL);
    say(AT_complete, "evaluate", 199, 0.5); /* behind: nothing waits for its last word */
    CHECK_OK(case_run(dir_of(AT_complete), 4, 2, 1, (case_change){.step = -1}));
    CHECK_OK(rrl_run_folder_mark(dir_of(AT_complete), "complete", NULL));
    ended(AT_failed, "failed", "the loss of step 7 is not finite");
    killed(AT_interrupted);
    say(AT_interrupted, "train", 12, NAN);
    ended(AT_lost, "complete", NULL); /* says so, but has no run.h5 */
    CHECK_OK(rrl_dir_make(dir_of(AT_torn)));
    char path[PROGRAM_PATH + 300];
    snprintf(path, sizeof path, "%s/run.json", dir_of(AT_torn));
    CHECK_OK(rrl_file_publish(path, "{\"format\": \"rr", 14));

    if (!CHECK_OK(rrl_study_state(&s, &n, folder)) || !CHECK_EQ_INT(n, N_CONDITIONS)) return;
    for (int i = 0; i < N_CONDITIONS; i++) {
        CHECK_EQ_STR(s[i].status, STATUS[i]);
        CHECK_EQ_STR(s[i].method, NAMES[i]);
        CHECK_EQ_STR(s[i].dir, dir_of(i));
    }
    CHECK_EQ_INT(s[AT_running].step, 50);
    CHECK_EQ_INT(s[AT_running].steps, 200);
    CHECK_NEAR(s[AT_running].step_s, 0.5, 0);
    CHECK_EQ_INT(s[AT_running].pid, getpid());
    CHECK(s[AT_running].host[0] && s[AT_running].quiet_s >= 0 && s[AT_running].quiet_s < 60);
    CHECK_EQ_STR(s[AT_running].phase, "train");
    CHECK_EQ_STR(s[AT_evaluating].phase, "evaluate");
    CHECK_EQ_INT(s[AT_checkpointed].step, 30);
    CHECK_EQ_STR(s[AT_checkpointed].reason, "stopped by a signal after step 29");
    CHECK_EQ_INT(s[AT_interrupted].step, 12);
    CHECK(isnan(s[AT_interrupted].step_s));
    CHECK(s[AT_interrupted].reason && strstr(s[AT_interrupted].reason, "the same command continues it"));
    CHECK(s[AT_lost].reason && strstr(s[AT_lost].reason, "run.h5"));
    CHECK(s[AT_torn].reason && strstr(s[AT_torn].reason, "run.json"));
    CHECK(!s[AT_complete].reason && !s[AT_waiting].reason);
    CHECK_EQ_INT(s[AT_complete].step, 200);
    CHECK_EQ_INT(s[AT_complete].steps, 200);
    CHECK(!s[AT_complete].phase[0] && isnan(s[AT_complete].quiet_s));
    rrl_study_state_free(&s, n);

    CHECK_OK(rrl_study_state(&s, &n, dir_of(AT_checkpointed))); /* one run alone */
    if (CHECK_EQ_INT(n, 1)) CHECK_EQ_STR(s[0].status, "checkpointed");
    rrl_study_state_free(&s, n);
    CHECK_STATUS(rrl_study_state(&s, &n, in("an-arm-with-a-long-name")), RRL_ERR_DATA);
    CHECK_STATUS(rrl_study_state(&s, &n, in("nowhere")), RRL_ERR_DATA);
}

#define TRAIN RRL_SOURCE_DIR "/configs/train.yaml"

/* The folder is one that a run of configs/train.yaml with this seed left. */
static void ran_with(int i, const char *seed) {
    rrl_config *c = NULL;
    char *yaml = NULL, path[PROGRAM_PATH + 300];
    CHECK_OK(rrl_config_open(&c, TRAIN, (const char *[]){seed}, 1));
    CHECK_OK(rrl_config_yaml(&yaml, c, c->base));
    snprintf(path, sizeof path, "%s/config.yaml", dir_of(i));
    CHECK_OK(rrl_file_publish(path, yaml, strlen(yaml)));
    free(yaml);
    rrl_config_close(&c);
}

/* A config of one run whose folder holds a complete run: it is that run's, or another one's, which is said as
 * `rrl train` says it. Its seed is the config's; a folder's is that of the run in it. */
static void test_single(void) {
    program_end e;
    const char *dir = dir_of(AT_complete);
    ran_with(AT_complete, "seed=42");
    program_run(&e, in("log"), "status " TRAIN " output_dir=%s --json", dir);
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "\"status\": \"complete\"") && strstr(e.out, "\"step\": 200, \"steps\": 200"));
    CHECK(strstr(e.out, "\"seed\": 42,") != NULL);
    program_end_free(&e);
    program_run(&e, in("log"), "status " TRAIN " output_dir=%s training.max_steps=5 seed=43", dir);
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "1 condition, 1 other configuration\n") != NULL);
    CHECK(strstr(e.out, "training.max_steps: 100 -> 5") && strstr(e.out, "--fresh") && !strstr(e.out, "200/200"));
    program_end_free(&e);
    program_run(&e, in("log"), "status " TRAIN " output_dir=%s seed=43 --json", dir);
    CHECK(strstr(e.out, "\"status\": \"other configuration\"") && strstr(e.out, "seed: 42 -> 43; choose another"));
    CHECK(strstr(e.out, "\"seed\": 43,") && strstr(e.out, "\"step\": 0, \"steps\": 0"));
    program_end_free(&e);
    ran_with(AT_complete, "seed=7");
    program_run(&e, in("log"), "status %s --json", dir);
    CHECK(strstr(e.out, "\"status\": \"complete\"") && strstr(e.out, "\"seed\": 7,"));
    program_end_free(&e);
    program_run(&e, in("log"), "status %s --json", dir_of(AT_torn)); /* no config.yaml */
    CHECK(strstr(e.out, "\"seed\": null,") != NULL);
    program_end_free(&e);
}

#define QUICK RRL_SOURCE_DIR "/configs/quick.yaml"

/* A study's config beside a study.json: that of this config, or of another one, which is said before what is there. */
static void test_other_study(void) {
    static const struct {
        const char *set, *said, *json;
    } CASES[] = {{"", NULL, "\"differs\": null,"},
                 {"records.steps_per_segment=3", NULL, "\"differs\": null,"},
                 {"training.learning_rate=0.5", "training.learning_rate: 0.001 -> 0.5", "\"differs\": \"training.learning_rate: "},
                 {"experiment.seeds=[7]", "experiment.seeds: ", "\"differs\": \"experiment.seeds: "}};
    rrl_config *c = NULL;
    rrl_condition *list = NULL;
    int64_t n = 0;
    char out[PROGRAM_PATH + 300], flat[1 << 14];
    snprintf(out, sizeof out, "output_dir=%s", in("study"));
    CHECK_OK(rrl_config_open(&c, QUICK, (const char *[]){out}, 1));
    CHECK_OK(rrl_conditions_list(&list, &n, c));
    CHECK_OK(rrl_study_file_claim(c, list, n, "model=x\n"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int json = 0; json < 2; json++) {
            program_end e;
            program_run(&e, in("log"), "status " QUICK " %s %s%s", out, CASES[i].set, json ? " --json" : "");
            snprintf(flat, sizeof flat, "%s", e.out);
            for (char *p = flat; *p; p++) /* lines are broken anywhere */
                if (*p == '\n') *p = ' ';
            int good = CHECK_EQ_INT(e.code, 0);
            good &= CHECK(strstr(flat, "refuse this one") ? !json && CASES[i].said : json || !CASES[i].said);
            good &= CHECK(strstr(flat, json ? CASES[i].json : CASES[i].said ? CASES[i].said : "11 conditions, ") != NULL);
            if (!good) fprintf(stderr, "  %s\n%s\n", CASES[i].set, e.out);
            program_end_free(&e);
        }
    rrl_conditions_free(&list, n);
    rrl_config_close(&c);
    program_remove(in("study"));
}

/* The program's two forms. */
static void test_program(void) {
    program_end e;
    cJSON *json = NULL;
    program_run(&e, in("log"), "status %s", folder);
    CHECK_EQ_INT(e.code, 0);
    const char *const WANT[] = {"9 conditions, 1 complete, 2 running, 1 checkpointed, 1 interrupted, 3 failed, 1 waiting\n",
                                "50/200    2.0/s    75 s\n", "evaluating\n", "30/200\n",
                                "the loss of step 7 is not finite", "...", "host "};
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++)
        if (!CHECK(strstr(e.out, WANT[i]) != NULL)) fprintf(stderr, "no \"%s\" in\n%s", WANT[i], e.out);
    for (const char *line = strchr(e.out, '\n') + 1; *line; line = strchr(line, '\n') + 1) /* the first has the path */
        CHECK(strcspn(line, "\n") <= 80 || strstr(line, folder));
    program_end_free(&e);

    program_run(&e, in("log"), "status %s --json", folder);
    CHECK_EQ_INT(e.code, 0);
    CHECK_OK(rrl_json_parse(&json, e.out, strlen(e.out), "status"));
    cJSON *list = cJSON_GetObjectItem(json, "conditions");
    CHECK_EQ_INT(cJSON_GetArraySize(list), N_CONDITIONS);
    for (int i = 0; i < cJSON_GetArraySize(list); i++) {
        cJSON *item = cJSON_GetArrayItem(list, i);
        CHECK_EQ_INT(cJSON_GetNumberValue(cJSON_GetObjectItem(item, "index")), i);
        CHECK_EQ_STR(cJSON_GetStringValue(cJSON_GetObjectItem(item, "status")), STATUS[i]);
    }
    CHECK_NEAR(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(list, AT_running), "remaining_s")), 75, 0);
    cJSON_Delete(json);
    program_end_free(&e);

    program_run(&e, in("log"), "status %s seed=1", folder);
    CHECK_EQ_INT(e.code, 2);
    program_end_free(&e);
    program_run(&e, in("log"), "status %s/configs/quick.yaml output_dir=%s", RRL_SOURCE_DIR, in("unbegun"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "11 conditions, 11 waiting") != NULL);
    program_end_free(&e);

    /* a config of one run, before it began; after: test_single */
    program_run(&e, in("log"), "status %s/configs/train.yaml output_dir=%s", RRL_SOURCE_DIR, in("unbegun"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "1 condition, 1 waiting") != NULL);
    program_end_free(&e);
}

/* A run that opens, says how far it is and ends, over and over: a reader finds it in one of its states each time, never
 * killed, never unreadable. */
static void test_while_others_write(void) {
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0)
        for (;;) {
            rrl_run_folder *f = open_run(AT_checkpointed);
            say(AT_checkpointed, "train", 31, 1);
            if (f) (void)rrl_run_folder_status(f, "checkpointed", "stopped");
            rrl_run_folder_close(&f);
        }
    for (int i = 0; i < 500; i++) {
        if (!CHECK_OK(rrl_study_state(&s, &n, dir_of(AT_checkpointed)))) break;
        bool known = strcmp(s[0].status, "running") == 0 || strcmp(s[0].status, "checkpointed") == 0;
        if (!CHECK(known)) fprintf(stderr, "%s: %s\n", s[0].status, s[0].reason ? s[0].reason : "");
        rrl_study_state_free(&s, n);
        if (!known) break;
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
}

/* Base completions that could not be made are no condition, but the conditions wait for them. */
static void test_stores(void) {
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    rrl_run_folder *f = NULL;
    rrl_run_state state;
    CHECK_OK(rrl_run_folder_open(&f, &state, in("base/seed-7.work"), DIGEST, YAML, false));
    CHECK_OK(rrl_run_folder_status(f, "failed", "no model"));
    rrl_run_folder_close(&f);
    CHECK_OK(rrl_study_stores_state(&s, &n, folder));
    if (CHECK_EQ_INT(n, 1)) {
        CHECK_EQ_STR(s[0].status, "failed");
        CHECK_EQ_STR(s[0].reason, "no model");
        CHECK_EQ_INT(s[0].seed, 7);
    }
    rrl_study_state_free(&s, n);
    CHECK_OK(rrl_file_publish(in("base/seed-7.h5"), "x", 1));
    CHECK_OK(rrl_study_stores_state(&s, &n, folder));
    CHECK_EQ_INT(n, 0);
    rrl_study_state_free(&s, n);
}

int main(void) {
    rrl_run_folder *held[2] = {0};
    program_folder(folder, "status");
    test_states(held);
    test_program();
    test_single();
    test_other_study();
    test_while_others_write();
    test_stores();
    for (int i = 0; i < 2; i++) rrl_run_folder_close(&held[i]);
    program_remove(folder);
    return CHECK_DONE();
}

/* rrl repair: whatever is damaged is found, moved and never deleted; what is whole stays; the run's own command then ends
 * with the digest it had before. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "check.h"
#include "program.h"
#include "record/lock.h"
#include "record/run_folder.h"
#include "record_case.h"
#include "study/repair.h"

/* HDF5 1.10.8 forgets the object header whose checksum it found wrong (H5Fopen and H5Aopen alone on such a file do). */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5\n";
}

enum { STEPS = 6, PER_SEGMENT = 2 };
static char folder[PROGRAM_PATH];

static const char *in(const char *dir, const char *name) {
    enum { ROOM = 2 * PROGRAM_PATH };
    static char path[8][ROOM];
    static int turn;
    turn = (turn + 1) % 8;
    if (snprintf(path[turn], ROOM, "%s/%s", dir, name) >= ROOM) exit(1);
    return path[turn];
}

/* Flip a bit in every 100th byte, so that it hits more than the space between tables. */
static void damage(const char *path) {
    FILE *f = fopen(path, "r+b");
    if (!CHECK(f != NULL)) return;
    fseek(f, 0, SEEK_END);
    for (long at = ftell(f) - 1; at > 64; at -= 100) {
        fseek(f, at, SEEK_SET);
        int c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 0x10, f);
    }
    fclose(f);
}

static void truncate_half(const char *path) {
    struct stat st;
    CHECK_EQ_INT(stat(path, &st), 0);
    CHECK_EQ_INT(truncate(path, st.st_size / 2), 0);
}

/* A checkpoint as far as the repair looks into it. */
static void make_checkpoint(const char *dir, int64_t step, const char *digest) {
    static const char *const FILES[] = {"tensors.safetensors", "state.json", "in_flight.bin"};
    char path[PROGRAM_PATH + 100], text[300], hex[RRL_SHA256_HEX];
    uint8_t sum[RRL_SHA256_BYTES];
    rrl_buffer marker = {0};
    snprintf(path, sizeof path, "%s/checkpoints/step-%08lld", dir, (long long)step);
    CHECK_OK(rrl_dir_make(path));
    snprintf(text, sizeof text, "{\"version\": 1, \"digest\": \"%s\", \"step\": %lld, \"updates\": %lld, \"num_tokens\": 1, "
             "\"nonfinite\": 0}\n", digest, (long long)step, (long long)step);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) { /* one content does for all */
        CHECK_OK(rrl_file_publish(in(path, FILES[i]), text, strlen(text)));
        CHECK_OK(rrl_sha256_of(sum, text, strlen(text)));
        rrl_sha256_hex(hex, sum);
        CHECK_OK(rrl_buffer_printf(&marker, "%s  %s\n", hex, FILES[i]));
    }
    CHECK_OK(rrl_file_publish(in(path, "complete"), marker.data, marker.len));
    rrl_buffer_free(&marker);
}

/* The case's run up to its last segment and evaluation, claimed and let go, with checkpoints of steps 2, 4 and 6. */
static void make_run(const char *dir, int finish) {
    rrl_run_folder *f = NULL;
    rrl_run_state state;
    rrl_record_header h = case_header(NULL);
    CHECK_OK(rrl_run_folder_open(&f, &state, dir, h.digest, h.config_yaml, false));
    CHECK_OK(rrl_run_folder_status(f, "checkpointed", "stopped"));
    rrl_run_folder_close(&f);
    CHECK_OK(case_run(dir, STEPS, PER_SEGMENT, finish, (case_change){.step = -1}));
    for (int64_t step = 2; step <= STEPS; step += 2) make_checkpoint(dir, step, h.digest);
    if (finish) CHECK_OK(rrl_run_folder_mark(dir, "complete", NULL));
}

static int exists(const char *dir, const char *name) { return program_exists(in(dir, name)); }

/* Damage one thing, look, repair: what is set aside, what stays. Names end with NULL. */
typedef struct {
    const char *what;
    int finish;
    void (*how)(const char *path);
    const char *file;
    const char *aside[6], *stays[6];
} repair_case;

static void remove_file(const char *path) { CHECK_EQ_INT(unlink(path), 0); }

static const repair_case CASES[] = {
    {"a segment", 0, damage, "records/000003.h5",
     {"000003.h5.1", "step-00000004.1", "step-00000006.1"},
     {"records/000001.h5", "records/000005.h5", "checkpoints/step-00000002", "records/evaluation-final.h5"}},
    {"the first segment", 0, truncate_half, "records/000001.h5",
     {"000001.h5.1", "step-00000002.1", "step-00000004.1", "step-00000006.1"}, {"records/000003.h5"}},
    {"a segment that is gone", 0, remove_file, "records/000005.h5",
     {"step-00000006.1"}, {"records/000001.h5", "checkpoints/step-00000004"}},
    {"the head", 0, damage, "records/000000.h5",
     {"000000.h5.1"}, {"records/000001.h5", "checkpoints/step-00000006"}},
    {"an evaluation", 0, damage, "records/evaluation-final.h5",
     {"evaluation-final.h5.1"}, {"records/000001.h5", "checkpoints/step-00000006"}},
    {"tensors of a checkpoint", 0, damage, "checkpoints/step-00000006/tensors.safetensors",
     {"step-00000006.1"}, {"checkpoints/step-00000004", "records/000005.h5"}},
    {"a checkpoint without its marker", 0, remove_file, "checkpoints/step-00000004/complete",
     {"step-00000004.1"}, {"checkpoints/step-00000006"}},
    {"a complete record", 1, damage, "run.h5",
     {"run.h5.1", "step-00000002.1", "step-00000004.1", "step-00000006.1"}, {"run.json"}},
    {"a cut record", 1, truncate_half, "run.h5",
     {"run.h5.1", "step-00000002.1", "step-00000004.1", "step-00000006.1"}, {"run.json"}},
};

static void test_case(const repair_case *c) {
    char dir[PROGRAM_PATH];
    rrl_repair r = {0};
    int64_t n = 0;
    snprintf(dir, sizeof dir, "%s", case_folder("repair"));
    make_run(dir, c->finish);
    c->how(in(dir, c->file));
    while (c->aside[n]) n++;

    CHECK_OK(rrl_repair_folder(&r, dir, true, false)); /* looks alone */
    CHECK_EQ_INT(r.set_aside, n);
    CHECK(!exists(dir, "quarantine"));
    rrl_repair_free(&r);
    r = (rrl_repair){0};
    CHECK_OK(rrl_repair_folder(&r, dir, false, false));
    if (!CHECK_EQ_INT(r.set_aside, n)) fprintf(stderr, "%s:\n%s", c->what, r.text.data);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "quarantine/%s", c->aside[i]);
        if (!CHECK(exists(dir, name))) fprintf(stderr, "%s: no %s\n%s", c->what, name, r.text.data);
    }
    for (int i = 0; c->stays[i]; i++)
        if (!CHECK(exists(dir, c->stays[i]))) fprintf(stderr, "%s: %s is gone\n", c->what, c->stays[i]);
    CHECK(!exists(dir, "lock"));
    rrl_repair_free(&r);

    r = (rrl_repair){0};
    CHECK_OK(rrl_repair_folder(&r, dir, false, false)); /* then all is whole */
    CHECK_EQ_INT(r.set_aside, 0);
    rrl_repair_free(&r);
    char *status = NULL, *reason = NULL;
    CHECK_OK(rrl_run_folder_read(&status, &reason, dir));
    CHECK_EQ_STR(status, "failed");
    CHECK(reason && strstr(reason, "the same command makes them again"));
    free(status);
    free(reason);
}

/* A record and its checkpoints that were set aside leave a run without a record, which is not whole. */
static void test_no_record(void) {
    const char *dir = case_folder("repair");
    make_run(dir, 1);
    damage(in(dir, "run.h5"));
    for (int i = 0; i < 3; i++) { /* the second time, and again by looking alone */
        rrl_repair r = {0};
        CHECK_OK(rrl_repair_folder(&r, dir, i == 2, false));
        CHECK_EQ_INT(r.set_aside > 0, i == 0);
        CHECK_EQ_INT(r.noted, i > 0);
        CHECK_EQ_INT(strncmp(r.text.data, "no record ", 10) == 0, i > 0);
        CHECK_EQ_INT(strstr(r.text.data, "the run has no record; the same command makes it again") != NULL, i > 0);
        CHECK(!strstr(r.text.data, "whole "));
        rrl_repair_free(&r);
    }
}

static void test_whole(void) {
    const char *dir = case_folder("repair");
    for (int finish = 0; finish < 2; finish++) {
        rrl_repair r = {0};
        dir = case_folder("repair");
        make_run(dir, finish);
        CHECK_OK(rrl_repair_folder(&r, dir, false, false));
        CHECK_EQ_INT(r.runs, 1);
        CHECK_EQ_INT(r.set_aside + r.made_again + r.busy + r.noted, 0);
        CHECK(strncmp(r.text.data, "whole ", 6) == 0);
        CHECK(!exists(dir, "quarantine"));
        rrl_repair_free(&r);
    }
}

/* A run.json that is damaged or lost is made again from the records' own knowledge of whose they are. */
static void test_run_json(void) {
    for (int finish = 0; finish < 2; finish++) {
        rrl_repair r = {0};
        rrl_run_digests d;
        const char *dir = case_folder("repair");
        make_run(dir, finish);
        CHECK_OK(rrl_file_publish(in(dir, "run.json"), "{\"format\"", 9));
        CHECK_OK(rrl_repair_folder(&r, dir, false, false));
        CHECK_EQ_INT(r.set_aside, 1);
        CHECK_EQ_INT(r.made_again, 1);
        CHECK(exists(dir, "quarantine/run.json.1"));
        CHECK_OK(rrl_run_folder_digests(&d, dir));
        CHECK_EQ_STR(d.run, case_header(NULL).digest);
        CHECK(finish ? strlen(d.record) == 64 : d.record[0] == 0);
        rrl_repair_free(&r);
    }
}

/* The folder of a living process is not touched. */
static void test_busy(void) {
    rrl_repair r = {0};
    rrl_run_folder *f = NULL;
    rrl_run_state state;
    rrl_record_header h = case_header(NULL);
    const char *dir = case_folder("repair");
    make_run(dir, 0);
    damage(in(dir, "records/000003.h5"));
    CHECK_OK(rrl_run_folder_open(&f, &state, dir, h.digest, h.config_yaml, false));
    for (int dry = 0; dry < 2; dry++) {
        CHECK_OK(rrl_repair_folder(&r, dir, dry, false));
        CHECK_EQ_INT(r.busy, dry + 1);
        CHECK_EQ_INT(r.set_aside, 0);
    }
    CHECK(exists(dir, "records/000003.h5") && exists(dir, "lock"));
    rrl_run_folder_close(&f);
    rrl_repair_free(&r);
}

/* --- a real study */

#define STUDY                                                                                                          \
    "study %s/configs/quick.yaml --quiet --threads 1 experiment.seeds=[7] "                                           \
    "'experiment.arms=[{name: flip, corruption: flip, levels: [0.5], methods: [base, baseline]}]' hypotheses=[] "     \
    "dataset.limit=6 experiment.train_dataset.limit=16 generation.max_tokens=16 training.max_steps=6 "                \
    "training.save_steps=2 records.steps_per_segment=2 records.writer_share=1 output_dir=%s"
#define TRAINED "flip/level-0.5/seed-7/baseline/"

static int run_study(const char *dir) {
    program_end e;
    program_run(&e, in(folder, "log"), STUDY, RRL_SOURCE_DIR, dir);
    int code = e.code;
    if (code != 0) fprintf(stderr, "%s", e.err);
    program_end_free(&e);
    return code;
}

static int run_repair(const char *dir, const char *more, const char *said) {
    program_end e;
    program_run(&e, in(folder, "log"), "repair %s%s", dir, more);
    int code = e.code;
    if (!CHECK(strstr(e.out, said) != NULL)) fprintf(stderr, "no \"%s\" in\n%s%s", said, e.out, e.err);
    program_end_free(&e);
    return code;
}

static char trained[65]; /* digest of the trained condition */

/* run.h5, base completions and adapter, damaged one after the other. */
static void test_study(void) {
    static const struct {
        const char *file, *said;
    } DAMAGES[] = {
        {TRAINED "run.h5", "set aside   run.h5"},
        {"flip/level-0.5/seed-7/base/run.h5", "set aside   run.h5"},
        {"base/seed-7.h5", "set aside   seed-7.h5"},
        {TRAINED "adapter/adapter_model.safetensors", "made again  adapter/adapter_model.safetensors from a checkpoint"},
    };
    char dir[PROGRAM_PATH + 200], want[65], found[65];
    snprintf(dir, sizeof dir, "%s", in(folder, "study"));
    if (!CHECK_EQ_INT(run_study(dir), 0)) return;
    CHECK_OK(rrl_record_digest(want, dir));
    CHECK_OK(rrl_record_digest(trained, in(dir, TRAINED)));
    CHECK_EQ_INT(run_repair(dir, " --dry-run", "0 files to be set aside"), 0);
    program_end e;
    program_run(&e, in(folder, "log"), "repair %s --dry-run", dir);
    CHECK(strstr(e.out, ".work") == NULL); /* the store is there: nothing is missing in what it was made in */
    program_end_free(&e);
    for (size_t i = 0; i < sizeof DAMAGES / sizeof *DAMAGES; i++) {
        damage(in(dir, DAMAGES[i].file));
        CHECK_EQ_INT(run_repair(dir, " --dry-run", DAMAGES[i].said), 3);
        CHECK_EQ_INT(run_repair(dir, "", DAMAGES[i].said), 0);
        CHECK_EQ_INT(run_repair(dir, " --dry-run", "0 files to be set aside"), 0);
        CHECK_EQ_INT(run_study(dir), 0);
        if (!CHECK(exists(dir, DAMAGES[i].file))) fprintf(stderr, "%s\n", DAMAGES[i].file);
        CHECK_OK(rrl_record_digest(found, dir));
        CHECK_EQ_STR(found, want);
    }
}

/* What is gone without a trace of damage: the base's completions, which the study makes again though all is complete; an
 * adapter without a checkpoint that has it, whose run is then made again. */
static void test_gone(const char *dir) {
    char want[65], found[65];
    CHECK_OK(rrl_record_digest(want, dir));
    remove_file(in(dir, "base/seed-7.h5"));
    CHECK_EQ_INT(run_study(dir), 0);
    CHECK(exists(dir, "base/seed-7.h5"));
    remove_file(in(dir, TRAINED "adapter/adapter_model.safetensors"));
    program_remove(in(dir, TRAINED "checkpoints"));
    CHECK_EQ_INT(run_repair(dir, " --dry-run", "run.h5: the adapter it ended with is lost"), 3);
    CHECK_EQ_INT(run_repair(dir, "", "run.h5: the adapter it ended with is lost"), 0);
    CHECK_EQ_INT(run_study(dir), 0);
    CHECK_OK(rrl_record_digest(found, dir));
    CHECK_EQ_STR(found, want);
}

/* Temporaries of killed runs are told, removed when asked for; other files and those of the living stay. */
static void test_leftovers(const char *dir) {
    char living[64];
    static const char *const DEAD[] = {TRAINED "run.json.4194399-0.tmp", TRAINED "checkpoints/step-00000006/x.4194399-12.tmp",
                                       TRAINED "progress.json.tmp", "study.json.4194399-0.tmp", "base/seed-7.h5.4194399.tmp"};
    static const char *const KEPT[] = {TRAINED "notes.tmp", TRAINED "12.tmp", TRAINED "a.4194399-x.tmp", TRAINED "run.json"};
    enum { N_DEAD = sizeof DEAD / sizeof *DEAD, N_KEPT = sizeof KEPT / sizeof *KEPT };
    snprintf(living, sizeof living, "study.json.%ld-0.tmp", (long)getpid());
    for (int i = 0; i < N_DEAD; i++) CHECK_OK(rrl_file_publish(in(dir, DEAD[i]), "x", 1));
    for (int i = 0; i < 3; i++) CHECK_OK(rrl_file_publish(in(dir, KEPT[i]), "x", 1));
    CHECK_OK(rrl_file_publish(in(dir, living), "x", 1));
    CHECK_EQ_INT(run_repair(dir, "", "5 temporaries of killed runs left over (--clean removes them)"), 0);
    CHECK_EQ_INT(run_repair(dir, " --dry-run --clean", "5 temporaries of killed runs left over"), 0);
    for (int i = 0; i < N_DEAD; i++) CHECK(exists(dir, DEAD[i]));
    CHECK_EQ_INT(run_repair(dir, " --clean", "5 temporaries of killed runs removed"), 0);
    for (int i = 0; i < N_DEAD; i++)
        if (!CHECK(!exists(dir, DEAD[i]))) fprintf(stderr, "%s stays\n", DEAD[i]);
    for (int i = 0; i < N_KEPT; i++)
        if (!CHECK(exists(dir, KEPT[i]))) fprintf(stderr, "%s is gone\n", KEPT[i]);
    CHECK(exists(dir, living));
}

/* A report that a killed process was writing is one temporary, with all that is in it; one that is being written is none. */
static void test_report_leftover(const char *dir) {
    rrl_process self;
    char killed[320], writing[320], elsewhere[] = "report.another-host.4194399-0.tmp/report.md";
    rrl_process_self(&self);
    snprintf(killed, sizeof killed, "report.%s.4194399-0.tmp/plots/a.svg", self.host);
    snprintf(writing, sizeof writing, "report.%s.%ld-0.tmp/report.md", self.host, (long)getpid());
    const char *const files[] = {killed, writing, elsewhere};
    for (int i = 0; i < 3; i++) {
        char *parent = NULL;
        CHECK_OK(rrl_path_parent(&parent, in(dir, files[i])));
        CHECK_OK(rrl_dir_make(parent));
        CHECK_OK(rrl_file_publish(in(dir, files[i]), "x", 1));
        free(parent);
    }
    CHECK_EQ_INT(run_repair(dir, "", "1 temporary of killed runs left over"), 0);
    CHECK(exists(dir, killed));
    CHECK_EQ_INT(run_repair(dir, " --clean", "1 temporary of killed runs removed"), 0);
    *strstr(killed, "/plots") = '\0';
    CHECK(!exists(dir, killed));
    CHECK(exists(dir, writing) && exists(dir, elsewhere));
}

/* Stopped between the last segment and run.h5, so that all of it is there: joined without computing. */
static void test_join(void) {
    char dir[PROGRAM_PATH + 200], found[65];
    program_end e;
    snprintf(dir, sizeof dir, "%s", in(folder, "joined"));
    program_run(&e, in(folder, "log"), "RRL_FAULT=0:run.write:3:kill " STUDY, RRL_SOURCE_DIR, dir);
    CHECK(e.code != 0);
    program_end_free(&e);
    CHECK(exists(dir, TRAINED "records") && !exists(dir, TRAINED "run.h5"));
    CHECK_EQ_INT(run_repair(dir, "", "made again  run.h5 from its segments"), 0);
    CHECK(!exists(dir, TRAINED "records"));
    CHECK_OK(rrl_record_digest(found, in(dir, TRAINED)));
    CHECK_EQ_STR(found, trained);
    CHECK_EQ_INT(run_study(dir), 0);
}

int main(void) {
    char study[PROGRAM_PATH + 200];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) test_case(&CASES[i]);
    test_no_record();
    test_whole();
    test_run_json();
    test_busy();
    program_folder(folder, "repair");
    test_study();
    snprintf(study, sizeof study, "%s", in(folder, "study"));
    test_gone(study);
    test_leftovers(study);
    test_report_leftover(study);
    test_join();
    program_remove(folder);
    return CHECK_DONE();
}

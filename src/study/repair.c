/* The repair of run folders. A file is damaged when it cannot be read to its last byte (every chunk of a record has a
 * checksum), belongs to another run, or is not what run.json says was left. What depends on it goes with it: a checkpoint
 * whose earlier steps are no longer recorded would continue a record with a hole. */
#include "study/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "data/safetensors.h"
#include "learn/checkpoint.h"
#include "record/lock.h"
#include "record/record_file.h"
#include "record/records_folder.h"
#include "record/run_folder.h"
#include "study/adapter_again.h"
#include "study/leftovers.h"
#include "study/study.h"

/* One run folder on its way through the checks. */
typedef struct {
    rrl_repair *out;
    const char *dir;
    char *records;           /* DIR/records; what it holds may be gone */
    bool dry;
    bool known;              /* run.json was read */
    rrl_run_digests digests; /* "" = not known */
    rrl_record *head;        /* NULL = not there or damaged */
    int64_t origin, reached; /* steps [origin, reached) are recorded without a hole */
    bool evaluated, adapter; /* evaluation and adapter are there and whole */
    int64_t damaged;
    bool unrecorded;         /* run.json is all that is known of it */
} run;

void rrl_repair_free(rrl_repair *r) {
    rrl_buffer_free(&r->text);
}

/* --- saying and moving */

/* Path below the run folder, for messages. */
static const char *below(const run *r, const char *path) {
    size_t n = strlen(r->dir);
    return strncmp(path, r->dir, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

/* A reason often begins with the path that the line has named already. */
static const char *without_path(const char *reason, const char *path) {
    size_t n = strlen(path);
    return strncmp(reason, path, n) == 0 && strncmp(reason + n, ": ", 2) == 0 ? reason + n + 2 : reason;
}

static rrl_status set_aside(run *r, const char *path, const char *reason) {
    RRL_TRY(rrl_buffer_printf(&r->out->text, "  set aside   %s: %s\n", below(r, path), without_path(reason, path)));
    r->out->set_aside++;
    r->damaged++;
    return r->dry ? RRL_OK : rrl_quarantine(r->records, path);
}

/* For the user to know; nothing is done about it. */
static rrl_status note(run *r, const char *path, const char *text) {
    r->out->noted++;
    return rrl_buffer_printf(&r->out->text, "  note        %s: %s\n", below(r, path), text);
}

/* *hex of a file, and whether it is the wanted one ("" = any). */
static rrl_status matches(bool *same, char hex[RRL_SHA256_HEX], const char *path, const char *wanted) {
    uint8_t sum[RRL_SHA256_BYTES];
    RRL_TRY(rrl_sha256_file(sum, path));
    rrl_sha256_hex(hex, sum);
    *same = !wanted[0] || strcmp(hex, wanted) == 0;
    return RRL_OK;
}

/* The last error is why. Only what is wrong with the data is; no memory or no permission says nothing of a file. */
static rrl_status judge(run *r, rrl_status rc, const char *path) {
    char reason[512];
    if (rc != RRL_ERR_DATA && rc != RRL_ERR_CONFIG) return rc;
    snprintf(reason, sizeof reason, "%s", rrl_error_message());
    return set_aside(r, path, reason);
}

static const char *run_digest(const run *r) {
    return r->digests.run[0] ? r->digests.run : NULL;
}

/* --- the parts */

/* Content is compared by digest. Other bytes of the file are those between the tables, and texts without a checksum of
 * their own (configuration, provenance): that they changed is said, but makes no record worthless. */
static rrl_status compare_run_file(run *r, const char *path) {
    char found[65], hex[RRL_SHA256_HEX];
    bool same = true;
    bool comparable = r->digests.record[0] && (r->adapter || !r->digests.adapter[0]);
    RRL_TRY(matches(&same, hex, path, r->digests.file));
    if (same || !comparable) return RRL_OK;
    RRL_TRY(rrl_record_digest(found, path));
    if (strcmp(found, r->digests.record) != 0)
        return RRL_FAIL(RRL_ERR_DATA, "content has digest %.12s, run.json says %.12s", found, r->digests.record);
    return note(r, path, "is not the file that was written, but all tables are what they were; left in place");
}

/* *whole: run.h5 is there, reads to its end and is this run's. */
static rrl_status check_run_file(run *r, bool *whole) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    rrl_record *record = NULL;
    *whole = false;
    RRL_GOTO(rrl_path_join(&path, r->dir, "run.h5"));
    if (!rrl_file_exists(path)) goto done;
    rc = rrl_record_read(&record, path, 1);
    if (rc == RRL_OK && run_digest(r) && strcmp(record->digest, r->digests.run) != 0)
        rc = RRL_FAIL(RRL_ERR_DATA, "belongs to another run (digest %.12s, run.json says %.12s)", record->digest,
                      r->digests.run);
    if (rc == RRL_OK) rc = compare_run_file(r, path);
    *whole = rc == RRL_OK;
    if (*whole && !r->known) { /* it knows whose it is */
        memcpy(r->digests.run, record->digest, sizeof r->digests.run - 1);
        r->head = record;
        record = NULL;
    }
    rc = judge(r, rc, path);
done:
    rrl_record_free(&record);
    free(path);
    return rc;
}

/* The last checkpoint of a complete run holds its adapter. */
static rrl_status restore_adapter(run *r) {
    if (r->adapter || !r->digests.adapter[0]) return RRL_OK;
    RRL_TRY(rrl_adapter_again(&r->adapter, r->dir, r->digests.adapter, r->dry));
    if (!r->adapter) return RRL_OK;
    r->out->made_again++;
    return rrl_buffer_puts(&r->out->text, "  made again  adapter/adapter_model.safetensors from a checkpoint\n");
}

static rrl_status check_adapter(run *r) {
    rrl_status rc = RRL_OK;
    char *path = NULL, hex[RRL_SHA256_HEX];
    bool same = true;
    rrl_safetensors *tensors = NULL;
    RRL_GOTO(rrl_path_join(&path, r->dir, "adapter/adapter_model.safetensors"));
    if (rrl_file_exists(path)) {
        rc = rrl_safetensors_open(&tensors, path);
        if (rc == RRL_OK) RRL_GOTO(matches(&same, hex, path, r->digests.adapter));
        if (!same) rc = RRL_FAIL(RRL_ERR_DATA, "SHA-256 is %.12s, run.json says %.12s", hex, r->digests.adapter);
        r->adapter = rc == RRL_OK;
        RRL_GOTO(judge(r, rc, path));
    }
    RRL_GOTO(restore_adapter(r));
done:
    rrl_safetensors_close(&tensors);
    free(path);
    return rc;
}

static rrl_status check_head(run *r, const char *path) {
    rrl_record *head = NULL;
    if (!path) return RRL_OK;
    RRL_TRY(rrl_alloc(&head, 1, sizeof *head, "record"));
    rrl_status rc = rrl_record_load(head, path, RRL_PART_HEAD, true);
    if (rc == RRL_OK && run_digest(r) && strcmp(head->digest, r->digests.run) != 0)
        rc = RRL_FAIL(RRL_ERR_DATA, "belongs to another run (digest %.12s, run.json says %.12s)", head->digest,
                      r->digests.run);
    if (rc != RRL_OK) {
        rrl_record_free(&head);
        return judge(r, rc, path);
    }
    if (!r->known) memcpy(r->digests.run, head->digest, sizeof r->digests.run - 1);
    r->head = head;
    return RRL_OK;
}

/* Steps that a damaged segment held are a hole from its first on, whatever comes after it. */
static rrl_status check_segments(run *r, const rrl_records_folder *f) {
    bool hole = false;
    r->origin = r->reached = f->n_segments ? f->segments[0].first : 0;
    for (size_t i = 0; i < f->n_segments; i++) {
        const rrl_segment_file *file = &f->segments[i];
        rrl_segment s = {0};
        rrl_status rc = rrl_segment_read(&s, file->path, run_digest(r), true);
        int64_t end = s.first + s.n;
        if (rc == RRL_OK && s.first != file->first)
            rc = RRL_FAIL(RRL_ERR_DATA, "starts at step %lld, its name says %lld", (long long)s.first,
                          (long long)file->first);
        rrl_segment_clear(&s);
        hole = hole || rc != RRL_OK || file->first > r->reached;
        if (!hole && end > r->reached) r->reached = end;
        RRL_TRY(judge(r, rc, file->path));
    }
    return RRL_OK;
}

static rrl_status check_evaluations(run *r, const rrl_records_folder *f) {
    for (size_t i = 0; i < f->n_evaluations; i++) {
        rrl_record_set s = {0};
        rrl_status rc = rrl_evaluation_read(&s, f->evaluations[i], run_digest(r), true);
        rrl_set_clear(&s);
        r->evaluated = r->evaluated || rc == RRL_OK;
        RRL_TRY(judge(r, rc, f->evaluations[i]));
    }
    return RRL_OK;
}

static rrl_status check_checkpoint(run *r, const char *folder) {
    int64_t step = 0;
    rrl_status rc = rrl_checkpoint_check(&step, folder, run_digest(r));
    if (rc == RRL_OK && step > r->reached)
        rc = RRL_FAIL(RRL_ERR_DATA, "steps %lld to %lld before it are not recorded whole", (long long)r->reached,
                      (long long)step - 1);
    return judge(r, rc, folder);
}

static rrl_status check_checkpoints(run *r) {
    rrl_status rc = RRL_OK;
    char *root = NULL, *folder = NULL, **names = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&root, r->dir, "checkpoints"));
    if (rrl_dir_exists(root)) RRL_GOTO(rrl_dir_list(&names, &n, root));
    for (size_t i = 0; i < n; i++) {
        free(folder);
        folder = NULL;
        RRL_GOTO(rrl_path_join(&folder, root, names[i]));
        if (strncmp(names[i], "step-", 5) == 0) RRL_GOTO(check_checkpoint(r, folder));
    }
done:
    free(root);
    free(folder);
    rrl_names_free(&names, n);
    return rc;
}

/* --- making again */

/* Whether segments, evaluation and adapter are all that the run was to make. */
static rrl_status all_there(bool *all, const run *r) {
    rrl_config *c = NULL;
    *all = false;
    if (!r->head) return RRL_OK;
    RRL_TRY(rrl_config_parse(&c, r->head->config_yaml, strlen(r->head->config_yaml), "config of the records", NULL, NULL, 0));
    bool trains = strcmp(r->head->execution_kind, "training") == 0;
    bool trained = r->origin == 0 && r->reached == c->training.max_steps && r->adapter;
    *all = trains ? trained && (r->evaluated || !c->experiment.train_dataset.given) : r->evaluated;
    rrl_config_close(&c);
    return RRL_OK;
}

static rrl_status join(run *r) {
    RRL_TRY(rrl_buffer_puts(&r->out->text, "  made again  run.h5 from its segments\n"));
    r->out->made_again++;
    if (r->dry) return RRL_OK;
    RRL_TRY(rrl_records_join(r->dir, NULL));
    RRL_TRY(rrl_records_remove(r->dir));
    return rrl_run_folder_mark(r->dir, "complete", NULL);
}

/* run.json says again what the files are. */
static rrl_status mark(run *r) {
    if (r->damaged == 0 || r->dry) return RRL_OK;
    return rrl_run_folder_mark(r->dir, "failed", "damaged files were set aside by a repair; the same command makes them "
                               "again");
}

static rrl_status restore_run_json(run *r) {
    if (r->known || !r->head || !r->digests.run[0]) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(&r->out->text, "  made again  run.json from the records\n"));
    r->out->made_again++;
    return r->dry ? RRL_OK : rrl_run_folder_restore(r->dir, r->digests.run, r->head->config_yaml);
}

/* --- a run */

static rrl_status check_run_json(run *r) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    RRL_GOTO(rrl_path_join(&path, r->dir, "run.json"));
    if (!rrl_file_exists(path)) goto done;
    rc = rrl_run_folder_digests(&r->digests, r->dir);
    r->known = rc == RRL_OK;
    rc = judge(r, rc, path);
done:
    free(path);
    return rc;
}

/* Nothing is damaged where there is nothing: as an earlier repair leaves a run whose record it set aside. */
static rrl_status say_unrecorded(run *r, const rrl_records_folder *f) {
    r->unrecorded = r->known && !r->damaged && !f->head && !f->n_segments && !f->n_evaluations;
    if (!r->unrecorded) return RRL_OK;
    return note(r, "run.h5", "is not there: the run has no record; the same command makes it again");
}

/* The parts of a run that is not complete; then what can be made of them. */
static rrl_status check_parts(run *r) {
    rrl_status rc = RRL_OK;
    rrl_records_folder f = {0};
    bool all = false;
    RRL_GOTO(rrl_records_list(&f, r->dir));
    RRL_GOTO(check_head(r, f.head));
    RRL_GOTO(check_segments(r, &f));
    RRL_GOTO(check_evaluations(r, &f));
    RRL_GOTO(check_checkpoints(r));
    RRL_GOTO(say_unrecorded(r, &f));
    RRL_GOTO(restore_run_json(r));
    if (!r->known && !r->head) goto done; /* nobody knows whose files these are */
    RRL_GOTO(all_there(&all, r));
    RRL_GOTO(all ? join(r) : mark(r));
done:
    rrl_records_free(&f);
    return rc;
}

/* A record that is whole, but whose adapter is lost for good, would pass for a complete run: both are made again. */
static rrl_status demand_adapter(run *r, bool *whole) {
    rrl_status rc;
    char *path = NULL;
    if (r->adapter || !r->digests.adapter[0]) return RRL_OK;
    *whole = false;
    RRL_GOTO(rrl_path_join(&path, r->dir, "run.h5"));
    RRL_GOTO(set_aside(r, path, "the adapter it ended with is lost, and no checkpoint has it"));
done:
    free(path);
    return rc;
}

static rrl_status check_run(run *r) {
    bool whole = false;
    RRL_TRY(check_run_json(r));
    RRL_TRY(check_adapter(r));
    RRL_TRY(check_run_file(r, &whole));
    if (whole) RRL_TRY(demand_adapter(r, &whole));
    if (!whole) return check_parts(r);
    RRL_TRY(restore_run_json(r));
    if (!r->known && !r->dry) RRL_TRY(rrl_run_folder_mark(r->dir, "complete", NULL));
    return RRL_OK;
}

/* The line of the run goes before those of its files. */
static rrl_status say_run(run *r, size_t at) {
    rrl_buffer lines = {0};
    rrl_status rc = RRL_OK;
    const char *verdict = r->damaged ? "damaged" : r->unrecorded ? "no record" : "whole";
    RRL_GOTO(rrl_buffer_put(&lines, r->out->text.data ? r->out->text.data + at : "", r->out->text.len - at));
    r->out->text.len = at;
    RRL_GOTO(rrl_buffer_printf(&r->out->text, "%-8s %s\n", verdict, r->dir));
    RRL_GOTO(rrl_buffer_put(&r->out->text, lines.data ? lines.data : "", lines.len));
done:
    rrl_buffer_free(&lines);
    return rc;
}

static bool has_files(const char *dir) {
    static const char *const TRACES[] = {"run.json", "run.h5", "records", "checkpoints"};
    bool found = false;
    for (size_t i = 0; i < sizeof TRACES / sizeof *TRACES && !found; i++) {
        char *path = NULL;
        found = rrl_path_join(&path, dir, TRACES[i]) == RRL_OK && (rrl_file_exists(path) || rrl_dir_exists(path));
        free(path);
    }
    return found;
}

/* Who looks for damage may not meet a writer: the lock is taken, or, when only looking, no living process may have it. */
static rrl_status claim(run *r, bool *ours) {
    bool held = false, dead = false;
    rrl_process holder;
    char who[512];
    *ours = true;
    if (!r->dry) {
        rrl_status rc = rrl_lock_take(r->dir);
        *ours = rc == RRL_OK;
        if (rc != RRL_ERR_BUSY) return rc;
    }
    if (rrl_lock_look(&held, &dead, &holder, r->dir) != RRL_OK) held = false;
    if (r->dry && (!held || dead)) return RRL_OK;
    *ours = false;
    rrl_process_text(who, sizeof who, &holder);
    r->out->busy++;
    return rrl_buffer_printf(&r->out->text, "in use   %s (%s)\n", r->dir, held ? who : "its lock was just taken");
}

static rrl_status repair_run(rrl_repair *out, const char *dir, bool dry) {
    rrl_status rc = RRL_OK;
    run r = {.out = out, .dir = dir, .dry = dry};
    size_t at = out->text.len;
    bool ours = false;
    if (!has_files(dir)) return RRL_OK;
    RRL_GOTO(rrl_path_join(&r.records, dir, "records"));
    RRL_GOTO(claim(&r, &ours));
    if (!ours) goto done;
    out->runs++;
    rc = check_run(&r);
    if (rc == RRL_OK) rc = say_run(&r, at);
done:
    if (ours && !dry) rrl_lock_drop(dir);
    rrl_record_free(&r.head);
    free(r.records);
    return rc;
}

/* --- a study */

/* base/seed-S.h5; a damaged one is made again by the first who needs it. */
static rrl_status repair_store(rrl_repair *out, const char *base, const char *name, bool dry) {
    rrl_status rc = RRL_OK;
    run r = {.out = out, .dir = base, .dry = dry};
    char *path = NULL;
    rrl_record *record = NULL;
    RRL_GOTO(rrl_path_join(&r.records, base, "records"));
    RRL_GOTO(rrl_path_join(&path, base, name));
    size_t at = out->text.len;
    rc = judge(&r, rrl_record_read(&record, path, 1), path);
    if (rc == RRL_OK && r.damaged) rc = say_run(&r, at);
done:
    rrl_record_free(&record);
    free(path);
    free(r.records);
    return rc;
}

/* base/seed-S.work: what its store was made in, of which nothing is missing once the store is there. */
static rrl_status repair_work(rrl_repair *out, const char *path, bool dry) {
    rrl_status rc = RRL_OK;
    rrl_buffer store = {0};
    RRL_GOTO(rrl_buffer_printf(&store, "%.*s.h5", (int)(strrchr(path, '.') - path), path));
    if (!rrl_file_exists(store.data)) rc = repair_run(out, path, dry);
done:
    rrl_buffer_free(&store);
    return rc;
}

static rrl_status repair_base(rrl_repair *out, const char *study_dir, bool dry) {
    rrl_status rc = RRL_OK;
    char *base = NULL, *path = NULL, **names = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&base, study_dir, "base"));
    if (rrl_dir_exists(base)) RRL_GOTO(rrl_dir_list(&names, &n, base));
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(names[i], '.');
        free(path);
        path = NULL;
        RRL_GOTO(rrl_path_join(&path, base, names[i]));
        if (dot && strcmp(dot, ".h5") == 0) RRL_GOTO(repair_store(out, base, names[i], dry));
        if (dot && strcmp(dot, ".work") == 0) RRL_GOTO(repair_work(out, path, dry));
    }
done:
    free(base);
    free(path);
    rrl_names_free(&names, n);
    return rc;
}

static rrl_status repair_all(rrl_repair *r, const char *dir, bool dry) {
    rrl_status rc = RRL_OK;
    rrl_condition_state *states = NULL;
    int64_t n = 0;
    char *plan = NULL;
    RRL_GOTO(rrl_path_join(&plan, dir, "study.json"));
    if (!rrl_file_exists(plan) && has_files(dir)) {
        rc = repair_run(r, dir, dry);
        goto done;
    }
    RRL_GOTO(rrl_study_state(&states, &n, dir));
    for (int64_t i = 0; i < n; i++) RRL_GOTO(repair_run(r, states[i].dir, dry));
    RRL_GOTO(repair_base(r, dir, dry));
done:
    rrl_study_state_free(&states, n);
    free(plan);
    return rc;
}

rrl_status rrl_repair_folder(rrl_repair *r, const char *dir, bool dry, bool clean) {
    RRL_TRY(repair_all(r, dir, dry));
    return rrl_leftovers(&r->text, &r->left_over, dir, clean && !dry);
}

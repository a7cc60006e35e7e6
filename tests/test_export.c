/* rrl export and rrl verify: what goes into an archive and what does not; the same bytes twice; and an archive in
 * which a byte, a file, a name or a kind of entry was changed is found out, with the file's name. */
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "check.h"
#include "program.h"
#include "record/record.h"
#include "report/archive.h"
#include "report/event_file.h"

static char folder[PROGRAM_PATH];

static const char *in(const char *name) {
    static char path[8][PROGRAM_PATH + 100];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* --- a study of two conditions, of which one failed */

#define RUN "study/flip/level-0.2/seed-7/baseline"

static void put(const char *name, const char *text) {
    char *parent = NULL;
    CHECK_OK(rrl_path_parent(&parent, in(name)));
    CHECK_OK(rrl_dir_make(parent));
    CHECK_OK(rrl_file_publish(in(name), text, strlen(text)));
    free(parent);
}

static rrl_group *group(void) {
    rrl_group *g = NULL;
    CHECK_OK(rrl_group_create(&g, 2, 0));
    CHECK_OK(rrl_group_set_members(g, 1));
    for (int i = 0; i < 2; i++) {
        g->rows[i].n_text = 8;
        g->rows[i].n_answer = i ? -1 : 1;
        g->rows[i].correct = i ? 0 : 1;
        g->rows[i].reward = i ? NAN : 0.2F;
        g->rows[i].disagreement = 0.1F;
        g->verdicts[i] = (rrl_verdict){.clean = 1, .reward = i ? NAN : 0.2F, .confidence = 1, .available = !i,
                                       .corrupted = i};
    }
    g->head.n_text = 17;
    CHECK_OK(rrl_strdup(&g->text, "say \"12\"1" "a \xc3\xa9\n\tbc"));
    return g;
}

static void write_record(const char *dir) {
    static rrl_question rows[] = {{(char *)"id-1", (char *)"What?", (char *)"12", (char *)"{}", (char *)"", 0}};
    static char key[] = "class";
    rrl_member_config member = {.corruption = {.kind = RRL_CORRUPT_FLIP, .probability = 0.2, .seed = 9, .bias_key = key,
                                               .bias_value = key}};
    rrl_verifier_config verifier = {.members = &member, .n_members = 1};
    rrl_questions q = {.rows = rows, .n = 1};
    rrl_record_header h = {.execution_kind = "evaluation", .arm = "flip", .method = "baseline", .numeric_path = "f32",
                           .digest = "d", .config_yaml = "seed: 7\n", .provenance_json = "{}", .model_digest = "m",
                           .parser_version = "1", .level = 0.2, .seed = 7, .verifier = &verifier};
    rrl_recorder *r = NULL;
    rrl_group *groups[] = {group()};
    CHECK_OK(rrl_recorder_open(&r, dir, &h, 10, 0));
    CHECK_OK(rrl_recorder_evaluation(r, "test", &q, groups, 1, NULL, 0));
    CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
}

static void make_study(void) {
    put("study/study.json",
        "{\"version\": 1, \"digest\": \"d\", \"config\": \"seed: 7\\n\", \"conditions\": [\n"
        "{\"arm\": \"flip\", \"level\": 0.2, \"seed\": 7, \"method\": \"baseline\", \"dir\": "
        "\"flip/level-0.2/seed-7/baseline\"},\n"
        "{\"arm\": \"flip\", \"level\": 0.2, \"seed\": 7, \"method\": \"robust\", \"dir\": "
        "\"flip/level-0.2/seed-7/robust\"}]}\n");
    CHECK_OK(rrl_dir_make(in(RUN)));
    write_record(in(RUN));
    put(RUN "/config.yaml", "seed: 7\n");
    put(RUN "/adapter/adapter_model.safetensors", "weights");
    put(RUN "/adapter/adapter_config.json", "{}");
    put(RUN "/checkpoints/step-00000001/tensors.safetensors", "weights");
    put(RUN "/lock", "{}");
    put(RUN "/run.h5.12.tmp", "half");
    put("study/model.safetensors", "weights");
    put("study/old.evidence.tar", "tar");
    put("study/report/report.md", "# Report\n");
    put("study/report/empty.csv", "");
    CHECK_EQ_INT(symlink("/etc/passwd", in("study/link")), 0);
}

/* --- reading archives without our code */

typedef struct {
    char name[200];
    char *bytes;
    size_t n;
} member;

static int read_members(member *m, int most, const char *path) {
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    int n = 0;
    archive_read_support_format_tar(a);
    if (!CHECK_EQ_INT(archive_read_open_filename(a, path, 10240), ARCHIVE_OK)) return 0;
    while (n < most && archive_read_next_header(a, &e) == ARCHIVE_OK) {
        snprintf(m[n].name, sizeof m[n].name, "%s", archive_entry_pathname(e));
        m[n].n = (size_t)archive_entry_size(e);
        m[n].bytes = calloc(m[n].n + 1, 1);
        CHECK_EQ_INT(archive_read_data(a, m[n].bytes, m[n].n), (long long)m[n].n);
        CHECK_EQ_INT(archive_entry_mtime(e), 0);
        CHECK_EQ_INT(archive_entry_uid(e), 0);
        n++;
    }
    archive_read_free(a);
    return n;
}

static void free_members(member *m, int n) {
    for (int i = 0; i < n; i++) free(m[i].bytes);
}

static const member *find(const member *m, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(m[i].name, name) == 0) return &m[i];
    return NULL;
}

enum { MOST = 40 };

static void test_content(void) {
    static const char *const INSIDE[] = {"study/MANIFEST.sha256", "study/EVIDENCE.json", "study/study.json",
                                         RUN "/run.h5", RUN "/config.yaml", "study/report/report.md",
                                         "study/report/empty.csv"};
    member m[MOST];
    rrl_archive_made made = {0};
    rrl_archive_check c = {0};
    CHECK_OK(rrl_archive_write(&made, in("study"), NULL, false));
    CHECK_EQ_STR(strrchr(made.path, '/'), "/study.evidence.tar");
    int n = read_members(m, MOST, made.path);
    CHECK_EQ_INT(n, sizeof INSIDE / sizeof *INSIDE);
    for (size_t i = 0; i < sizeof INSIDE / sizeof *INSIDE; i++)
        if (!CHECK(find(m, n, INSIDE[i]) != NULL)) fprintf(stderr, "  %s\n", INSIDE[i]);
    CHECK_EQ_STR(m[0].name, "study/MANIFEST.sha256");
    CHECK_EQ_INT(program_count(m[0].bytes, "\n"), n - 1);
    const member *summary = find(m, n, "study/EVIDENCE.json");
    cJSON *json = NULL;
    if (summary && CHECK_OK(rrl_json_parse(&json, summary->bytes, summary->n, "EVIDENCE.json"))) {
        const cJSON *conditions = cJSON_GetObjectItem(json, "conditions");
        CHECK_EQ_INT(cJSON_GetArraySize(conditions), 2);
        CHECK_EQ_STR(cJSON_GetObjectItem(cJSON_GetArrayItem(conditions, 1), "dir")->valuestring,
                     "flip/level-0.2/seed-7/robust");
        CHECK(cJSON_IsFalse(cJSON_GetObjectItem(json, "weights")));
    }
    cJSON_Delete(json);
    free_members(m, n);

    CHECK_OK(rrl_archive_verify(&c, made.path));
    if (!CHECK_EQ_INT(c.problems, 0)) fputs(c.text.data, stderr);
    CHECK_EQ_INT(c.files, made.files);
    CHECK_EQ_INT(c.bytes, made.bytes);
    CHECK_EQ_STR(c.manifest, made.manifest);
    rrl_archive_check_free(&c);
    rrl_archive_made_free(&made);
}

/* What coreutils and tar say of it. */
static void test_sha256sum(void) {
    char command[4 * PROGRAM_PATH];
    snprintf(command, sizeof command, "cd '%s' && mkdir out && tar xf study.evidence.tar -C out && cd out/study && "
             "sha256sum -c --quiet --strict MANIFEST.sha256 >&2", folder);
    CHECK_EQ_INT(system(command), 0);
}

static void test_weights(void) {
    member m[MOST];
    rrl_archive_made made = {0};
    CHECK_OK(rrl_archive_write(&made, in("study"), in("weights.tar"), true));
    int n = read_members(m, MOST, made.path);
    CHECK(find(m, n, RUN "/adapter/adapter_model.safetensors") != NULL);
    CHECK(find(m, n, RUN "/checkpoints/step-00000001/tensors.safetensors") == NULL);
    free_members(m, n);
    rrl_archive_made_free(&made);
    CHECK_STATUS(rrl_archive_write(&made, in("study/report"), NULL, false), RRL_ERR_DATA);
    CHECK_STATUS(rrl_archive_write(&made, in("nowhere"), NULL, false), RRL_ERR_DATA);
}

static void test_same_bytes(void) {
    uint8_t a[RRL_SHA256_BYTES], b[RRL_SHA256_BYTES];
    rrl_archive_made made = {0};
    CHECK_OK(rrl_sha256_file(a, in("study.evidence.tar")));
    put("study/report/report.md", "# Report\n"); /* another time and inode, the same content */
    CHECK_OK(rrl_archive_write(&made, in("study/../study/"), NULL, false));
    CHECK_OK(rrl_sha256_file(b, in("study.evidence.tar")));
    CHECK(memcmp(a, b, sizeof a) == 0);
    rrl_archive_made_free(&made);
}

/* --- tampering */

typedef struct {
    const char *what;
    const char *drop;              /* leave this entry out */
    const char *add, *content;     /* one more entry at the end */
    int type;                      /* of it: 0 = a file, else AE_IFLNK, AE_IFDIR */
    const char *rename, *to;       /* another name for an entry */
    const char *change;            /* another first byte in this entry */
    int problems;
    const char *says[2];
} tampering;

#define RUN_H5 RUN "/run.h5"
static const tampering CASES[] = {
    {.what = "nothing", .problems = 0},
    {.what = "a byte", .change = RUN_H5, .problems = 1, .says = {"changed: flip/level-0.2/seed-7/baseline/run.h5\n"}},
    {.what = "missing", .drop = RUN_H5, .problems = 1, .says = {"missing: flip/level-0.2/seed-7/baseline/run.h5\n"}},
    {.what = "extra", .add = "study/more.txt", .content = "x", .problems = 1,
     .says = {"extra, not in the manifest: more.txt\n"}},
    {.what = "twice", .add = "study/report/report.md", .content = "y", .problems = 1,
     .says = {"twice in the archive: report/report.md\n"}},
    {.what = "parent", .add = "study/../../etc/cron", .content = "x", .problems = 1,
     .says = {"leads out of the archive's folder: study/../../etc/cron\n"}},
    {.what = "absolute", .add = "/etc/cron", .content = "x", .problems = 1,
     .says = {"leads out of the archive's folder: /etc/cron\n"}},
    {.what = "beside", .add = "studyx/a", .content = "x", .problems = 1,
     .says = {"outside the archive's folder: studyx/a\n"}},
    {.what = "link", .drop = "study/report/report.md", .add = "study/report/report.md", .content = "/etc/passwd",
     .type = AE_IFLNK, .problems = 2,
     .says = {"is no plain file: study/report/report.md\n", "missing: report/report.md\n"}},
    {.what = "folder", .add = "study/sub", .type = AE_IFDIR, .problems = 1, .says = {"study/sub"}},
    {.what = "another name", .rename = RUN_H5, .to = RUN "/walk.h5", .problems = 2,
     .says = {"extra, not in the manifest: flip/level-0.2/seed-7/baseline/walk.h5\n",
              "missing: flip/level-0.2/seed-7/baseline/run.h5\n"}},
    {.what = "a name to frighten", .add = "study/\033[2Ja", .content = "x", .problems = 1, .says = {"study/?[2Ja\n"}},
    {.what = "no manifest", .drop = "study/MANIFEST.sha256", .problems = 1, .says = {"no evidence archive"}},
    {.what = "an edited manifest", .change = "study/MANIFEST.sha256", .problems = 1,
     .says = {"changed: EVIDENCE.json\n"}},
};

static void add_entry(struct archive *a, const char *name, const char *bytes, size_t n, int type) {
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, name);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_filetype(e, type ? (unsigned)type : AE_IFREG);
    if (type == AE_IFLNK) archive_entry_set_symlink(e, bytes);
    archive_entry_set_size(e, type ? 0 : (int64_t)n);
    CHECK(archive_write_header(a, e) >= ARCHIVE_WARN);
    if (!type && n) CHECK_EQ_INT(archive_write_data(a, bytes, n), (long long)n);
    archive_entry_free(e);
}

static void tamper(const char *to, const tampering *t) {
    member m[MOST];
    int n = read_members(m, MOST, in("study.evidence.tar"));
    struct archive *a = archive_write_new();
    archive_write_set_format_pax_restricted(a);
    CHECK_EQ_INT(archive_write_open_filename(a, to), ARCHIVE_OK);
    for (int i = 0; i < n; i++) {
        if (t->drop && strcmp(m[i].name, t->drop) == 0) continue;
        /* a digit of the first digest becomes another one, a first byte of a file another byte */
        if (t->change && strcmp(m[i].name, t->change) == 0) m[i].bytes[0] = m[i].bytes[0] == '1' ? '2' : '1';
        add_entry(a, t->rename && strcmp(m[i].name, t->rename) == 0 ? t->to : m[i].name, m[i].bytes, m[i].n, 0);
    }
    if (t->add) add_entry(a, t->add, t->content, t->content ? strlen(t->content) : 0, t->type);
    archive_write_close(a);
    archive_write_free(a);
    free_members(m, n);
}

static void test_tampering(void) {
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const tampering *t = &CASES[i];
        rrl_archive_check c = {0};
        tamper(in("tampered.tar"), t);
        if (!CHECK_OK(rrl_archive_verify(&c, in("tampered.tar")))) continue;
        bool ok = CHECK_EQ_INT(c.problems, t->problems);
        for (int k = 0; k < 2 && t->says[k]; k++) ok = CHECK(c.text.data && strstr(c.text.data, t->says[k])) && ok;
        if (!ok) fprintf(stderr, "  case \"%s\" says\n%s", t->what, c.text.data ? c.text.data : "(nothing)\n");
        rrl_archive_check_free(&c);
    }
}

/* Cut anywhere it is noticed, and every byte of the middle of a record too. */
static void test_cut(void) {
    struct stat st;
    char *bytes = NULL;
    size_t n = 0;
    rrl_archive_check c = {0};
    CHECK_OK(rrl_file_read(&bytes, &n, in("study.evidence.tar"), 1 << 24));
    CHECK_EQ_INT(stat(in("study.evidence.tar"), &st), 0);
    for (size_t keep = 0; keep + 4096 < n; keep += 1531) {
        CHECK_OK(rrl_file_publish(in("cut.tar"), bytes, keep));
        CHECK_OK(rrl_archive_verify(&c, in("cut.tar")));
        CHECK(c.problems > 0);
        rrl_archive_check_free(&c);
    }
    free(bytes);
    CHECK_STATUS(rrl_archive_verify(&c, in("none.tar")), RRL_ERR_DATA);
}

static void test_safe_path(void) {
    static const char *const GOOD[] = {"a", "a/b.h5", "..a/b..", "a b/\xc3\xa9"};
    static const char *const BAD[] = {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\nb", "a\\b"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) CHECK(rrl_archive_safe_path(GOOD[i]));
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) CHECK(!rrl_archive_safe_path(BAD[i]));
}

/* --- generations */

static void test_generations(void) {
    rrl_generations_made made = {0};
    char *text = NULL;
    size_t n = 0;
    CHECK_OK(rrl_generations_write(&made, in("study"), in("g.jsonl")));
    CHECK_EQ_INT(made.lines, 2);
    CHECK_EQ_INT(made.records, 1);
    CHECK(made.left_out.data && strstr(made.left_out.data, "flip/level-0.2/seed-7/robust: ") != NULL);
    rrl_generations_made_free(&made);
    if (!CHECK_OK(rrl_file_read(&text, &n, in("g.jsonl"), 1 << 20))) return;
    static const char FIRST[] =
        "{\"example_id\": \"id-1\", \"question\": \"What?\", \"reference\": \"12\", \"response\": \"say \\\"12\\\"\", "
        "\"extracted_answer\": \"1\", \"reward\": 0.2, \"correct\": true, ";
    CHECK(strncmp(text, FIRST, strlen(FIRST)) == 0);
    const char *second = strchr(text, '\n');
    static const char MISSING[] = "\"extracted_answer\": null, \"reward\": null, \"correct\": false, ";
    if (CHECK(second != NULL))
        CHECK(strstr(second, MISSING) != NULL && strstr(second, "\"a \xc3\xa9\\n\\tbc\"") != NULL);
    cJSON *json = NULL;
    if (CHECK_OK(rrl_json_parse(&json, text, (size_t)(second - text), "g.jsonl"))) {
        const cJSON *v = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "verdicts"), 0);
        CHECK_EQ_STR(cJSON_GetObjectItem(json, "method")->valuestring, "baseline");
        CHECK_EQ_INT(cJSON_GetObjectItem(json, "seed")->valuedouble, 7);
        CHECK_NEAR(cJSON_GetObjectItem(json, "corruption_level")->valuedouble, 0.2, 0);
        CHECK_EQ_STR(cJSON_GetObjectItem(json, "split")->valuestring, "test");
        CHECK_NEAR(cJSON_GetObjectItem(v, "reward")->valuedouble, 0.2, 0);
        CHECK_EQ_STR(cJSON_GetObjectItem(v, "corruption")->valuestring, "flip");
    }
    cJSON_Delete(json);
    free(text);
}

static void test_program(void) {
    program_end e = {0};
    program_run(&e, in("p"), "export %s", in("study"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "no weights") != NULL);
    program_end_free(&e);
    program_run(&e, in("p"), "verify %s", in("study.evidence.tar"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "as the manifest says") != NULL);
    program_end_free(&e);
    tamper(in("tampered.tar"), &CASES[1]);
    program_run(&e, in("p"), "verify %s", in("tampered.tar"));
    CHECK_EQ_INT(e.code, 3);
    CHECK(strstr(e.out, "changed: flip/level-0.2/seed-7/baseline/run.h5") != NULL);
    CHECK(strstr(e.err, "1 problem; it is not what was exported") != NULL);
    program_end_free(&e);
    program_run(&e, in("p"), "export %s --out %s", in("study"), in("nowhere/p.tar")); /* says why */
    CHECK_EQ_INT(e.code, 1);
    CHECK(strstr(e.err, "No such file or directory") != NULL);
    program_end_free(&e);
    program_run(&e, in("p"), "export %s --jsonl --out %s", in("study"), in("p.jsonl"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "2 completions of 1 runs") != NULL && strstr(e.out, "without a record:") != NULL);
    program_end_free(&e);
}

/* --- event files */

static uint64_t number(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static uint32_t masked(const unsigned char *p, size_t n) {
    uint32_t crc = rrl_crc32c(p, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

/* CRC-32C of RFC 3720, appendix B.4; the events of a file by their bytes, laid out as the package tensorboard
 * 2.21 does (a real study's event files were loaded with it). */
static void test_event_file(void) {
    static const unsigned char SCALAR[] = {9,    0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 16,  0xAC, 2,   42,  17,  10,  15, 10,
                                           8,    't', 'r', 'a', 'i', 'n', '/', 'k', 'l', 21, 0, 0, 0, 0x3F};
    unsigned char zeros[32] = {0};
    rrl_buffer b = {0};
    CHECK_EQ_INT(rrl_crc32c("123456789", 9), 0xE3069283);
    CHECK_EQ_INT(rrl_crc32c(zeros, sizeof zeros), 0x8A9136AA);
    CHECK_OK(rrl_event_file_begin(&b, 1.5));
    size_t first = b.len;
    CHECK_OK(rrl_event_file_scalar(&b, 1.5, 300, "train/kl", 0.5));
    CHECK_EQ_INT(first, 23 + 13 + 4);
    CHECK(first == 40 && memcmp(b.data + 23, "brain.Event:2", 13) == 0);
    const unsigned char *p = (const unsigned char *)b.data + first;
    uint64_t n = number(p, 8);
    CHECK_EQ_INT(number(p + 8, 4), masked(p, 8));
    if (CHECK_EQ_INT(n, sizeof SCALAR) && CHECK_EQ_INT(first + 16 + n, b.len)) {
        CHECK(memcmp(p + 12, SCALAR, sizeof SCALAR) == 0);
        CHECK_EQ_INT(number(p + 12 + n, 4), masked(p + 12, n));
    }
    rrl_buffer_free(&b);
}

/* One file a run, below the folder it has in the study; a condition without a record is named. */
static void test_events(void) {
    program_end e = {0};
    program_run(&e, in("log"), "export %s --tensorboard --out %s", in("study"), in("events"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "flip/level-0.2/seed-7/robust: ") != NULL && strstr(e.out, " scalars of 1 runs\n") != NULL);
    CHECK(program_exists(in("events/flip/level-0.2/seed-7/baseline/events.out.tfevents.0.rrl")));
    program_end_free(&e);
    program_run(&e, in("log"), "export %s --tensorboard --jsonl", in("study"));
    CHECK_EQ_INT(e.code, 2);
    program_end_free(&e);
}

int main(void) {
    program_folder(folder, "export");
    make_study();
    test_safe_path();
    test_content();
    test_sha256sum();
    test_weights();
    test_same_bytes();
    test_tampering();
    test_cut();
    test_generations();
    test_program();
    test_event_file();
    test_events();
    if (!check_failures) program_remove(folder);
    return CHECK_DONE();
}

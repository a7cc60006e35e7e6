/* Files: whole reads, publishing under every fault, folders and paths. */
#include "base/files.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "check.h"

static char folder[] = "/tmp/rrl_test_files_XXXXXX";
static char path[256]; /* <folder>/file */

static void check_content(const char *file, const char *want) {
    char *text = NULL;
    size_t len = 0;
    if (!CHECK_OK(rrl_file_read(&text, &len, file, 1 << 20))) return;
    CHECK_EQ_STR(text, want);
    CHECK_EQ_INT(len, strlen(want));
    free(text);
}

/* How many names of the folder end in .tmp. */
static int count_tmp(void) {
    char **names = NULL;
    size_t n = 0;
    int count = 0;
    CHECK_OK(rrl_dir_list(&names, &n, folder));
    for (size_t i = 0; i < n; i++)
        count += strlen(names[i]) > 4 && strcmp(names[i] + strlen(names[i]) - 4, ".tmp") == 0;
    rrl_names_free(&names, n);
    return count;
}

static void test_read(void) {
    char *text = NULL;
    size_t len = 9;
    CHECK_STATUS(rrl_file_read(&text, &len, path, 10), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), path) != NULL);
    CHECK_STATUS(rrl_file_read(&text, &len, folder, 10), RRL_ERR_IO);
    CHECK(text == NULL && len == 9);

    CHECK_OK(rrl_file_publish(path, "0123456789", 10));
    CHECK_STATUS(rrl_file_read(&text, &len, path, 9), RRL_ERR_DATA);
    CHECK_OK(rrl_file_read(&text, &len, path, 10));
    CHECK_EQ_STR(text, "0123456789");
    free(text);
    CHECK_OK(rrl_file_publish(path, NULL, 0));
    check_content(path, "");
    CHECK_OK(rrl_file_publish(path, "a\0b", 3));
    CHECK_OK(rrl_file_read(&text, &len, path, 10));
    CHECK(len == 3 && memcmp(text, "a\0b", 4) == 0);
    free(text);

    enum { BIG = 300001 }; /* more than one block */
    char *big = malloc(BIG);
    for (int i = 0; i < BIG; i++) big[i] = (char)(i * 7 + i / 256);
    CHECK_OK(rrl_file_publish(path, big, BIG));
    CHECK_OK(rrl_file_read(&text, &len, path, BIG));
    CHECK(len == BIG && memcmp(text, big, BIG) == 0);
    uint8_t of_file[RRL_SHA256_BYTES], of_bytes[RRL_SHA256_BYTES];
    CHECK_OK(rrl_sha256_file(of_file, path));
    CHECK_OK(rrl_sha256_of(of_bytes, big, BIG));
    CHECK(memcmp(of_file, of_bytes, RRL_SHA256_BYTES) == 0);
    free(text);
    free(big);
}

static void test_create(void) {
    CHECK(unlink(path) == 0);
    CHECK(!rrl_file_exists(path));
    CHECK_OK(rrl_file_create(path, "mine", 4));
    CHECK_STATUS(rrl_file_create(path, "other", 5), RRL_ERR_BUSY);
    check_content(path, "mine");
    CHECK(rrl_file_exists(path) && !rrl_dir_exists(path));
    CHECK(rrl_dir_exists(folder) && !rrl_file_exists(folder));
    struct stat st;
    mode_t mask = umask(022);
    umask(mask);
    CHECK(stat(path, &st) == 0);
    CHECK_EQ_INT(st.st_mode & 0777, 0666 & ~mask);
    CHECK_EQ_INT(st.st_nlink, 1);
    CHECK_EQ_INT(count_tmp(), 0);
}

/* Many processes create one file: one of them wins. */
static void test_create_race(void) {
    enum { CHILDREN = 8 };
    int made = 0;
    unlink(path);
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0) {
            const char text = (char)('0' + i);
            rrl_status rc = rrl_file_create(path, &text, 1);
            _exit(rc == RRL_OK ? 0 : rc == RRL_ERR_BUSY ? 1 : 2);
        }
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        wait(&status);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        made += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    CHECK_EQ_INT(made, 1);
    CHECK_EQ_INT(count_tmp(), 0);
}

static void test_publish_tmp(void) {
    char tmp[300];
    snprintf(tmp, sizeof tmp, "%s.mine", path);
    CHECK_OK(rrl_file_publish(tmp, "finished", 8));
    CHECK_OK(rrl_file_publish_tmp(tmp, path));
    check_content(path, "finished");
    CHECK(!rrl_file_exists(tmp));
    CHECK_STATUS(rrl_file_publish_tmp(tmp, path), RRL_ERR_IO);
}

static void test_append(void) {
    unlink(path);
    CHECK_OK(rrl_file_append(path, "one\n", 4));
    CHECK_OK(rrl_file_append(path, "two\n", 4));
    check_content(path, "one\ntwo\n");
    CHECK_STATUS(rrl_file_append(folder, "x", 1), RRL_ERR_IO);
}

static void test_folders(void) {
    char deep[300], below[320];
    snprintf(deep, sizeof deep, "%s/a/b//c", folder);
    CHECK_OK(rrl_dir_make(deep));
    CHECK_OK(rrl_dir_make(deep));
    CHECK(rrl_dir_exists(deep));
    snprintf(below, sizeof below, "%s/d", path);
    CHECK_STATUS(rrl_dir_make(below), RRL_ERR_IO); /* a file is in the way */
    CHECK_STATUS(rrl_dir_make(path), RRL_ERR_IO);
    CHECK(strstr(rrl_error_message(), "a file of this name") != NULL);

    char **names = NULL;
    size_t n = 0;
    CHECK_OK(rrl_dir_list(&names, &n, deep));
    CHECK_EQ_INT(n, 0);
    rrl_names_free(&names, n);
    static const char *const FILES[] = {"b10", "B", "a", "b9"};
    for (int i = 0; i < 4; i++) {
        snprintf(below, sizeof below, "%s/%s", deep, FILES[i]);
        CHECK_OK(rrl_file_publish(below, "", 0));
    }
    CHECK_OK(rrl_dir_list(&names, &n, deep));
    if (CHECK_EQ_INT(n, 4)) {
        CHECK_EQ_STR(names[0], "B");
        CHECK_EQ_STR(names[1], "a");
        CHECK_EQ_STR(names[2], "b10");
        CHECK_EQ_STR(names[3], "b9");
    }
    rrl_names_free(&names, n);
    CHECK(names == NULL);
    snprintf(below, sizeof below, "%s/none", deep);
    CHECK_STATUS(rrl_dir_list(&names, &n, below), RRL_ERR_IO);
}

static void test_paths(void) {
    static const struct {
        const char *a, *b, *want;
    } JOINS[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},
                 {"a", "/b", "/b"}, {"", "b", "b"},     {NULL, "b", "b"}};
    for (size_t i = 0; i < sizeof JOINS / sizeof *JOINS; i++) {
        char *out = NULL;
        CHECK_OK(rrl_path_join(&out, JOINS[i].a, JOINS[i].b));
        CHECK_EQ_STR(out, JOINS[i].want);
        free(out);
    }
    static const struct {
        const char *path, *want;
    } PARENTS[] = {{"a/b", "a"},  {"/a", "/"},   {"a", "."},   {"", "."},         {"/", "/"},
                   {"a/b/", "a"}, {"a//b", "a"}, {"//b", "/"}, {"/a/b/c", "/a/b"}};
    for (size_t i = 0; i < sizeof PARENTS / sizeof *PARENTS; i++) {
        char *out = NULL;
        CHECK_OK(rrl_path_parent(&out, PARENTS[i].path));
        CHECK_EQ_STR(out, PARENTS[i].want);
        free(out);
    }
}

/* True in a build with fault points. */
static int has_faults(void) {
    setenv("RRL_FAULT", "*:probe:1:fail", 1);
    int yes = rrl_fault("probe");
    unsetenv("RRL_FAULT");
    return yes;
}

static void test_fault_spec(void) {
    setenv("RRL_FAULT", "1:here:2:full", 1);
    CHECK(!rrl_fault("here")); /* rank 0 */
    CHECK(!rrl_fault("here"));
    rrl_fault_rank(1);
    CHECK(!rrl_fault("elsewhere"));
    CHECK(!rrl_fault("here"));
    errno = 0;
    CHECK(rrl_fault("here"));
    CHECK_EQ_INT(errno, ENOSPC);
    CHECK(!rrl_fault("here")); /* that visit only */
    rrl_fault_rank(0);
    setenv("RRL_FAULT", "*:here:1:fail", 1); /* counts afresh */
    CHECK(rrl_fault("here"));
    CHECK_EQ_INT(errno, EIO);
    setenv("RRL_FAULT", "nonsense", 1);
    CHECK(!rrl_fault("nonsense"));
    unsetenv("RRL_FAULT");
}

enum { ROUNDS = 2 };

/* What the child does: two rounds of the call under test. */
static rrl_status publish_twice(const char *file) {
    for (int i = 0; i < ROUNDS; i++) RRL_TRY(rrl_file_publish(file, "new content", 11));
    return RRL_OK;
}

static rrl_status create_both(const char *file) {
    char second[300];
    snprintf(second, sizeof second, "%s.second", file);
    RRL_TRY(rrl_file_create(second, "new content", 11));
    rrl_status rc = rrl_file_create(file, "new content", 11);
    return rc == RRL_ERR_BUSY ? RRL_OK : rc; /* the old one is there */
}

/* Fails visit 1, 2, ... of a site until a run meets no fault. After each the file is the old one or the new
 * one, whole, and only a killed process leaves a temporary file. */
static void loop_faults(rrl_status (*call)(const char *), const char *site, const char *kind) {
    int n = 1;
    for (; n < 20; n++) {
        CHECK_OK(rrl_file_publish(path, "old", 3));
        pid_t child = fork();
        if (child == 0) {
            char spec[64];
            snprintf(spec, sizeof spec, "*:%s:%d:%s", site, n, kind);
            setenv("RRL_FAULT", spec, 1);
            _exit(call(path) == RRL_OK ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        char *text = NULL;
        size_t len = 0;
        CHECK_OK(rrl_file_read(&text, &len, path, 100));
        int whole = text && (strcmp(text, "old") == 0 || strcmp(text, "new content") == 0);
        if (!CHECK(whole)) fprintf(stderr, "  %s:%d:%s left \"%s\"\n", site, n, kind, text ? text : "");
        free(text);
        int killed = strcmp(kind, "kill") == 0;
        CHECK(killed ? WIFSIGNALED(status) || WIFEXITED(status) : WIFEXITED(status));
        if (!killed) CHECK_EQ_INT(count_tmp(), 0);
        char command[600];
        snprintf(command, sizeof command, "rm -f %s/*.tmp %s.second", folder, path);
        CHECK(system(command) == 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    }
    if (!CHECK(n > 1 && n < 20)) fprintf(stderr, "  site %s was visited %d times\n", site, n - 1);
}

static void test_faults(void) {
    static const char *const KINDS[] = {"fail", "full", "kill"};
    static const char *const SITES[] = {"publish.open", "publish.write", "publish.fsync", "publish.rename",
                                        "publish.folder"};
    for (int k = 0; k < 3; k++) {
        for (int s = 0; s < 5; s++) loop_faults(publish_twice, SITES[s], KINDS[k]);
        loop_faults(create_both, "publish.link", KINDS[k]);
    }
    setenv("RRL_FAULT", "*:dir.make:1:full", 1);
    char dir[300];
    snprintf(dir, sizeof dir, "%s/faulty", folder);
    CHECK_STATUS(rrl_dir_make(dir), RRL_ERR_IO);
    setenv("RRL_FAULT", "*:append.write:1:full", 1);
    CHECK_STATUS(rrl_file_append(path, "x", 1), RRL_ERR_IO);
    unsetenv("RRL_FAULT");
}

int main(void) {
    if (!CHECK(mkdtemp(folder) != NULL)) return CHECK_DONE();
    snprintf(path, sizeof path, "%s/file", folder);
    test_read();
    test_create();
    test_create_race();
    test_publish_tmp();
    test_append();
    test_folders();
    test_paths();
    if (has_faults()) {
        test_fault_spec();
        test_faults();
    } else {
        fprintf(stderr, "built without RRL_FAULTS: the fault loop was not run\n");
    }
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
    return CHECK_DONE();
}

/* Files that are cut, altered or made to deceive: an error that says what is wrong, never a crash, and never
 * half a record presented as a whole one. */
#include <hdf5.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "record/record.h"
#include "record_case.h"

static char run_path[600], copy_path[600], want_digest[65];
static char *bytes;
static size_t n_bytes;

static void write_copy(const char *data, size_t n) {
    FILE *f = fopen(copy_path, "wb");
    if (CHECK(f != NULL)) {
        CHECK_EQ_INT(fwrite(data, 1, n, f), n);
        fclose(f);
    }
}

/* Reading must fail, with all of these words in one line. */
static void check_refused(const char *what, const char *word_a, const char *word_b) {
    rrl_record *r = NULL;
    rrl_status rc = rrl_record_read(&r, copy_path, 1);
    const char *said = rrl_error_message();
    if (rc != RRL_ERR_DATA || !strstr(said, word_a) || !strstr(said, word_b) || !strstr(said, copy_path) ||
        strchr(said, '\n'))
        CHECK_EQ_STR(said, what);
    CHECK(r == NULL);
    rrl_record_free(&r);
}

static void test_truncated(void) {
    char expected[40];
    snprintf(expected, sizeof expected, "expected %zu bytes", n_bytes);
    write_copy(bytes, n_bytes / 2);
    check_refused("half of a file", "truncated", expected);
    write_copy(bytes, n_bytes - 1);
    check_refused("the last byte gone", "truncated", expected);
    write_copy(bytes, 20);
    check_refused("20 bytes", "truncated", "found 20");
    write_copy(bytes, 0);
    check_refused("an empty file", "truncated", "found 0");
    write_copy("{}                                                              ", 64);
    check_refused("JSON", "not an HDF5 file", "");
    for (size_t n = 64; n < n_bytes; n += n_bytes / 40) {
        write_copy(bytes, n);
        check_refused("a part", "truncated", "expected");
    }
}

static void test_not_a_file(void) {
    unlink(copy_path);
    check_refused("nothing", "cannot be opened", "");
    CHECK_EQ_INT(mkfifo(copy_path, 0600), 0);
    check_refused("a pipe", "not a regular file", "");
    unlink(copy_path);
}

static void test_newer_superblock(void) {
    write_copy(bytes, n_bytes);
    FILE *f = fopen(copy_path, "r+b");
    fseek(f, 8, SEEK_SET);
    fputc(9, f);
    fclose(f);
    check_refused("a superblock of the future", "superblock version 9", "up to 3");
}

/* A bit here and there: whatever is read without an error must be what was written. Each try is a process of
 * its own, since a damaged file may crash the library itself. */
static void test_bits(void) {
    uint64_t state = 88172645463325252u;
    int refused = 0, crashed = 0, tries = 150;
    for (int i = 0; i < tries; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t at = state % n_bytes;
        char before = bytes[at];
        bytes[at] ^= (char)(1 << (state >> 32) % 8);
        write_copy(bytes, n_bytes);
        bytes[at] = before;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            char digest[65];
            if (rrl_record_digest(digest, copy_path) != RRL_OK) _exit(1);
            _exit(strcmp(digest, want_digest) == 0 ? 0 : 2);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        crashed += !WIFEXITED(status);
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 1;
        if (!CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 2))
            fprintf(stderr, "byte %zu altered: not seen\n", at);
    }
    CHECK(refused > tries / 4); /* the rest met unused bytes, or attributes that the digest leaves out */
    CHECK_EQ_INT(crashed, 0);
}

/* --- files altered through HDF5 */

static hid_t reopen(void) {
    write_copy(bytes, n_bytes);
    return H5Fopen(copy_path, H5F_ACC_RDWR, H5P_DEFAULT);
}

static void set_attribute(hid_t file, const char *name, int64_t value) {
    hid_t space = H5Screate(H5S_SCALAR);
    H5Adelete(file, name);
    hid_t a = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(a, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(a);
    H5Sclose(space);
}

/* A dataset of n rows of this type that holds no data. */
static void replace_dataset(hid_t file, const char *name, hid_t type, hsize_t n) {
    H5Ldelete(file, name, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &n, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk = 1024;
    H5Pset_chunk(create, 1, &chunk);
    hid_t ds = H5Dcreate2(file, name, type, space, H5P_DEFAULT, n > 1024 ? create : H5P_DEFAULT, H5P_DEFAULT);
    CHECK(ds >= 0);
    H5Dclose(ds);
    H5Pclose(create);
    H5Sclose(space);
}

static void test_versions(void) {
    hid_t f = reopen();
    set_attribute(f, "format_version", 7);
    H5Fclose(f);
    check_refused("a version of the future", "format version 7", "reads version 1");
    f = reopen();
    H5Adelete(f, "format");
    H5Fclose(f);
    check_refused("no format", "attribute format is missing", "");
    f = reopen();
    set_attribute(f, "part", 3);
    H5Fclose(f);
    check_refused("a part of another type", "attribute part is not of the expected type", "");
}

static void test_tables(void) {
    hid_t f = reopen();
    H5Ldelete(f, "verdicts", H5P_DEFAULT);
    H5Fclose(f);
    check_refused("a table gone", "dataset verdicts is missing", "");
    f = reopen();
    replace_dataset(f, "rollouts", H5T_STD_I32LE, 4);
    H5Fclose(f);
    check_refused("no compound", "rollouts", "");
    f = reopen();
    replace_dataset(f, "tokens", H5T_STD_I32LE, (hsize_t)1 << 40);
    H5Fclose(f);
    check_refused("4 TiB of tokens", "tokens claims", "holds only");
    f = reopen();
    replace_dataset(f, "tokens", H5T_STD_I32LE, 3);
    H5Fclose(f);
    check_refused("3 tokens", "tokens", "");
    f = reopen();
    hid_t row = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(row, "step", 0, H5T_STD_I64LE);
    replace_dataset(f, "training", row, 0);
    H5Tclose(row);
    H5Fclose(f);
    check_refused("a column gone", "table training has no column policy_version", "");
}

int main(void) {
    const char *dir = case_folder("hostile");
    if (!CHECK_OK(case_run(dir, 6, 3, 1, (case_change){.step = -1}))) return CHECK_DONE();
    snprintf(run_path, sizeof run_path, "%s/run.h5", dir);
    snprintf(copy_path, sizeof copy_path, "%s/copy.h5", dir);
    CHECK_OK(rrl_record_digest(want_digest, run_path));
    if (!CHECK_OK(rrl_file_read(&bytes, &n_bytes, run_path, (size_t)1 << 30))) return CHECK_DONE();
    test_truncated();
    test_not_a_file();
    test_newer_superblock();
    test_bits();
    test_versions();
    test_tables();
    free(bytes);
    return CHECK_DONE();
}

/* Inputs as files for functions that take a path. */
#define _GNU_SOURCE
#include "fuzz_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_NAMES = 4 };
static char folder[] = "/tmp/rrl-fuzz-XXXXXX", path[MOST_NAMES][128];
static int n_paths; /* files of the folder so far */

void fuzz_want(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz: does not hold: %s\n", what);
    abort();
}

static void write_all(int fd, const uint8_t *data, size_t size) {
    fuzz_want(fd >= 0, "a file for the input");
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done);
        fuzz_want(n > 0, "input written");
        done += (size_t)n;
    }
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static char name[64];
    static int fd = -1;
    if (fd >= 0) close(fd);
    fd = memfd_create("input", MFD_CLOEXEC);
    write_all(fd, data, size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return name;
}

static void remove_folder(void) {
    for (int i = 0; i < n_paths; i++) unlink(path[i]);
    rmdir(folder);
}

/* The path of a name in the folder, known at exit. */
static const char *place(const char *name) {
    char full[sizeof path[0]];
    if (n_paths == 0) {
        fuzz_want(mkdtemp(folder) != NULL, "a folder for the input");
        atexit(remove_folder);
    }
    snprintf(full, sizeof full, "%s/%s", folder, name);
    for (int i = 0; i < n_paths; i++)
        if (strcmp(path[i], full) == 0) return path[i];
    fuzz_want(n_paths < MOST_NAMES, "a name more");
    return strcpy(path[n_paths++], full);
}

const char *fuzz_folder(const char *name, const uint8_t *data, size_t size) {
    int fd = open(place(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    write_all(fd, data, size);
    close(fd);
    return folder;
}

void fuzz_link(const char *name, const char *target) {
    const char *at = place(name);
    unlink(at);
    fuzz_want(symlink(target, at) == 0, "a link to what the target needs");
}

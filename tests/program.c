/* Starts build/rrl as a user would: another process, its own outputs, its exit code. */
#define _GNU_SOURCE
#include "program.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORDS = 128, MOST_COMMAND = 8192 };
static const double WAIT_S = 60;

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

/* --- folders */

void program_folder(char folder[PROGRAM_PATH], const char *test) {
    snprintf(folder, PROGRAM_PATH, "%s/%s-XXXXXX", RRL_BINARY_DIR, test);
    if (!mkdtemp(folder)) give_up(folder);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void program_remove(const char *path) { nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS); }

bool program_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

bool program_has_below(const char *path, const char *suffix) {
    DIR *dir = opendir(path);
    bool found = false;
    const struct dirent *entry;
    while (dir && !found && (entry = readdir(dir))) {
        char below[PROGRAM_PATH];
        size_t n = strlen(entry->d_name), m = strlen(suffix);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below) continue;
        found = (n >= m && strcmp(entry->d_name + n - m, suffix) == 0) || program_has_below(below, suffix);
    }
    if (dir) closedir(dir);
    return found;
}

/* --- command lines */

/* Splits text in place. */
static int split(char *text, char *words[MOST_WORDS]) {
    int n = 0;
    for (char *p = text; *p && n < MOST_WORDS - 1;) {
        while (*p == ' ') p++;
        if (!*p) break;
        words[n++] = p;
        char *to = p;
        bool quoted = false;
        for (; *p && (quoted || *p != ' '); p++) {
            if (*p == '\'') quoted = !quoted;
            else *to++ = *p;
        }
        if (*p) p++;
        *to = 0;
    }
    words[n] = NULL;
    return n;
}

static bool is_environment(const char *word) {
    const char *p = word;
    while (isupper((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '_') p++;
    return p > word && *p == '=';
}

/* "a.b[0].c=..." */
static bool is_set(const char *word) {
    const char *p = word;
    while (islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '_' || *p == '.' || *p == '[' || *p == ']')
        p++;
    return p > word && *p == '=';
}

static void add(char **argv, int *n, char *word) {
    if (*n < MOST_WORDS - 1) argv[(*n)++] = word;
}

/* In the child: environment, argv, exec. */
static void become(char *command) {
    char *words[MOST_WORDS], *argv[MOST_WORDS + 1];
    int n = split(command, words), i = 0, to = 0;
    bool value = false; /* the word after an explicit --set */
    for (; i < n && is_environment(words[i]); i++) putenv(words[i]);
    if (i + 2 < n && strcmp(words[i], "mpirun") == 0)
        for (int k = 0; k < 3; k++) add(argv, &to, words[i++]);
    add(argv, &to, (char *)RRL_BINARY_DIR "/rrl");
    for (; i < n; i++) {
        if (is_set(words[i]) && !value) add(argv, &to, (char *)"--set");
        value = strcmp(words[i], "--set") == 0;
        add(argv, &to, words[i]);
    }
    argv[to] = NULL;
    /* one rank alone: Open MPI would start a helper process for it, which takes longer than most runs here */
    if (strcmp(argv[0], "mpirun") != 0) setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("LSAN_OPTIONS", "print_suppressions=0:suppressions=" RRL_SOURCE_DIR "/tests/lsan.supp", 0); /* a leak is an error */
    execvp(argv[0], argv);
    give_up(argv[0]);
}

static void redirect(const char *prefix, const char *suffix, int to) {
    char path[PROGRAM_PATH + 8];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || dup2(fd, to) < 0) give_up(path);
    close(fd);
}

pid_t program_start(const char *prefix, const char *command) {
    char copy[MOST_COMMAND];
    if (snprintf(copy, sizeof copy, "%s", command) >= (int)sizeof copy) give_up("a command line that long");
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) give_up("fork");
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    redirect("/dev/null", "", 0);
    redirect(prefix, ".out", 1);
    redirect(prefix, ".err", 2);
    become(copy);
    _exit(127);
}

static char *content(const char *prefix, const char *suffix) {
    char path[PROGRAM_PATH + 8], *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    FILE *in = fopen(path, "rb"), *out = open_memstream(&text, &n);
    for (int c; in && (c = fgetc(in)) != EOF;) fputc(c ? c : '?', out);
    if (in) fclose(in);
    fclose(out);
    return text;
}

void program_wait(program_end *e, pid_t process, const char *prefix, double seconds) {
    int st = 0;
    double until = program_clock() + seconds;
    struct rusage used = {0};
    pid_t r;
    while ((r = wait4(process, &st, WNOHANG, &used)) == 0 && program_clock() < until) program_sleep(0.005);
    e->peak_mib = (double)used.ru_maxrss / 1024;
    if (r == 0) {
        kill(process, SIGKILL);
        waitpid(process, &st, 0);
        e->code = PROGRAM_TIMED_OUT;
    } else {
        e->code = WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
    }
    e->out = content(prefix, ".out");
    e->err = content(prefix, ".err");
}

void program_run(program_end *e, const char *prefix, const char *format, ...) {
    char command[MOST_COMMAND];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    program_wait(e, program_start(prefix, command), prefix, WAIT_S);
}

void program_end_free(program_end *e) {
    free(e->out);
    free(e->err);
    *e = (program_end){0};
}

/* --- texts, processes, time */

int program_count(const char *text, const char *part) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) n++;
    return n;
}

int program_lines(const char *text, const char *part) {
    int n = 0;
    for (const char *p = text; p && *p; p = (p = strchr(p, '\n')) ? p + 1 : NULL)
        n += strncmp(p, part, strlen(part)) == 0;
    return n;
}

int program_children(pid_t *children, int n, pid_t parent) {
    char path[64];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *in = fopen(path, "r");
    while (in && found < n && fscanf(in, "%d", &children[found]) == 1) found++;
    if (in) fclose(in);
    return found;
}

void program_sleep(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

double program_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

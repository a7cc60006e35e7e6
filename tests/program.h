/* Running the whole program from a test: a command line as text, its exit code, what it printed, what it left behind.
 *
 * A command line is split at spaces; '...' keeps them. Words NAME=value in capitals at its front are environment; then
 * "mpirun -n N" may follow; then a command of rrl and its words, of which key=value is short for --set key=value. */
#ifndef RRL_TESTS_PROGRAM_H
#define RRL_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROGRAM_TIMED_OUT = -1000, PROGRAM_PATH = 512 };

typedef struct {
    int code; /* exit code; -signal if killed; PROGRAM_TIMED_OUT */
    char *out, *err;
    double peak_mib; /* resident memory at most */
} program_end;

/** A new folder for the test's files, below the build folder; and its removal with all that is in it. */
void program_folder(char folder[PROGRAM_PATH], const char *test);
void program_remove(const char *path);

/** Start the program, output to PREFIX.out and PREFIX.err. It ends with the test. Returns its process. */
pid_t program_start(const char *prefix, const char *command);
/** Wait for it, at most `seconds`; then it is killed. Free with program_end_free. */
void program_wait(program_end *e, pid_t process, const char *prefix, double seconds);
/** Both: format, start, wait up to a minute. */
void program_run(program_end *e, const char *prefix, const char *format, ...) __attribute__((format(printf, 3, 4)));
void program_end_free(program_end *e);

/** Times `part` stands in text; lines that begin with `part`. */
int program_count(const char *text, const char *part);
int program_lines(const char *text, const char *part);
/** Whether path is there, and whether any name below it ends like this. */
bool program_exists(const char *path);
bool program_has_below(const char *path, const char *suffix);
/** Processes whose parent is this one; their number, at most n. */
int program_children(pid_t *children, int n, pid_t parent);
void program_sleep(double seconds);
double program_clock(void);

#endif

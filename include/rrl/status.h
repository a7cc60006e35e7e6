/* Status codes, error messages and the three control macros of the project.
 *
 * What can fail returns rrl_status; results go through leading out arguments, written only on success. A message is
 * kept per thread like errno, so that a caller at the top prints one line; nothing below main.c prints errors. */
#ifndef RRL_STATUS_H
#define RRL_STATUS_H

#ifdef __FAST_MATH__
#error "NaN means missing here: do not compile with -ffast-math"
#endif

/* name, exit code of the program, text */
#define RRL_STATUS_LIST(X)                                                                                            \
    X(RRL_OK, 0, "success")                                                                                           \
    X(RRL_ERR_USAGE, 2, "command line is wrong")                                                                      \
    X(RRL_ERR_CONFIG, 2, "configuration is invalid")                                                                  \
    X(RRL_ERR_BUSY, 2, "output folder is in use")                                                                     \
    X(RRL_ERR_DATA, 3, "input data is invalid or missing")                                                            \
    X(RRL_ERR_REQUEUE, 4, "stopped with a checkpoint; run the same command again")                                    \
    X(RRL_ERR_NONFINITE, 5, "numbers are not finite")                                                                 \
    X(RRL_ERR_COMM, 6, "communication failed")                                                                        \
    X(RRL_ERR_IO, 1, "file could not be read or written")                                                             \
    X(RRL_ERR_NOMEM, 1, "memory is exhausted")                                                                        \
    X(RRL_ERR_RANGE, 1, "value is out of range")                                                                      \
    X(RRL_ERR_DEVICE, 1, "device failed")                                                                             \
    X(RRL_ERR_INTERNAL, 1, "internal error")                                                                          \
    X(RRL_ERR_STOPPED, 1, "stopped by a signal")

typedef enum {
#define X(name, code, text) name,
    RRL_STATUS_LIST(X)
#undef X
        RRL_STATUS_COUNT
} rrl_status;

/** Text of a status code; never NULL. */
const char *rrl_status_text(rrl_status rc);
/** Exit code of the program for a status (0 done, 2 usage or config, 3 data, 4 requeue, 5, 6, 1 other). */
int rrl_status_exit_code(rrl_status rc);

/** Store a message for this thread and return rc. Use through RRL_FAIL. */
rrl_status rrl_fail(rrl_status rc, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** Put "text: " before this thread's message and return rc; RRL_OK passes through untouched. */
rrl_status rrl_context(rrl_status rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** This thread's last message; "" if none. Valid until the next failure on this thread. */
const char *rrl_error_message(void);
/** Where it was raised, "file.c:123"; for --verbose and bug reports. */
const char *rrl_error_place(void);

/* The message names the thing, the place, what was expected and found, and what to do. One line, no newline. */
#define RRL_FAIL(rc_, ...) rrl_fail((rc_), __FILE__, __LINE__, __VA_ARGS__)
/* RRL_TRY returns on failure (nothing to clean up); RRL_GOTO jumps to `done:` with the local variable rc set. */
#define RRL_TRY(call)                                                                                                 \
    do {                                                                                                              \
        rrl_status try_rc_ = (call);                                                                                  \
        if (try_rc_ != RRL_OK) return try_rc_;                                                                        \
    } while (0)
#define RRL_GOTO(call)                                                                                                \
    do {                                                                                                              \
        rc = (call);                                                                                                  \
        if (rc != RRL_OK) goto done;                                                                                  \
    } while (0)

#endif

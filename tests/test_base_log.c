/* Log lines, and what a terminal shows: a pseudo-terminal stands for it. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"

/* All that is in a pipe or pseudo-terminal now. */
static void drain(char *out, size_t size, int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    size_t len = 0;
    ssize_t n;
    while (len + 1 < size && (n = read(fd, out + len, size - 1 - len)) > 0) len += (size_t)n;
    out[len] = 0;
}

/* The line without its time stamp, whose form is checked. */
static const char *after_ts(const char *line) {
    static const char FORM[] = "ts=dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; i < sizeof FORM - 1; i++) {
        int digit = line[i] >= '0' && line[i] <= '9';
        if (FORM[i] == 'd' ? !digit : line[i] != FORM[i]) return "(wrong time stamp)";
    }
    return line + sizeof FORM - 1;
}

static void test_lines(void) {
    int pipe_fd[2];
    char text[8192];
    rrl_log *log = NULL;
    CHECK(pipe(pipe_fd) == 0);
    CHECK_OK(rrl_log_open(&log, pipe_fd[1], RRL_LOG_INFO, 3));
    rrl_event(log, RRL_LOG_INFO, "start", "n=%d", 2);
    drain(text, sizeof text, pipe_fd[0]);
    CHECK_EQ_STR(after_ts(text), "level=info rank=3 event=start n=2\n");
    rrl_event(log, RRL_LOG_DEBUG, "hidden", "n=%d", 2);
    drain(text, sizeof text, pipe_fd[0]);
    CHECK_EQ_STR(text, "");

    rrl_log_run(log, "my run");
    rrl_log_role(log, "verifier");
    rrl_log_step(log, 12);
    rrl_event(log, RRL_LOG_ERROR, "bad", "file=%s message=%s\n", rrl_log_quoted("a\nb"),
              rrl_log_quoted("x=\"1\""));
    drain(text, sizeof text, pipe_fd[0]);
    CHECK_EQ_STR(after_ts(text),
                 "level=error run=\"my run\" role=verifier rank=3 step=12 event=bad file=\"a\\nb\" "
                 "message=\"x=\\\"1\\\"\" \n");
    rrl_log_run(log, NULL);
    rrl_log_role(log, NULL);
    rrl_log_step(log, -1);
    rrl_event(log, RRL_LOG_WARN, "end", "%s", "");
    drain(text, sizeof text, pipe_fd[0]);
    CHECK_EQ_STR(after_ts(text), "level=warn rank=3 event=end\n");
    rrl_log_close(&log);
    CHECK(log == NULL);
    rrl_log_close(&log);
    rrl_event(NULL, RRL_LOG_ERROR, "nothing", "x=%d", 1);
    rrl_log_run(NULL, "x");
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static void test_quoted(void) {
    CHECK_EQ_STR(rrl_log_quoted("plain/é"), "plain/é");
    CHECK_EQ_STR(rrl_log_quoted(""), "\"\"");
    CHECK_EQ_STR(rrl_log_quoted("a b"), "\"a b\"");
    static char huge[5000];
    memset(huge, ' ', sizeof huge - 1);
    const char *cut = rrl_log_quoted(huge);
    size_t n = strlen(cut);
    CHECK(n < 4000 && cut[0] == '"' && strcmp(cut + n - 4, "...\"") == 0);
}

static void *hundred_lines(void *log) {
    for (int i = 0; i < 100; i++) rrl_event(log, RRL_LOG_INFO, "tick", "i=%d", i);
    return NULL;
}

/* The run's own file gets INFO and above whatever the level of the terminal, whole lines from every thread.
 */
static void test_file(void) {
    const char *path = RRL_BINARY_DIR "/test_base_log.tmp";
    rrl_log *log = NULL;
    unlink(path);
    int null = open("/dev/null", O_WRONLY);
    CHECK_OK(rrl_log_open(&log, null, RRL_LOG_ERROR, 0));
    CHECK_STATUS(rrl_log_file(log, RRL_BINARY_DIR "/no/such/folder"), RRL_ERR_IO);
    CHECK_OK(rrl_log_file(log, path));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, hundred_lines, log) == 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    rrl_event(log, RRL_LOG_DEBUG, "not there", "x=1");
    CHECK_OK(rrl_log_file(log, NULL));
    rrl_event(log, RRL_LOG_INFO, "not there", "x=1");
    rrl_log_close(&log);
    close(null);

    char *text = NULL;
    size_t len = 0;
    CHECK_OK(rrl_file_read(&text, &len, path, 1 << 20));
    int lines = 0;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        CHECK(strncmp(after_ts(line), "level=info rank=0 event=tick i=", 31) == 0);
        lines++;
    }
    CHECK_EQ_INT(lines, 200);
    free(text);
    unlink(path);
}

static void test_progress(void) {
    rrl_progress *p = NULL;
    int kept = dup(STDERR_FILENO), master, slave;
    struct winsize size = {.ws_row = 24, .ws_col = 70};
    struct termios raw;
    char text[8192];
    CHECK_OK(rrl_progress_open(&p, "off", 10, 0));
    CHECK(p == NULL);
    rrl_progress_add(p, 1, "note");
    rrl_progress_close(&p);
    if (openpty(&master, &slave, NULL, NULL, &size) != 0) {
        fprintf(stderr, "no pseudo-terminal here: the progress bar was not tested\n");
        return;
    }
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);

    dup2(slave, STDERR_FILENO);
    rrl_status opened = rrl_progress_open(&p, "train", 10, 1);
    rrl_progress_add(p, 5, "loss 0.5");
    rrl_log *log = NULL;
    rrl_status logged = rrl_log_open(&log, STDERR_FILENO, RRL_LOG_WARN, 0);
    rrl_event(log, RRL_LOG_WARN, "slow", "ms=%d", 7);
    rrl_log_close(&log);
    rrl_progress_close(&p);
    dup2(kept, STDERR_FILENO);
    close(kept);

    CHECK_OK(opened);
    CHECK_OK(logged);
    drain(text, sizeof text, master);
    CHECK(strncmp(text, "\rtrain [....................] 0/10 ", 34) == 0);
    CHECK(strstr(text, "\r\033[Kts=") != NULL); /* a log line clears the bar */
    const char *last = strrchr(text, '\r');
    if (!CHECK(last && strncmp(last, "\rtrain [##########..........] 5/10 ", 34) == 0))
        fprintf(stderr, "%s\n", text);
    CHECK(last && strstr(last, "\033[K\n") != NULL);
    CHECK(last && strcspn(last + 1, "\033") < 70); /* narrower than the terminal */
    close(master);
    close(slave);
}

int main(void) {
    test_lines();
    test_quoted();
    test_file();
    test_progress();
    double t = rrl_clock();
    CHECK(rrl_clock() >= t);
    return CHECK_DONE();
}

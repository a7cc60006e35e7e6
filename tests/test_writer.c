/* The writer's thread: order, when it is ready, what is joined, what follows a failure. Its rests are minutes long here,
 * so that no clock decides. */
#include "check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "roles/writer.h"

enum { PIECES = 64, MOST = 16 };
static const double LONG_REST = 1e-5, NO_REST = 1; /* shares of a core */

typedef struct {
    rrl_write write;
    char name;
    rrl_status end;
} piece;

static piece pieces[PIECES];
static int n_pieces;
static char written[PIECES + 1], joined[PIECES + 1], said[PIECES + 1]; /* names in order; upper case = ran */
static atomic_int n_written;
static rrl_watch watch;

static void note(char *list, char c) {
    size_t n = strlen(list);
    if (n < PIECES) list[n] = c;
}

static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Some work, so that there is a rest after it. */
static rrl_status write_piece(rrl_write *w) {
    piece *p = (piece *)w;
    for (double begun = used(); used() - begun < 0.002;) {}
    note(written, p->name);
    if (w->more) note(joined, p->name);
    atomic_fetch_add(&n_written, 1);
    return p->end == RRL_OK ? RRL_OK : RRL_FAIL(p->end, "piece %c failed", p->name);
}

static void say_piece(rrl_write *w) {
    piece *p = (piece *)w;
    note(said, (char)(w->ran ? p->name - 'a' + 'A' : p->name));
}

/* Letters: a piece each, "f" fails; `of` is what they belong to. */
static void put(rrl_writer *w, const char *names, const void *of) {
    for (const char *c = names; *c && n_pieces < PIECES; c++) {
        pieces[n_pieces] = (piece){.write = {.run = write_piece, .done = say_piece, .of = of},
                                   .name = *c, .end = *c == 'f' ? RRL_ERR_IO : RRL_OK};
        rrl_writer_put(w, &pieces[n_pieces++].write);
    }
}

static rrl_writer *open_writer(double share) {
    rrl_writer *w = NULL;
    n_pieces = 0;
    memset(written, 0, sizeof written);
    memset(joined, 0, sizeof joined);
    memset(said, 0, sizeof said);
    atomic_store(&n_written, 0);
    CHECK_OK(rrl_writer_open(&w, share, MOST));
    return w;
}

static void wait_written(int n) {
    const struct timespec moment = {0, 1000000};
    while (atomic_load(&n_written) < n) nanosleep(&moment, NULL);
}

/* Without a rest it is always ready, and nothing is joined. */
static void test_each(void) {
    rrl_writer *w = open_writer(NO_REST);
    CHECK(rrl_writer_ready(w));
    put(w, "abc", &watch);
    CHECK_OK(rrl_writer_go(w, &watch));
    CHECK(rrl_writer_ready(w));
    put(w, "de", &watch);
    CHECK_OK(rrl_writer_drain(w, &watch));
    CHECK_EQ_STR(written, "abcde");
    CHECK_EQ_STR(joined, "");
    CHECK_EQ_STR(said, "ABCDE");
    rrl_writer_close(&w, &watch);
    CHECK(w == NULL);
}

/* Ready once, then it rests; what comes with one go is joined where it belongs together. */
static void test_joined(void) {
    int one = 0, other = 0;
    rrl_writer *w = open_writer(LONG_REST);
    CHECK(rrl_writer_ready(w));
    put(w, "a", &one);
    CHECK_OK(rrl_writer_go(w, &watch));
    CHECK(!rrl_writer_ready(w)); /* it writes, or rests */
    wait_written(1);
    CHECK(!rrl_writer_ready(w));
    put(w, "b", &one);
    put(w, "c", &other);
    put(w, "x", NULL);
    put(w, "d", &one);
    put(w, "y", NULL);
    put(w, "e", &one);
    CHECK_EQ_STR(written, "a");
    CHECK_OK(rrl_writer_drain(w, &watch));
    CHECK_EQ_STR(written, "abcxdye");
    CHECK_EQ_STR(joined, "bd");
    CHECK_EQ_STR(said, "ABCXDYE");
    rrl_writer_close(&w, &watch);
}

/* Put, but never handed over: still written before the end. */
static void test_close(void) {
    rrl_writer *w = open_writer(LONG_REST);
    put(w, "ab", &watch);
    rrl_writer_close(&w, &watch);
    CHECK_EQ_STR(written, "ab");
    CHECK_EQ_STR(said, "AB");
}

/* More than may wait end a rest. */
static void test_most(void) {
    rrl_writer *w = open_writer(LONG_REST);
    put(w, "a", &watch);
    CHECK_OK(rrl_writer_go(w, &watch));
    wait_written(1);
    put(w, "bcbcbcbcbcbcbcb", &watch);
    CHECK(!rrl_writer_ready(w));
    put(w, "c", &watch);
    CHECK(rrl_writer_ready(w));
    CHECK_OK(rrl_writer_go(w, &watch));
    wait_written(1 + MOST);
    CHECK_EQ_INT(strlen(joined), MOST - 1);
    rrl_writer_close(&w, &watch);
}

/* The first failure is told to whoever asks next; what comes after it is not written. */
static void test_failure(void) {
    rrl_writer *w = open_writer(NO_REST);
    put(w, "afb", &watch);
    CHECK_EQ_INT(rrl_writer_drain(w, &watch), RRL_ERR_IO);
    CHECK(strstr(rrl_error_message(), "piece f failed") != NULL);
    put(w, "c", &watch);
    CHECK_EQ_INT(rrl_writer_go(w, &watch), RRL_ERR_IO);
    rrl_writer_close(&w, &watch);
    CHECK_EQ_STR(written, "af");
    CHECK_EQ_STR(said, "Afbc");
}

int main(void) {
    watch = (rrl_watch){.timeout_s = 1e9, .beaten = rrl_clock()};
    test_each();
    test_joined();
    test_close();
    test_most();
    test_failure();
    return CHECK_DONE();
}

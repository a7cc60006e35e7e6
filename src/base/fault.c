/* Fault points: a test names one visit of one site, and that visit fails or ends the process. The counter is
 * process state on purpose: it belongs to the environment variable, not to any handle. */
#include "base/files.h"

#ifndef RRL_TEST_FAULTS

bool rrl_fault(const char *site) {
    (void)site;
    return false;
}

void rrl_fault_rank(int rank) {
    (void)rank;
}

#else

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int this_rank;
static char last_spec[128];
static long visits;

/* Splits "rank:site:n:kind" in place; false if it is not of that form. */
static bool split(char *spec, char *part[4]) {
    for (int i = 0; i < 4; i++) {
        part[i] = spec;
        char *colon = strchr(spec, ':');
        if (!colon) return i == 3;
        if (i < 3) *colon = 0;
        spec = colon + 1;
    }
    return false;
}

/* The kind if this visit of this site is the one named by spec, else "". */
static void kind_of_visit(char kind[8], const char *spec, const char *site) {
    char copy[sizeof last_spec], *part[4];
    kind[0] = 0;
    snprintf(copy, sizeof copy, "%s", spec);
    if (!split(copy, part) || strcmp(part[1], site) != 0) return;

    pthread_mutex_lock(&lock);
    if (strcmp(spec, last_spec) != 0) {
        snprintf(last_spec, sizeof last_spec, "%s", spec);
        visits = 0;
    }
    bool mine = strcmp(part[0], "*") == 0 || atoi(part[0]) == this_rank;
    if (mine && ++visits == atol(part[2])) snprintf(kind, 8, "%s", part[3]);
    pthread_mutex_unlock(&lock);
}

bool rrl_fault(const char *site) {
    const char *spec = getenv("RRL_FAULT");
    if (!spec) return false;
    char kind[8];
    kind_of_visit(kind, spec, site);
    if (strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
    bool full = strcmp(kind, "full") == 0;
    if (!full && strcmp(kind, "fail") != 0) return false;
    errno = full ? ENOSPC : EIO;
    return true;
}

void rrl_fault_rank(int rank) {
    pthread_mutex_lock(&lock);
    this_rank = rank;
    pthread_mutex_unlock(&lock);
}

#endif

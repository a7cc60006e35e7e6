/* The one piece of global state a signal handler needs. */
#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void on_signal(int number) {
    if (number == SIGTERM && stop_asked) _exit(128 + SIGTERM);
    stop_asked = 1;
}

void rrl_signal_install(void) {
    struct sigaction ask = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ask.sa_mask);
    sigaction(SIGTERM, &ask, NULL);
    sigaction(SIGUSR1, &ask, NULL); /* what some clusters warn with */
    sigaction(SIGUSR2, &ask, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

bool rrl_signal_stop(void) { return stop_asked != 0; }

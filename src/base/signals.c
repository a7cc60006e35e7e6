/* The one piece of global state a signal handler needs. */
#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void on_signal(int number) {
    static const char SAID[] = "rrl: stopping at the next boundary; interrupt again to end at once\n";
    if ((number == SIGTERM || number == SIGINT) && stop_asked) _exit(128 + number);
    stop_asked = 1;
    if (number == SIGINT && write(2, SAID, sizeof SAID - 1) < 0) { /* who interrupts is told to wait, or is gone */
    }
}

void rrl_signal_install(void) {
    struct sigaction ask = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ask.sa_mask);
    sigaction(SIGTERM, &ask, NULL);
    sigaction(SIGUSR1, &ask, NULL); /* what some clusters warn with */
    sigaction(SIGUSR2, &ask, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

void rrl_signal_take_interrupts(void) {
    struct sigaction ask = {.sa_handler = on_signal}, now;
    sigemptyset(&ask.sa_mask);
    if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler != SIG_IGN) /* a background job of a script stays one */
        sigaction(SIGINT, &ask, NULL);
}

bool rrl_signal_stop(void) { return stop_asked != 0; }

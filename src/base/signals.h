/* A wish to stop, from SIGTERM, SIGUSR1 or SIGUSR2 (a cluster's warning), in commands that run also from SIGINT
 * (Ctrl-C): taken up at the next boundary. */
#ifndef RRL_BASE_SIGNALS_H
#define RRL_BASE_SIGNALS_H

#include <stdbool.h>

/** Install the handlers (main only). A second SIGTERM ends the process at once; SIGPIPE is ignored. */
void rrl_signal_install(void);
/** From here on SIGINT asks too, and a second one ends the process at once: for work that the same command
 *  continues. Before, and in commands that only read, it ends the process as ever. */
void rrl_signal_take_interrupts(void);
/** Whether a stop was asked for. */
bool rrl_signal_stop(void);

#endif

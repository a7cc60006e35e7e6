/* A wish to stop, from SIGTERM, SIGUSR1 or SIGUSR2 (a cluster's warning): taken up at the next step boundary. */
#ifndef RRL_BASE_SIGNALS_H
#define RRL_BASE_SIGNALS_H

#include <stdbool.h>

/** Install the handlers (main only). A second SIGTERM ends the process at once; SIGPIPE is ignored. */
void rrl_signal_install(void);
/** Whether a stop was asked for. */
bool rrl_signal_stop(void);

#endif

/* Collectives over a device's memory by way of host memory: download, a host collective, upload. */
#ifndef RRL_DEVICE_COLLECTIVE_STAGED_H
#define RRL_DEVICE_COLLECTIVE_STAGED_H

#include "device/collective.h"

/** d and host (a collective over host memory) are borrowed. Same bits as host gives. Closed through ops->close. */
rrl_status rrl_collective_staged_open(rrl_collective **out, rrl_device *d, rrl_collective *host);

#endif

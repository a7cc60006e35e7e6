/* Collectives over MPI, for host memory. */
#ifndef RRL_DEVICE_COLLECTIVE_MPI_H
#define RRL_DEVICE_COLLECTIVE_MPI_H

#include "device/collective.h"
#include "device/mpi_wait.h"

/** comm and watch are borrowed. Closed through ops->close. */
rrl_status rrl_collective_mpi_open(rrl_collective **out, MPI_Comm comm, rrl_watch *watch);

#endif

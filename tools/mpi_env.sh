# shellcheck shell=sh
# Sourced by the scripts: what Open MPI wants as root and with more ranks than cores. The program never sets these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

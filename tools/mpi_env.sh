# shellcheck shell=sh
# Sourced by the scripts: what Open MPI wants as root and with more ranks than cores. The program never sets these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Open MPI 4 removes its session folder when it is empty, also while another program is just starting in it; that one then
# fails in MPI_Init. With something in it the folder stays.
mkdir -p "${TMPDIR:-/tmp}/ompi.$(uname -n).$(id -u)/keep"

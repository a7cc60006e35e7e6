# shellcheck shell=bash
# Sourced by a test: a real Slurm of one node on this machine, for the test alone. munged, slurmctld and slurmd run as the
# calling user with all their files in one folder: no systemd, cgroups, accounting database or /etc/slurm.
#
#   slurm_missing        name what is not installed, false if nothing is missing
#   slurm_start DIR [CPUS]   start, wait until the node takes jobs, export SLURM_CONF
#   slurm_stop           cancel every job, end the daemons
#   slurm_node_kill      SIGKILL slurmd; steps that run go on
#   slurm_node_start     slurmd again
# Limits: DIR must be short (socket paths), and the ports below SLURM_PORT + 200 free.

slurm_missing() {
    local tool
    PATH=$PATH:/usr/sbin:/sbin
    for tool in munged slurmctld slurmd sbatch srun squeue scontrol scancel; do
        command -v "$tool" >/dev/null || { echo "$tool"; return 0; }
    done
    return 1
}

slurm_write_conf() { # CPUS
    local host
    host=$(hostname -s)
    cat >"$slurm_dir/slurm.conf" <<CONF
ClusterName=rrltest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$slurm_port
SlurmdPort=$((slurm_port + 1))
SrunPortRange=$((slurm_port + 100))-$((slurm_port + 199))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
# a requeued job waits for cred_expire + 1 s: 5 s is the least, 120 s the default
AuthInfo=socket=$slurm_dir/munge.socket,cred_expire=5
StateSaveLocation=$slurm_dir/ctld
SlurmdSpoolDir=$slurm_dir/d
SlurmctldPidFile=$slurm_dir/slurmctld.pid
SlurmdPidFile=$slurm_dir/slurmd.pid
SlurmctldLogFile=$slurm_dir/slurmctld.log
SlurmdLogFile=$slurm_dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=100000,sched_interval=1,bf_interval=1,batch_sched_delay=0
MpiDefault=pmix
ReturnToService=2
JobRequeue=1
MinJobAge=3600
KillWait=5
CompleteWait=0
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
# more CPUs than the machine has are fine: what is tested is who is told what, not speed
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=$1 RealMemory=1024 State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    printf 'CgroupAutomount=no\n' >"$slurm_dir/cgroup.conf"
}

# The process of a daemon if it lives and is what its pid file says: numbers are given again.
slurm_process() { # NAME
    local pid
    pid=$(cat "$slurm_dir/$1.pid" 2>/dev/null) || return 1
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && echo "$pid"
}

slurm_end() { # NAME SIGNAL: and wait until it is gone
    local pid i
    pid=$(slurm_process "$1") || return 0
    kill "-$2" "$pid" 2>/dev/null
    for i in $(seq 100); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] || return 0
        grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null && return 0
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
}

slurm_wait_node() {
    local i state
    for i in $(seq 200); do
        state=$(sinfo -h -o %t 2>/dev/null)
        case $state in
        idle | mix | alloc) return 0 ;;
        down* | drain*) scontrol update nodename="$(hostname -s)" state=resume 2>/dev/null ;;
        esac
        sleep 0.1
    done
    echo "slurm: the node takes no jobs after 20 s:" >&2
    tail -n 5 "$slurm_dir"/*.log >&2
    return 1
}

slurm_start() { # DIR [CPUS]
    slurm_dir=$1
    slurm_port=${SLURM_PORT:-$((20000 + $$ % 60 * 200))}
    mkdir -p "$slurm_dir/ctld" "$slurm_dir/d"
    chmod 755 "$slurm_dir"
    export SLURM_CONF=$slurm_dir/slurm.conf
    PATH=$PATH:/usr/sbin:/sbin
    slurm_write_conf "${2:-4}"
    (umask 077 && head -c 1024 /dev/urandom >"$slurm_dir/munge.key")
    munged --key-file="$slurm_dir/munge.key" --socket="$slurm_dir/munge.socket" --pid-file="$slurm_dir/munged.pid" \
        --log-file="$slurm_dir/munged.log" --seed-file="$slurm_dir/munged.seed" --force 2>/dev/null || return 1
    slurmctld -f "$SLURM_CONF" || return 1
    slurmd -f "$SLURM_CONF" || return 1
    slurm_wait_node
}

slurm_stop() {
    local i
    if slurm_process slurmctld >/dev/null; then
        scancel --user="$(id -un)" 2>/dev/null
        for i in $(seq 100); do
            [ -z "$(squeue -h 2>/dev/null)" ] && break
            sleep 0.1
        done
    fi
    slurm_end slurmd TERM
    slurm_end slurmctld TERM
    slurm_end munged TERM
}

slurm_node_kill() { slurm_end slurmd KILL; }
slurm_node_start() { slurmd -f "$SLURM_CONF" && slurm_wait_node; }

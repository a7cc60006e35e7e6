/* Measurements: how fast this machine does what a study asks of it, beside what its memory and arithmetic allow.
 *
 * A work is measured in rounds. Each round measures the memory, the arithmetic and every case of the work in turn, so
 * that other work on the machine meets all of them alike; a figure is the median of the rounds. The bound of a work is
 * the larger of the time to read its weights, keys and values once a pass and the time of its multiply-adds; ratio =
 * bound / time. Seconds are told twice: by the clock, and of processor time summed over threads, which other work moves
 * little. */
#ifndef RRL_BENCH_BENCH_H
#define RRL_BENCH_BENCH_H

#include "base/log.h"
#include "base/memory.h"
#include "device/device.h"

enum { RRL_BENCH_CASES = 4, RRL_BENCH_NAME = 32 };

typedef struct {
    const char *model_dir;
    const char *dtype; /* auto, float32, bfloat16 */
    const char *isa;   /* NULL = auto */
    int threads;       /* 0 = cores this process may use */
    const char *only;  /* works to run, "decode,step"; a name up to its "-" takes all of that kind; NULL = all */
    bool quick;        /* one round of little work: for checks, not for figures */
    rrl_log *log;      /* borrowed; may be NULL */
} rrl_bench_spec;

/* Seconds, or amounts a second: by the clock, and of processor time. */
typedef struct {
    double wall, cpu;
} rrl_bench_pair;

typedef struct {
    char name[RRL_BENCH_NAME];
    rrl_bench_pair seconds; /* of one round */
} rrl_bench_part;

/* What one work came to. NaN = does not apply. */
typedef struct {
    char name[RRL_BENCH_NAME];
    const char *unit;       /* of rate: "tokens/s" ... */
    double amount;          /* units done in one round */
    rrl_bench_pair seconds; /* of one round, median */
    double spread;          /* (slowest - fastest round) / median, by the clock */
    int rounds;
    double bytes, flops;       /* least memory traffic and arithmetic of one round */
    rrl_bench_pair read, peak; /* bytes and floating-point operations a second, measured between the rounds */
    rrl_bench_pair bound;      /* seconds that these allow */
    bool read_bound;           /* memory decides, not arithmetic */
    const char *against;       /* name of what gain compares with, NULL = nothing */
    rrl_bench_pair gain;       /* seconds of that / seconds of this, median of the rounds */
    double peak_memory;        /* bytes resident at most while the work ran, model included */
    rrl_bench_part part[RRL_BENCH_CASES];
    int n_parts;
} rrl_bench_row;

typedef struct {
    char model_dir[1024], numeric_path[32], isa[32];
    int threads, cores;
    bool quick;
    double load_before[3], load_after[3]; /* 1, 5, 15 minutes */
    rrl_bench_row *rows;
    size_t n_rows, room;
} rrl_bench_report;

/** Run the works of spec->only in their order. Makes a folder in the working directory and removes it. Local.
 *  Errors: RRL_ERR_USAGE (unknown work or dtype), RRL_ERR_DATA (model), RRL_ERR_IO, whatever the engine says. The
 *  caller frees with rrl_bench_report_free. */
rrl_status rrl_bench_run(rrl_bench_report *out, const rrl_bench_spec *spec);
void rrl_bench_report_free(rrl_bench_report *r);
/** The report as a table of 80 columns, or as one JSON object; appended. */
rrl_status rrl_bench_text(rrl_buffer *b, const rrl_bench_report *r);
rrl_status rrl_bench_json(rrl_buffer *b, const rrl_bench_report *r);
/** Name and meaning of work i; NULL behind the last. */
const char *rrl_bench_work_name(int i, const char **what);

#endif

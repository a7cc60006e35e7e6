/* Cases in turn, medians over the rounds, and the bound they are held against. */
#include "bench/rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"

enum { FEW = 3, MOST = 9 };
/* seconds after which no round begins beyond the few, and beyond the first */
static const double ENOUGH = 30, TOO_LONG = 120;

/* One round: what the machine could do, and what each case took. */
typedef struct {
    rrl_bench_pair read, peak, took[RRL_BENCH_CASES];
} round_times;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* The member at `offset` of each round, a pair. */
static rrl_bench_pair median_pair(const round_times *r, int n, size_t offset) {
    double wall[MOST], cpu[MOST];
    for (int i = 0; i < n; i++) {
        const rrl_bench_pair *p = (const rrl_bench_pair *)(const void *)((const char *)&r[i] + offset);
        wall[i] = p->wall;
        cpu[i] = p->cpu;
    }
    return (rrl_bench_pair){median(wall, n), median(cpu, n)};
}

/* Seconds of the work itself in a round: the cases by their signs. */
static rrl_bench_pair work_seconds(const rrl_bench_measure *m, const round_times *r) {
    rrl_bench_pair sum = {0, 0};
    for (int c = 0; c < m->n_cases; c++) {
        sum.wall += m->cases[c].sign * r->took[c].wall;
        sum.cpu += m->cases[c].sign * r->took[c].cpu;
    }
    return sum;
}

static rrl_status one_round(round_times *r, const rrl_bench_measure *m, rrl_bench_meter *meter) {
    RRL_TRY(rrl_bench_meter_read(&r->read, meter, m->pass_bytes));
    r->peak = rrl_bench_meter_peak(meter);
    for (int c = 0; c < m->n_cases; c++) {
        rrl_bench_pair start = rrl_bench_now();
        rrl_status rc = m->cases[c].run(m->context);
        if (rrl_signal_stop()) return RRL_FAIL(RRL_ERR_STOPPED, "stopped by a signal; there are no figures");
        RRL_TRY(rc);
        r->took[c] = rrl_bench_since(start);
    }
    return RRL_OK;
}

static double larger(double a, double b) { return a > b ? a : b; }

static void set_bound(rrl_bench_row *row, const rrl_bench_measure *m) {
    double reading = 0, computing = 0;
    row->bound = (rrl_bench_pair){NAN, NAN};
    row->bytes = row->flops = NAN;
    if (m->n_needs == 0) return;
    row->bytes = row->flops = 0;
    row->bound = (rrl_bench_pair){0, 0};
    for (int i = 0; i < m->n_needs; i++) {
        const rrl_bench_need *n = &m->need[i];
        row->bytes += n->bytes;
        row->flops += n->flops;
        reading += n->bytes / row->read.wall;
        computing += n->flops / row->peak.wall;
        row->bound.wall += larger(n->bytes / row->read.wall, n->flops / row->peak.wall);
        row->bound.cpu += larger(n->bytes / row->read.cpu, n->flops / row->peak.cpu);
    }
    row->read_bound = reading > computing;
}

static void set_gain(rrl_bench_row *row, const rrl_bench_measure *m, const round_times *r, int n) {
    double wall[MOST], cpu[MOST];
    row->gain = (rrl_bench_pair){NAN, NAN};
    if (m->against == RRL_BENCH_NO_CASE) return;
    for (int i = 0; i < n; i++) {
        rrl_bench_pair mine = work_seconds(m, &r[i]);
        wall[i] = r[i].took[m->against].wall / mine.wall;
        cpu[i] = r[i].took[m->against].cpu / mine.cpu;
    }
    row->against = m->cases[m->against].name;
    row->gain = (rrl_bench_pair){median(wall, n), median(cpu, n)};
}

static void summarise(rrl_bench_row *row, const rrl_bench_measure *m, const round_times *r, int n) {
    double wall[MOST], cpu[MOST];
    snprintf(row->name, sizeof row->name, "%s", m->name);
    row->unit = m->unit;
    row->amount = m->amount;
    row->rounds = n;
    for (int i = 0; i < n; i++) {
        rrl_bench_pair s = work_seconds(m, &r[i]);
        wall[i] = s.wall;
        cpu[i] = s.cpu;
    }
    row->seconds = (rrl_bench_pair){median(wall, n), median(cpu, n)};
    row->spread = (wall[n - 1] - wall[0]) / row->seconds.wall; /* the median has sorted them */
    row->read = median_pair(r, n, offsetof(round_times, read));
    row->peak = median_pair(r, n, offsetof(round_times, peak));
    row->n_parts = m->n_cases;
    for (int c = 0; c < m->n_cases; c++) {
        snprintf(row->part[c].name, sizeof row->part[c].name, "%s", m->cases[c].name);
        row->part[c].seconds = median_pair(r, n, offsetof(round_times, took) + (size_t)c * sizeof(rrl_bench_pair));
    }
    set_bound(row, m);
    set_gain(row, m, r, n);
}

static int rounds_after(double seconds, bool quick) {
    return quick || seconds > TOO_LONG ? 1 : seconds > ENOUGH ? FEW : MOST;
}

rrl_status rrl_bench_rounds(rrl_bench_row *row, const rrl_bench_measure *m, rrl_bench_meter *meter, bool quick) {
    round_times r[MOST];
    const double begin = rrl_clock();
    int n = 0;
    while (n < rounds_after(rrl_clock() - begin, quick)) RRL_TRY(one_round(&r[n++], m, meter));
    summarise(row, m, r, n);
    return RRL_OK;
}

/* The report as a table and as JSON. */
#include <math.h>

#include "base/json_object.h"
#include "bench/bench.h"

static double ratio(double bound, double seconds) { return bound / seconds; }

/* A number, or "-" where there is none. */
static rrl_status put_cell(rrl_buffer *b, int columns, double v, int digits) {
    if (isnan(v)) return rrl_buffer_printf(b, " %*s", columns, "-");
    return rrl_buffer_printf(b, " %*.*f", columns, digits, v);
}

/* A difference of two times may be negative where other work came between. */
static int digits_of(double v) {
    const double size = fabs(v);
    return size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4;
}

/* The share of the bound, which on a machine that does other things may be anything. */
static rrl_status put_share(rrl_buffer *b, double v) { return put_cell(b, 5, v, fabs(v) < 10 ? 2 : 0); }

/* Seconds of the parts, where there are several, and what the work is compared with. */
static rrl_status put_parts(rrl_buffer *b, const rrl_bench_row *r) {
    if (r->n_parts < 2) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "   "));
    for (int i = 0; i < r->n_parts; i++)
        RRL_TRY(rrl_buffer_printf(b, "%s%s %.*f s", i ? ", " : "", r->part[i].name, digits_of(r->part[i].seconds.wall),
                                  r->part[i].seconds.wall));
    if (r->against)
        RRL_TRY(rrl_buffer_printf(b, "\n   %.3f x \"%s\" (processor time %.3f x)", r->gain.wall, r->against, r->gain.cpu));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_row(rrl_buffer *b, const rrl_bench_row *r) {
    const double rate = r->amount / r->seconds.wall;
    RRL_TRY(rrl_buffer_printf(b, "%-20s %8.*f %-8s", r->name, digits_of(rate), rate, r->unit));
    RRL_TRY(put_cell(b, 7, r->seconds.wall, digits_of(r->seconds.wall)));
    RRL_TRY(put_cell(b, 7, r->seconds.cpu, digits_of(r->seconds.cpu)));
    RRL_TRY(put_share(b, ratio(r->bound.wall, r->seconds.wall)));
    RRL_TRY(put_share(b, ratio(r->bound.cpu, r->seconds.cpu)));
    RRL_TRY(rrl_buffer_printf(b, " %-4s", isnan(r->bound.wall) ? "-" : r->read_bound ? "read" : "fma"));
    RRL_TRY(put_cell(b, 6, r->peak_memory / 1e6, 0));
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    return put_parts(b, r);
}

static void range(double *low, double *high, double v) {
    if (isnan(*low) || v < *low) *low = v;
    if (isnan(*high) || v > *high) *high = v;
}

static rrl_status put_machine(rrl_buffer *b, const rrl_bench_report *r) {
    double low[4] = {NAN, NAN, NAN, NAN}, high[4] = {NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < r->n_rows; i++) {
        const rrl_bench_row *w = &r->rows[i];
        const double rates[4] = {w->read.wall, w->peak.wall, w->read.cpu, w->peak.cpu};
        for (int k = 0; k < 4; k++) range(&low[k], &high[k], rates[k] / 1e9);
    }
    return rrl_buffer_printf(b, "\nmeasured between the rounds: %.1f to %.1f GB/s read, %.0f to %.0f GFLOP/s\n"
                             "a second of processor time: %.1f to %.1f GB/s read, %.0f to %.0f GFLOP/s\n"
                             "seconds are of one round; bound = what reading or multiply-adds allow, by the\n"
                             "clock and of processor time; memory = MB resident at most, model included\n",
                             low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]);
}

rrl_status rrl_bench_text(rrl_buffer *b, const rrl_bench_report *r) {
    RRL_TRY(rrl_buffer_printf(b, "%s: %s on %s, threads: %d, cores: %d, load %.1f before, %.1f after%s\n\n",
                              r->model_dir, r->numeric_path, r->isa, r->threads, r->cores, r->load_before[0],
                              r->load_after[0], r->quick ? " (quick: a check, no figures)" : ""));
    RRL_TRY(rrl_buffer_printf(b, "%-20s %8s %-8s %7s %7s %5s %5s %-4s %6s\n", "work", "rate", "", "s", "cpu s", "bound",
                              "(cpu)", "by", "memory"));
    for (size_t i = 0; i < r->n_rows; i++) RRL_TRY(put_row(b, &r->rows[i]));
    return r->n_rows > 0 ? put_machine(b, r) : RRL_OK;
}

/* --- JSON */

/* By the clock and of processor time. */
static rrl_status put_pair(rrl_buffer *b, const char *wall, const char *cpu, rrl_bench_pair p) {
    RRL_TRY(rrl_json_put_real(b, wall, p.wall));
    return rrl_json_put_real(b, cpu, p.cpu);
}

static rrl_status json_parts(rrl_buffer *b, const rrl_bench_row *r) {
    RRL_TRY(rrl_json_open_list(b, "parts"));
    for (int i = 0; i < r->n_parts; i++) {
        RRL_TRY(rrl_json_open_item(b, i));
        RRL_TRY(rrl_json_put_text(b, "name", r->part[i].name));
        RRL_TRY(put_pair(b, "seconds", "cpu_seconds", r->part[i].seconds));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]");
}

static rrl_status json_row(rrl_buffer *b, const rrl_bench_row *r) {
    const bool bounded = !isnan(r->bound.wall);
    RRL_TRY(rrl_json_put_text(b, "work", r->name));
    RRL_TRY(rrl_json_put_text(b, "unit", r->unit));
    RRL_TRY(rrl_json_put_real(b, "amount", r->amount));
    RRL_TRY(rrl_json_put_real(b, "rate", r->amount / r->seconds.wall));
    RRL_TRY(put_pair(b, "seconds", "cpu_seconds", r->seconds));
    RRL_TRY(rrl_json_put_real(b, "spread", r->spread));
    RRL_TRY(rrl_json_put_count(b, "rounds", r->rounds));
    RRL_TRY(rrl_json_put_real(b, "bytes", r->bytes));
    RRL_TRY(rrl_json_put_real(b, "flops", r->flops));
    RRL_TRY(put_pair(b, "read_bytes_per_s", "read_bytes_per_cpu_s", r->read));
    RRL_TRY(put_pair(b, "peak_flops_per_s", "peak_flops_per_cpu_s", r->peak));
    RRL_TRY(put_pair(b, "bound_seconds", "bound_cpu_seconds", r->bound));
    RRL_TRY(rrl_json_put_text(b, "bound_by", !bounded ? NULL : r->read_bound ? "read" : "arithmetic"));
    RRL_TRY(rrl_json_put_real(b, "ratio", ratio(r->bound.wall, r->seconds.wall)));
    RRL_TRY(rrl_json_put_real(b, "cpu_ratio", ratio(r->bound.cpu, r->seconds.cpu)));
    RRL_TRY(rrl_json_put_text(b, "against", r->against));
    RRL_TRY(put_pair(b, "gain", "cpu_gain", r->gain));
    RRL_TRY(rrl_json_put_real(b, "peak_memory", r->peak_memory));
    return json_parts(b, r);
}

static rrl_status json_load(rrl_buffer *b, const char *key, const double load[3]) {
    RRL_TRY(rrl_json_key(b, key));
    for (int i = 0; i < 3; i++) {
        RRL_TRY(rrl_buffer_puts(b, i ? "," : "["));
        RRL_TRY(rrl_json_number(b, load[i]));
    }
    return rrl_buffer_puts(b, "]");
}

rrl_status rrl_bench_json(rrl_buffer *b, const rrl_bench_report *r) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "model", r->model_dir));
    RRL_TRY(rrl_json_put_text(b, "numeric_path", r->numeric_path));
    RRL_TRY(rrl_json_put_text(b, "isa", r->isa));
    RRL_TRY(rrl_json_put_count(b, "threads", r->threads));
    RRL_TRY(rrl_json_put_count(b, "cores", r->cores));
    RRL_TRY(rrl_json_put_bool(b, "quick", r->quick));
    RRL_TRY(json_load(b, "load_before", r->load_before));
    RRL_TRY(json_load(b, "load_after", r->load_after));
    RRL_TRY(rrl_json_open_list(b, "works"));
    for (size_t i = 0; i < r->n_rows; i++) {
        RRL_TRY(rrl_json_open_item(b, (int64_t)i));
        RRL_TRY(json_row(b, &r->rows[i]));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]}\n");
}

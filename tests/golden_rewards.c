#include "golden_rewards.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "rrl/shape.h"

enum { MAX_FILE = 64 << 20, MAX_REWARDS = 64 };

typedef struct {
    const char *file;
    int row, failures, checks;
} golden;

static void check(golden *g, bool ok, const char *what) {
    g->checks++;
    if (ok) return;
    g->failures++;
    fprintf(stderr, "%s: row %d: %s\n", g->file, g->row, what);
}

static bool open_file(golden *g, cJSON **rows, const char *dir, const char *name) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    *rows = NULL;
    RRL_GOTO(rrl_path_join(&path, dir, name));
    RRL_GOTO(rrl_json_file(rows, path, MAX_FILE));
    check(g, cJSON_IsArray(*rows) && (*rows)->child, "holds no rows");
done:
    if (rc != RRL_OK) {
        check(g, false, rrl_error_message());
    }
    free(path);
    return rc == RRL_OK;
}

/* null = missing */
static double number(const cJSON *row, const char *key) {
    const cJSON *v = cJSON_GetObjectItem(row, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *string(const cJSON *row, const char *key) {
    const cJSON *v = cJSON_GetObjectItem(row, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static bool kind_of(rrl_corruption_kind *out, const char *name) {
    static const char *const NAMES[] = {
#define X(name, text) text,
        RRL_CORRUPTION_LIST(X)
#undef X
    };
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
        if (strcmp(NAMES[k], name) == 0) {
            *out = (rrl_corruption_kind)k;
            return true;
        }
    return false;
}

static bool same(double a, double b, double tolerance) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

static void check_event(golden *g, const cJSON *row) {
    rrl_corruption c = {.probability = number(row, "probability"),
                        .seed = (uint64_t)number(row, "seed"),
                        .noise_std = number(row, "noise_std"),
                        .confidence_scale = number(row, "confidence_scale"),
                        .bias_reward = number(row, "bias_reward")};
    double reward = NAN, confidence = NAN;
    bool applied = false;
    const char *response = string(row, "response");
    check(g, kind_of(&c.kind, string(row, "kind")), "unknown kind");
    rrl_status rc = rrl_corrupt(&reward, &confidence, &applied, &c, string(row, "example_id"), response,
                                strlen(response), number(row, "reward"), number(row, "confidence"),
                                cJSON_IsTrue(cJSON_GetObjectItem(row, "eligible")));
    check(g, rc == RRL_OK, rc == RRL_OK ? "" : rrl_error_message());
    check(g, applied == (bool)cJSON_IsTrue(cJSON_GetObjectItem(row, "applied")), "applied differs");
    check(g, same(reward, number(row, "reward_out"), c.kind == RRL_CORRUPT_NOISE ? 1e-12 : 0.0),
          "reward differs");
    check(g, same(confidence, number(row, "confidence_out"), 0.0), "confidence differs");
}

int golden_corruption(int *checks, const char *dir) {
    golden g = {.file = "corruption.json"};
    cJSON *rows = NULL;
    const cJSON *row;
    if (open_file(&g, &rows, dir, g.file)) cJSON_ArrayForEach(row, rows) {
            check_event(&g, row);
            g.row++;
        }
    cJSON_Delete(rows);
    *checks += g.checks;
    return g.failures;
}

/* ---- advantages ---- */

static int numbers(double *out, const cJSON *row, const char *key) {
    int n = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(row, key)) if (n < MAX_REWARDS) out[n++] = v->valuedouble;
    return n;
}

static double deviation(const double *v, int n) {
    double mean = 0.0, squares = 0.0;
    for (int i = 0; i < n; i++) mean += v[i] / n;
    for (int i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(squares / (n - 1)) : 0.0;
}

/* How far float32 arithmetic may be off, with e = 2^-24 and m = max |r|: the mean of G values is off by at
 * most G e m, the difference r - mean by d = (G + 2) e m. A deviation over n values moves by at most
 * sqrt(n/(n-1)) d <= 1.5 d with its inputs and by (n + 3) e of itself in the sums and the root; the quotient
 * A = difference / s, s = deviation + 1e-4, then by d / s + |A| (1.5 d / s + (n + 5) e). Without scaling s is
 * 1 and only d is left. */
static double float32_bound(const double *reward, int n, int size, int at, rrl_scale_rewards scale,
                            double advantage) {
    const double e = ldexp(1.0, -24);
    double m = 0.0;
    for (int i = 0; i < n; i++) m = fmax(m, fabs(reward[i]));
    double d = (size + 2) * e * m;
    if (scale == RRL_SCALE_NONE) return d;
    double s =
        1e-4 + (scale == RRL_SCALE_GROUP ? deviation(reward + at / size * size, size) : deviation(reward, n));
    return d / s + fabs(advantage) * (1.5 * d / s + (n + 5) * e);
}

static bool is_flat(const double *v, int n) {
    for (int i = 1; i < n; i++)
        if (v[i] != v[0]) return false;
    return true;
}

static void check_case(golden *g, const cJSON *row) {
    double reward[MAX_REWARDS], want[MAX_REWARDS], got[MAX_REWARDS];
    int n = numbers(reward, row, "rewards"), size = (int)number(row, "num_generations");
    const char *name = string(row, "scale_rewards");
    rrl_scale_rewards scale = strcmp(name, "group") == 0   ? RRL_SCALE_GROUP
                              : strcmp(name, "batch") == 0 ? RRL_SCALE_BATCH
                                                           : RRL_SCALE_NONE;
    bool usable = numbers(want, row, "advantages") == n && n > 0 && size > 0;
    check(g, usable, "rewards and advantages differ in number");
    if (!usable) return;
    rrl_status rc = rrl_advantages(got, reward, n, size, scale);
    check(g, rc == RRL_OK, rc == RRL_OK ? "" : rrl_error_message());
    for (int i = 0; rc == RRL_OK && i < n; i++) {
        check(g, same(got[i], want[i], float32_bound(reward, n, size, i, scale, want[i])),
              "advantage differs");
        if (is_flat(reward + i / size * size, size))
            check(g, got[i] == 0.0, "a flat group's advantage is not 0");
    }
}

int golden_advantages(int *checks, const char *dir) {
    golden g = {.file = "advantages.json"};
    cJSON *rows = NULL;
    const cJSON *row;
    if (open_file(&g, &rows, dir, g.file)) cJSON_ArrayForEach(row, rows) {
            check_case(&g, row);
            g.row++;
        }
    cJSON_Delete(rows);
    *checks += g.checks;
    return g.failures;
}

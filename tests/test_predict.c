/* Prediction against the published table, closed forms, a fine grid, and the program's own verifier on
 * completions. */
#include "report/predict.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "check.h"

enum { N_VIEWS = RRL_PREDICT_VIEWS, N_PRIORS = 3 };
static const double PRIORS[N_PRIORS] = {0.1, 0.3, 0.8};

/* Every ensemble with standard shaping, every other shaping of `ensemble`, with the default parameters. */
static void make_views(rrl_predict_view *views, rrl_ensemble_strategy ensemble, bool exclude) {
    for (int i = 0; i < N_VIEWS; i++) {
        views[i] = (rrl_predict_view){.ensemble = ensemble, .exclude_missing = exclude};
        if (i < RRL_PREDICT_CONFIDENCE) views[i].ensemble = (rrl_ensemble_strategy)i;
        views[i].shaping = (rrl_shaping){
            .strategy = i < RRL_PREDICT_CONFIDENCE ? RRL_SHAPE_STANDARD : (rrl_shaping_strategy)(i - 3),
            .penalty = 0.2,
            .moderate_threshold = 0.4,
            .severe_threshold = 0.9,
            .moderate_scale = 0.5,
            .severe_scale = 0};
    }
}

/* ---- the published table ---- */

/* Three rule members, P(right) 0.3: J and rho of mean, majority, combined, min, posterior. */
static const struct {
    const char *kind;
    double level, pairs[5][2];
} TABLE[] = {
    {"flip", 0.1, {{.800, .904}, {.944, .934}, {.732, .791}, {.728, .806}, {.887, .942}}},
    {"flip", 0.2, {{.600, .766}, {.792, .765}, {.509, .614}, {.504, .631}, {.637, .798}}},
    {"flip", 0.4, {{.200, .308}, {.296, .273}, {.155, .215}, {.152, .223}, {.097, .312}}},
    {"flip", 0.6, {{-.200, -.308}, {-.296, -.273}, {-.155, -.179}, {-.152, -.185}, {.097, .312}}},
    {"false_positive", 0.4, {{.600, .758}, {.648, .596}, {.981, .902}, {.936, .902}, {.814, .902}}},
    {"false_negative", 0.4, {{.600, .871}, {.648, .750}, {.173, .317}, {.216, .402}, {.911, .954}}},
    {"flip_shared", 0.2, {{.600, .566}, {.600, .566}, {.600, .566}, {.600, .566}, {.321, .566}}},
};
enum { N_TABLE = sizeof TABLE / sizeof *TABLE };
static const char *const TABLE_STRATEGIES[5] = {"mean", "majority", "combined", "min", "posterior"};
static const double THREE_DIGITS = 0.0005 + 1e-9;

static const char EMPTY[] = "{}";
static const char STUDY[] =
    "experiment:\n"
    "  seeds: [1, 2]\n"
    "  arms:\n"
    "    - {name: flip, corruption: flip, levels: [0, 0.2]}\n"
    "    - {name: one, corruption: flip, shared: true, levels: [0.2], methods: [base, baseline]}\n"
    "    - {name: loophole, members: [exploit, exploit, none]}\n"
    "training_verifier: {strategy: mean, members: [rule, rule, rule]}\n";

static rrl_config *config_of(const char *text) {
    rrl_config *c = NULL;
    if (!CHECK_OK(rrl_config_parse(&c, text, strlen(text), "test", NULL, NULL, 0))) exit(1);
    return c;
}

/* The row of the JSON with these values, NULL if there is none or more than one. */
static const cJSON *find_row(const cJSON *rows, const char *arm, const char *kind, double level,
                             double p_right, const char *strategy) {
    const cJSON *row, *found = NULL;
    cJSON_ArrayForEach(row, rows) {
        const char *a, *k, *s;
        double l = NAN, p = NAN;
        if (rrl_json_string(&a, row, "arm", false, "row") || rrl_json_string(&k, row, "kind", false, "row") ||
            rrl_json_string(&s, row, "strategy", false, "row") ||
            rrl_json_double(&l, row, "level", true, "row") ||
            rrl_json_double(&p, row, "p_right", false, "row"))
            return NULL;
        if (strcmp(a, arm) || strcmp(k, kind) || strcmp(s, strategy) || p != p_right) continue;
        if (l != level && !(isnan(l) && isnan(level))) continue;
        if (found) return NULL;
        found = row;
    }
    return found;
}

static cJSON *json_of(const char *config, double extra) {
    rrl_config *c = config_of(config);
    rrl_predict_request request = RRL_PREDICT_REQUEST;
    rrl_predict_table t;
    char *text = NULL;
    cJSON *document = NULL;
    request.extra_prior = extra;
    if (!CHECK_OK(rrl_predict_table_make(&t, c, &request, true))) exit(1);
    if (CHECK_OK(rrl_predict_json(&text, &t)))
        CHECK_OK(rrl_json_parse(&document, text, strlen(text), "json"));
    free(text);
    rrl_predict_table_free(&t);
    rrl_config_close(&c);
    if (!document) exit(1);
    return document;
}

static void test_table(void) {
    cJSON *document = json_of(EMPTY, NAN);
    const cJSON *rows = NULL;
    if (CHECK_OK(rrl_json_get(&rows, document, "rows", false, "json"))) {
        for (int i = 0; i < N_TABLE; i++)
            for (int s = 0; s < 5; s++) {
                double j = NAN, rho = NAN;
                const cJSON *row =
                    find_row(rows, "reference", TABLE[i].kind, TABLE[i].level, 0.3, TABLE_STRATEGIES[s]);
                if (!CHECK(row != NULL)) continue;
                CHECK_OK(rrl_json_double(&j, row, "j_eff", false, "row"));
                CHECK_OK(rrl_json_double(&rho, row, "rho", false, "row"));
                if (!CHECK_NEAR(j, TABLE[i].pairs[s][0], THREE_DIGITS) |
                    !CHECK_NEAR(rho, TABLE[i].pairs[s][1], THREE_DIGITS))
                    fprintf(stderr, "  %s %g, %s\n", TABLE[i].kind, TABLE[i].level, TABLE_STRATEGIES[s]);
            }
        /* a config without anything is one clean run: all but the posterior's rows have J 1 */
        CHECK_EQ_INT(cJSON_GetArraySize(rows), (1 + N_TABLE) * 5 * RRL_PREDICT_STRATEGIES);
    }
    cJSON_Delete(document);
}

/* ---- a study's rows ---- */

static void check_row(const cJSON *rows, const char *arm, const char *kind, double level, double p,
                      const char *strategy, double j, double updates) {
    double got = NAN, cost = NAN;
    const cJSON *row = find_row(rows, arm, kind, level, p, strategy);
    if (!CHECK(row != NULL)) {
        fprintf(stderr, "  %s %s %g %g %s\n", arm, kind, level, p, strategy);
        return;
    }
    CHECK_OK(rrl_json_double(&got, row, "j_eff", false, "row"));
    CHECK_OK(rrl_json_double(&cost, row, "updates", true, "row"));
    CHECK_NEAR(got, j, 1e-12);
    CHECK_NEAR(cost, updates, 1e-9);
}

static void test_study_rows(void) {
    cJSON *document = json_of(STUDY, 0.25);
    const cJSON *rows = NULL;
    if (CHECK_OK(rrl_json_get(&rows, document, "rows", false, "json"))) {
        CHECK_EQ_INT(cJSON_GetArraySize(rows), (4 + N_TABLE) * 6 * RRL_PREDICT_STRATEGIES);
        check_row(rows, "flip", "flip", 0, 0.25, "mean", 1, 1);
        check_row(rows, "flip", "flip", 0.2, 0.25, "mean", 0.6, 1 / 0.6);
        check_row(rows, "flip", "flip", 0.2, 0.9, "min", 0.512 - 0.008, 1 / 0.504);
        check_row(rows, "one", "flip_shared", 0.2, 0.5, "combined", 0.6, 1 / 0.6);
        /* all lazy: a wrong completion has verdicts 1, 1, 0, so U = 8/9, C = 1/9, half is left */
        double combined = 0.5 * (2.0 / 3 / 9 - 0.2 * 8 / 9);
        check_row(rows, "loophole", "exploit+exploit+none", NAN, 0.5, "mean", 1.0 / 3, 3);
        check_row(rows, "loophole", "exploit+exploit+none", NAN, 0.5, "combined", 1 - combined,
                  1 / (1 - combined));
    }
    cJSON_Delete(document);
}

static void check_width(const char *text) {
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchr(line, '\n');
        if (!end) end = line + strlen(line);
        if (!CHECK(end - line <= 80)) fprintf(stderr, "  %.*s\n", (int)(end - line), line);
    }
}

static void test_text(void) {
    rrl_config *c = config_of(STUDY);
    rrl_predict_request request = RRL_PREDICT_REQUEST;
    rrl_predict_table t;
    char *text = NULL;
    request.extra_prior = 0.25;
    if (CHECK_OK(rrl_predict_table_make(&t, c, &request, true))) {
        if (CHECK_OK(rrl_predict_text(&text, &t))) {
            check_width(text);
            CHECK(strstr(text,
                         "arm flip, level 0.2: 3 members, flip\n  baseline = mean, robust = combined\n") !=
                  NULL);
            CHECK(strstr(text, " mean                +0.600 +    1.67 ") != NULL);
            CHECK(strstr(text, "\n minimum             ") != NULL && strstr(text, "\n posterior            rho^2           ") != NULL);
            CHECK(
                strstr(text,
                       " flip           0.6 -.200/-.308 -.296/-.273 -.155/-.179 -.152/-.185   .097/.312\n") !=
                NULL);
            free(text);
        }
        rrl_predict_table_free(&t);
    }
    if (CHECK_OK(rrl_predict_summary(&text, c))) {
        check_width(text);
        CHECK(strstr(text,
                     "  flip 0.2        baseline +0.600/+0.766 learns    robust +0.509/+0.614 learns\n") !=
              NULL);
        CHECK(strstr(text, "  one 0.2         baseline +0.600/+0.566 learns\n") != NULL);
        free(text);
    }
    rrl_config_close(&c);
}

/* ---- noise ---- */

static double normal_below(double z) {
    return 0.5 * erfc(-z / sqrt(2));
}

/* Deviate below which the share u of all lies, by halving. */
static double quantile(double u) {
    double low = -9, high = 9;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (normal_below(middle) < u)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* E[clip(z s)] and E[clip(1 + z s)]: the integral of z phi(z) is -phi(z). */
static void test_noise_closed_form(void) {
    static const double STD[] = {0.02, 0.1, 0.5, 3};
    for (size_t i = 0; i < sizeof STD / sizeof *STD; i++) {
        double s = STD[i], p = 0.7, error, posterior;
        rrl_corruption member = {
            .kind = RRL_CORRUPT_NOISE, .probability = p, .noise_std = s, .confidence_scale = 1};
        rrl_predict_ensemble e = {.members = &member, .n = 1};
        rrl_predict_view view = {.shaping = {.strategy = RRL_SHAPE_STANDARD}};
        rrl_predict_moments m;
        if (!CHECK_OK(rrl_predict_moments_of(&m, &posterior, &error, &e, &view, 1, PRIORS, 0))) continue;
        double density0 = 1 / sqrt(2 * M_PI), density1 = density0 * exp(-0.5 / s / s);
        double above = 1 - normal_below(1 / s);
        CHECK_NEAR(m.sum[0], p * (s * (density0 - density1) + above), 1e-8);
        CHECK_NEAR(m.sum[1], 1 - p + p * (1 - s * (density0 - density1) - above), 1e-8);
        CHECK_NEAR(m.available[1], 1, 1e-9);
        CHECK(error < 1e-6);
    }
}

/* Where a shaping jumps, a grid of N points a member errs by about 1/N with one member between 0 and 1,
 * N^-1.5 with two, N^-2 with three, times the probability that so many are. These sizes keep that below 1e-6
 * for the cases below. */
static const int POINTS[4] = {1, 100000, 1200, 120};

/* Verdicts of one member: 0, 1, or one of `points` equally likely values between. */
typedef struct {
    double weight[3], *between;
} outcomes;

static outcomes make_outcomes(const rrl_corruption *c, int right, int points) {
    outcomes o;
    double far = normal_below(-1 / c->noise_std); /* P(beyond the other end) */
    o.weight[right] = 1 - c->probability / 2;
    o.weight[!right] = c->probability * far;
    o.weight[2] = c->probability * (0.5 - far);
    o.between = malloc((size_t)points * sizeof *o.between);
    if (!o.between) exit(1);
    for (int i = 0; i < points; i++) {
        double z = quantile(far + (0.5 - far) * (i + 0.5) / points);
        o.between[i] = right ? 1 + c->noise_std * z : -c->noise_std * z;
    }
    return o;
}

/* Adds the moments over one choice of outcome for each member; `between` of them lie between 0 and 1. */
static void add_choice(double *sum, double *square, const outcomes *o, const int *choice, int n, int between,
                       const rrl_shaping *shaping) {
    double weight = 1, total = 0, squares = 0, reward[3];
    long cells = 1;
    int bad = 0;
    for (int i = 0; i < n; i++) weight *= o[i].weight[choice[i]];
    for (int i = 0; i < between; i++) cells *= POINTS[between];
    for (long cell = 0; cell < cells; cell++) {
        long at = cell;
        rrl_ensemble e;
        double shaped, scale;
        for (int i = 0; i < n; i++) {
            reward[i] = choice[i];
            if (choice[i] < 2) continue;
            reward[i] = o[i].between[at % POINTS[between]];
            at /= POINTS[between];
        }
        bad += rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, reward, (const double[]){1, 1, 1}, n) != RRL_OK;
        rrl_shape_one(&shaped, &scale, shaping, &e);
        total += shaped;
        squares += shaped * shaped;
    }
    CHECK_EQ_INT(bad, 0);
    *sum += weight * total / (double)cells;
    *square += weight * squares / (double)cells;
}

/* Moments of a shaping of the mean of n noisy members, by brute force. */
static void grid(double sum[2], double square[2], const rrl_corruption *members, int n,
                 const rrl_shaping *shaping) {
    for (int right = 0; right < 2; right++) {
        sum[right] = square[right] = 0;
        for (int between = 0; between <= n; between++) {
            outcomes o[3];
            for (int i = 0; i < n; i++) o[i] = make_outcomes(&members[i], right, POINTS[between]);
            for (int code = 0; code < 27; code++) {
                int choice[3] = {code % 3, code / 3 % 3, code / 9}, count = 0;
                for (int i = 0; i < n; i++) count += choice[i] == 2;
                if (count == between && (n == 3 || code < (n == 2 ? 9 : 3)))
                    add_choice(&sum[right], &square[right], o, choice, n, between, shaping);
            }
            for (int i = 0; i < n; i++) free(o[i].between);
        }
    }
}

static const struct {
    const char *what;
    int n;
    double probability, std[3], threshold;
} NOISES[] = {
    {"one", 1, 1, {0.9}, 0.4},
    {"two alike", 2, 0.3, {0.6, 0.6}, 0.4},
    {"two that differ", 2, 0.3, {0.3, 1.5}, 0.2},
    {"three alike", 3, 0.2, {0.5, 0.5, 0.5}, 0.4},
    {"three that differ", 3, 0.2, {0.2, 0.5, 2}, 0.1},
};

static void test_noise_grid(void) {
    for (size_t k = 0; k < sizeof NOISES / sizeof *NOISES; k++) {
        rrl_corruption members[3];
        double sum[2], square[2], error, posterior;
        rrl_predict_view view = {.shaping = {.strategy = RRL_SHAPE_COMBINED,
                                             .penalty = 0.2,
                                             .moderate_threshold = NOISES[k].threshold,
                                             .severe_threshold = 0.9,
                                             .moderate_scale = 0.5,
                                             .severe_scale = 0}};
        rrl_predict_moments m;
        for (int i = 0; i < NOISES[k].n; i++)
            members[i] = (rrl_corruption){.kind = RRL_CORRUPT_NOISE,
                                          .probability = NOISES[k].probability,
                                          .seed = (uint64_t)i,
                                          .noise_std = NOISES[k].std[i],
                                          .confidence_scale = 1};
        rrl_predict_ensemble e = {.members = members, .n = NOISES[k].n};
        if (!CHECK_OK(rrl_predict_moments_of(&m, &posterior, &error, &e, &view, 1, PRIORS, 0))) continue;
        grid(sum, square, members, NOISES[k].n, &view.shaping);
        int good = CHECK(error <= 1e-6);
        for (int right = 0; right < 2; right++)
            good &=
                CHECK_NEAR(m.sum[right], sum[right], 1e-6) & CHECK_NEAR(m.square[right], square[right], 1e-6);
        if (!good) fprintf(stderr, "  %s, error bound %g\n", NOISES[k].what, error);
    }
}

/* ---- every kind against the program ---- */

static const struct {
    const char *what;
    rrl_corruption_kind kind;
    double probability, confidence_scale, bias_reward;
    bool shared, exclude;
} KINDS[] = {
    {"none", RRL_CORRUPT_NONE, 0, 1, 1, false, false},
    {"flip", RRL_CORRUPT_FLIP, 0.2, 1, 1, false, false},
    {"flip, shared", RRL_CORRUPT_FLIP, 0.3, 1, 1, true, false},
    {"false positive", RRL_CORRUPT_FALSE_POSITIVE, 0.4, 0.5, 1, false, false},
    {"false negative", RRL_CORRUPT_FALSE_NEGATIVE, 0.4, 1, 1, false, false},
    {"missing counts as 0", RRL_CORRUPT_MISSING, 0.6, 1, 1, false, false},
    {"missing is left out", RRL_CORRUPT_MISSING, 0.6, 1, 1, false, true},
    {"noise", RRL_CORRUPT_NOISE, 0.8, 1, 1, false, false},
    {"noise, shared", RRL_CORRUPT_NOISE, 0.8, 1, 1, true, false},
    {"bias", RRL_CORRUPT_BIAS, 0.7, 0.6, 0.4, false, false},
    {"exploit", RRL_CORRUPT_EXPLOIT, 0.9, 1, 1, false, false},
    {"confidence scale alone", RRL_CORRUPT_FLIP, 0, 0.3, 1, false, false},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS, N_SAMPLES = 2000, N_MEMBERS = 3 };
static const double ELIGIBLE[2] = {0.5,
                                   0.25}; /* of wrong, of right: shares of the texts and questions below */

static void make_members(rrl_corruption *members, int k) {
    static const double STD[N_MEMBERS] = {0.3, 0.8, 0.8};
    for (int i = 0; i < N_MEMBERS; i++)
        members[i] = (rrl_corruption){.kind = KINDS[k].kind,
                                      .probability = KINDS[k].probability,
                                      .seed = KINDS[k].shared ? 7 : 7 + 1009 * (uint64_t)i,
                                      .noise_std = STD[i],
                                      .confidence_scale = i == 0 ? KINDS[k].confidence_scale : 1,
                                      .bias_key = "class",
                                      .bias_value = "addition",
                                      .bias_reward = KINDS[k].bias_reward};
}

/* Completions of one question, right or wrong, each with a text of its own. Every fourth right and every
 * second wrong one is open to exploits: no "=" in it; every fourth question for right, every second for wrong
 * ones is an addition. */
static rrl_group *make_group(int right, int count, int first, bool lazy) {
    rrl_group *g = NULL;
    rrl_buffer text = {0};
    if (!CHECK_OK(rrl_group_create(&g, count, 0))) exit(1);
    for (int i = 0; i < count; i++) {
        size_t before = text.len;
        if (!CHECK_OK(rrl_buffer_printf(&text, "Try %d %s. Final answer: %d", first + i,
                                        lazy ? "guessed" : "3 + 4 = x", right ? 7 : 8)))
            exit(1);
        g->rows[i].n_text = (int32_t)(text.len - before);
    }
    g->text = text.data;
    g->head.n_text = (int64_t)text.len;
    return g;
}

typedef struct {
    double sum[2], square[2], available[2]; /* of one view, by wrong and right */
    long n[2];
} tally;

/* Judge and shape N_SAMPLES completions of each sort under every view. */
static void measure(tally *tallies, const rrl_corruption *corruption, const rrl_predict_view *views) {
    rrl_member_spec members[N_MEMBERS];
    rrl_verifier *v = NULL;
    enum { COUNT = 50 };
    for (int i = 0; i < N_MEMBERS; i++)
        members[i] = (rrl_member_spec){.kind = "rule", .corruption = corruption[i]};
    if (!CHECK_OK(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, members, N_MEMBERS, "rule"))) exit(1);
    memset(tallies, 0, N_VIEWS * sizeof *tallies);
    for (int right = 0; right < 2; right++)
        for (int part = 0; part < N_SAMPLES / COUNT; part++) {
            bool eligible = part % (right ? 4 : 2) == 0;
            char id[32];
            snprintf(id, sizeof id, "question %d", part);
            rrl_judged_question q = {id, "7",
                                     eligible ? "{\"class\": \"addition\"}" : "{\"class\": \"other\"}"};
            rrl_group *g = make_group(right, COUNT, part * COUNT, eligible);
            CHECK_OK(rrl_verifier_judge(v, g, &q));
            for (int k = 0; k < N_VIEWS; k++) {
                CHECK_OK(rrl_shape_group(g, &views[k].shaping, views[k].ensemble));
                for (int i = 0; i < COUNT; i++) {
                    rrl_ensemble e;
                    double shaped = (double)g->rows[i].shaped;
                    CHECK(g->rows[i].correct == (float)right);
                    CHECK_OK(rrl_ensemble_of_verdicts(&e, views[k].ensemble, g->verdicts + i * N_MEMBERS,
                                                      N_MEMBERS));
                    tallies[k].n[right]++;
                    tallies[k].sum[right] += shaped;
                    tallies[k].square[right] += shaped * shaped;
                    tallies[k].available[right] += !isnan(e.reward);
                }
            }
            rrl_group_free(&g);
        }
    rrl_verifier_close(&v);
}

/* A measured mean within 4 of its standard errors, or exactly where nothing is left to chance. */
static int agrees(double measured, double predicted, double square, long n) {
    double variance = fmax(0, square - predicted * predicted);
    return CHECK_NEAR(measured, predicted, 4 * sqrt(variance / (double)n) + 1e-6);
}

static void test_kinds(void) {
    for (int k = 0; k < N_KINDS; k++) {
        rrl_corruption members[N_MEMBERS];
        rrl_predict_view views[N_VIEWS];
        rrl_predict_moments m[N_VIEWS];
        tally tallies[N_VIEWS];
        double posterior[N_PRIORS], error;
        make_members(members, k);
        make_views(views, RRL_ENSEMBLE_MEAN, KINDS[k].exclude);
        rrl_predict_ensemble e = {.members = members, .n = N_MEMBERS, .eligible = {ELIGIBLE[0], ELIGIBLE[1]}};
        if (!CHECK_OK(rrl_predict_moments_of(m, posterior, &error, &e, views, N_VIEWS, PRIORS, N_PRIORS)))
            continue;
        CHECK(error <= 1e-6);
        measure(tallies, members, views);
        for (int v = 0; v < N_VIEWS; v++)
            for (int right = 0; right < 2; right++) {
                const tally *t = &tallies[v];
                double n = (double)t->n[right], counted = KINDS[k].exclude ? m[v].available[right] : 1;
                double got = t->sum[right] / (KINDS[k].exclude ? t->available[right] : n);
                int good =
                    agrees(got, m[v].sum[right] / counted, m[v].square[right] / counted, (long)(n * counted));
                good &= agrees(t->available[right] / n, m[v].available[right], m[v].available[right],
                               t->n[right]);
                if (!good)
                    fprintf(stderr, "  %s, view %d, %s\n", KINDS[k].what, v, right ? "right" : "wrong");
            }
    }
}

/* No function of the verdicts has a higher correlation with correctness than the posterior. */
static void test_posterior_is_best(void) {
    for (int k = 0; k < N_KINDS; k++) {
        rrl_corruption members[N_MEMBERS];
        rrl_predict_view views[N_VIEWS];
        rrl_predict_moments m[N_VIEWS];
        double posterior[N_PRIORS], error;
        make_members(members, k);
        make_views(views, RRL_ENSEMBLE_MINIMUM, false);
        rrl_predict_ensemble e = {.members = members, .n = N_MEMBERS, .eligible = {0.9, 0.2}};
        if (!CHECK_OK(rrl_predict_moments_of(m, posterior, &error, &e, views, N_VIEWS, PRIORS, N_PRIORS)))
            continue;
        for (int p = 0; p < N_PRIORS; p++) {
            rrl_predict_effect best = rrl_predict_effect_of_posterior(posterior[p], PRIORS[p]);
            CHECK_NEAR(best.j_eff, best.rho * best.rho, 1e-6);
            for (int v = 0; v < N_VIEWS; v++) {
                rrl_predict_effect f = rrl_predict_effect_of(&m[v], false, PRIORS[p], 8);
                if (!CHECK(isnan(f.rho) || fabs(f.rho) <= best.rho + 1e-6))
                    fprintf(stderr, "  %s, view %d, P(right) %g: %g above %g\n", KINDS[k].what, v, PRIORS[p],
                            f.rho, best.rho);
            }
        }
    }
}

/* ---- what a number means ---- */

static void test_effects(void) {
    /* no reward ever */
    rrl_predict_moments none = {{0, 0}, {0, 0}, {0, 0}};
    rrl_predict_effect f = rrl_predict_effect_of(&none, false, 0.3, 8);
    CHECK_NEAR(f.j_eff, 0, 0);
    CHECK(isnan(f.rho) && isinf(f.updates));
    CHECK_NEAR(f.missing, 1, 0);
    f = rrl_predict_effect_of(&none, true, 0.3, 8);
    CHECK(isnan(f.j_eff) && isnan(f.rho) && isnan(f.updates));
    /* missing half of the time: as 0 it halves J; left out it keeps J and costs what a group loses */
    rrl_predict_moments half = {{0.5, 0.5}, {0, 0.5}, {0, 0.5}};
    f = rrl_predict_effect_of(&half, false, 0.3, 2);
    CHECK_NEAR(f.j_eff, 0.5, 1e-15);
    CHECK_NEAR(f.updates, 2, 1e-15);
    f = rrl_predict_effect_of(&half, true, 0.3, 2);
    CHECK_NEAR(f.j_eff, 1, 1e-15);
    CHECK_NEAR(f.rho, 1, 1e-15);
    CHECK_NEAR(f.updates, 4, 1e-14); /* both of two are there in one of four groups */
    CHECK_EQ_INT(rrl_predict_sign(0.1), 1);
    CHECK_EQ_INT(rrl_predict_sign(-0.1), -1);
    CHECK_EQ_INT(rrl_predict_sign(1e-17), 0);
    /* a posterior that knows nothing is the prior */
    f = rrl_predict_effect_of_posterior(0.3, 0.3);
    CHECK_NEAR(f.j_eff, 0, 0);
    CHECK(isnan(f.rho) && isinf(f.updates));
}

/* Many equal members are counted, not listed: the majority of 41 independent flips is a binomial tail. */
static void test_many_members(void) {
    enum { N = 41 };
    rrl_corruption members[N];
    rrl_predict_view view = {.ensemble = RRL_ENSEMBLE_MAJORITY, .shaping = {.strategy = RRL_SHAPE_STANDARD}};
    rrl_predict_moments m;
    double posterior[1], error, tail = 0;
    for (int i = 0; i < N; i++)
        members[i] = (rrl_corruption){
            .kind = RRL_CORRUPT_FLIP, .probability = 0.4, .seed = (uint64_t)i, .confidence_scale = 1};
    rrl_predict_ensemble e = {.members = members, .n = N};
    if (!CHECK_OK(rrl_predict_moments_of(&m, posterior, &error, &e, &view, 1, PRIORS, 1))) return;
    for (int k = N / 2 + 1; k <= N; k++)
        tail += exp(lgamma(N + 1) - lgamma(k + 1) - lgamma(N - k + 1) + k * log(0.6) + (N - k) * log(0.4));
    CHECK_NEAR(m.sum[1], tail, 1e-10);
    CHECK_NEAR(m.sum[0], 1 - tail, 1e-10);
}

static void test_refused(void) {
    rrl_corruption members[30];
    rrl_predict_view view = {.shaping = {.strategy = RRL_SHAPE_STANDARD}};
    rrl_predict_moments m;
    double posterior[2], error;
    for (int i = 0; i < 30; i++)
        members[i] = (rrl_corruption){.kind = RRL_CORRUPT_FLIP,
                                      .probability = 0.01 * (i + 1),
                                      .seed = (uint64_t)i,
                                      .confidence_scale = 1};
    rrl_predict_ensemble e = {.members = members, .n = 30};
    CHECK_STATUS(rrl_predict_moments_of(&m, posterior, &error, &e, &view, 1, PRIORS, 1), RRL_ERR_RANGE);
    CHECK(strstr(rrl_error_message(), "can answer in") != NULL);
    e.n = 2;
    CHECK_STATUS(rrl_predict_moments_of(&m, posterior, &error, &e, &view, 1, (const double[]){1}, 1),
                 RRL_ERR_RANGE);
    e.eligible[1] = 1.5;
    CHECK_STATUS(rrl_predict_moments_of(&m, posterior, &error, &e, &view, 1, PRIORS, 1), RRL_ERR_RANGE);
    e.n = 0;
    CHECK_STATUS(rrl_predict_moments_of(&m, posterior, &error, &e, &view, 1, PRIORS, 1), RRL_ERR_RANGE);
}

int main(void) {
    test_table();
    test_study_rows();
    test_text();
    test_noise_closed_form();
    test_noise_grid();
    test_kinds();
    test_posterior_is_best();
    test_effects();
    test_many_members();
    test_refused();
    return CHECK_DONE();
}

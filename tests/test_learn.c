/* The learner: golden losses and gradients, the gradient tree, schedules, checkpoints. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactmath.h"
#include "base/files.h"
#include "check.h"
#include "golden_learn.h"
#include "learn/checkpoint.h"
#include "learn/learner.h"
#include "learn/row_report.h"
#include "learn/schedule.h"

#define TINY RRL_SOURCE_DIR "/data/tiny"
enum { GROUPS = 5, G = 2, TOKENS = 6 };

static void test_shares(void) {
    /* every slot is held once, shares are aligned powers of two, whatever the number of learners */
    for (int slots = 1; slots <= 20; slots++)
        for (int learners = 1; learners <= 9; learners++) {
            int32_t next = 0, first, n, active, leaf = 0;
            for (int i = 0; i < learners; i++) {
                rrl_learner_share(&first, &n, &active, slots, learners, i);
                if (i == 0) leaf = n;
                CHECK_EQ_INT(first, next < slots ? next : slots);
                CHECK(n == 0 || i < active);
                next += n;
            }
            CHECK_EQ_INT(next, slots);
            CHECK(learners == 1 || (leaf & (leaf - 1)) == 0);
        }
}

static void test_schedule(void) {
    enum { N = 11, PER = 2, CHUNKS = N / PER };
    int seen[N] = {0};
    int32_t out[PER], again[PER];
    for (int b = 0; b < CHUNKS; b++) {
        CHECK_OK(rrl_schedule_questions(out, b, PER, N, 42));
        for (int i = 0; i < PER; i++) {
            CHECK(out[i] >= 0 && out[i] < N);
            CHECK_EQ_INT(seen[out[i]]++, 0); /* an epoch has no repetition */
        }
    }
    CHECK_OK(rrl_schedule_questions(out, CHUNKS, PER, N, 42)); /* next epoch: another order */
    CHECK_OK(rrl_schedule_questions(again, 0, PER, N, 42));
    CHECK(memcmp(out, again, sizeof out) != 0);
    CHECK_STATUS(rrl_schedule_questions(out, 0, PER, 1, 42), RRL_ERR_DATA);
}

static void test_learning_rate(void) {
    /* values of transformers' schedulers at lr 1, 10 steps, 2 of warm-up */
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_LINEAR, 1, 0, 10, 0), 1.0, 0);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_LINEAR, 1, 3, 10, 0), 0.7, 1e-15);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_LINEAR, 1, 1, 10, 2), 0.5, 1e-15);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_LINEAR, 1, 6, 10, 2), 0.5, 1e-15);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_COSINE, 1, 6, 10, 2), 0.5, 1e-12);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_COSINE, 1, 4, 10, 2), 0.5 * (1 + sqrt(0.5)), 1e-12);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_CONSTANT, 1, 9, 10, 0), 1.0, 0);
    CHECK_NEAR(rrl_learning_rate(RRL_SCHEDULE_WARMUP, 1, 1, 10, 4), 0.25, 1e-15);
}

static void test_loss_closed_forms(void) {
    const float logp[2] = {-1.0f, -2.0f}, old[2] = {-1.5f, -1.5f}, ref[2] = {-1.25f, -2.0f};
    float dlogp[2];
    rrl_row_stats s = {0};
    rrl_grpo g = {.type = RRL_LOSS_DAPO, .epsilon = 0.2, .epsilon_high = 0.3, .beta = 0.5};
    rrl_grpo_row row = {.logp = logp, .old = old, .ref = ref, .recorded = old, .n_tokens = 2, .advantage = 2, .weight = 0.25};
    rrl_grpo_row_loss(dlogp, &s, &g, &row);
    /* token 0: rho = e^0.5 > 1.3 and A > 0: clipped, no policy gradient; d = -0.25. token 1: rho = e^-0.5 < 0.8, A > 0:
       the unclipped branch is the smaller; d = 0 */
    double d = -0.25, k3 = exp(d) - d - 1;
    CHECK_NEAR(s.loss_policy, 0.25 * (-1.3 * 2 - exp(-0.5) * 2), 1e-12);
    CHECK_NEAR(s.loss_kl, 0.25 * 0.5 * k3, 1e-12);
    CHECK_NEAR(dlogp[0], 0.25 * 0.5 * (1 - exp(d)), 1e-7);
    CHECK_NEAR(dlogp[1], 0.25 * -2 * exp(-0.5), 1e-7);
    CHECK_NEAR(s.clip_high, 1, 0);
    CHECK_NEAR(s.clip_low, 0, 0); /* low counts only where A < 0 */
    CHECK_NEAR(s.max_diff, 0.5, 1e-12);
    row.old = NULL;
    row.no_kl = true;
    s = (rrl_row_stats){0};
    row.n_tokens = 1; /* in two parts */
    rrl_grpo_row_loss(dlogp, &s, &g, &row);
    row.logp++, row.ref++, row.recorded++;
    rrl_grpo_row_loss(dlogp + 1, &s, &g, &row);
    CHECK_NEAR(s.loss_policy, 0.25 * -4, 1e-12); /* on policy: rho is 1 exactly */
    CHECK_NEAR(s.loss_kl, 0, 0);
    CHECK_NEAR(s.kl_sum, k3, 1e-12);
}

static void test_weights(void) {
    const int32_t n[4] = {2, 4, 1, 3}, finish[4] = {0, 1, 0, 0};
    double w[4];
    rrl_grpo g = {.type = RRL_LOSS_DAPO, .micro_rows = 2, .accumulation = 2, .max_tokens = 8, .mask_truncated = true};
    rrl_grpo_weights(w, &g, n, finish, 4);
    CHECK_NEAR(w[0], 1 / 10.0, 0); /* masked tokens stay in dapo's denominator */
    CHECK_NEAR(w[1], 0, 0);
    g.type = RRL_LOSS_GRPO;
    rrl_grpo_weights(w, &g, n, finish, 4);
    CHECK_NEAR(w[0], 1 / (2.0 * 2 * 2), 1e-16);
    CHECK_NEAR(w[3], 1 / (2.0 * 3 * 2), 1e-16);
    g.type = RRL_LOSS_BNPO;
    rrl_grpo_weights(w, &g, n, finish, 4);
    CHECK_NEAR(w[0], 1 / (2.0 * 2), 1e-16);
    CHECK_NEAR(w[2], 1 / (4.0 * 2), 1e-16);
    g.type = RRL_LOSS_DR_GRPO;
    rrl_grpo_weights(w, &g, n, finish, 4);
    CHECK_NEAR(w[2], 1 / (2.0 * 8 * 2), 1e-16);
}

/* A step of GROUPS groups on the embedded model with made-up completions. */
typedef struct {
    rrl_device *device;
    rrl_model *model;
    rrl_adapter *adapter;
    rrl_learner *learner;
    rrl_group *groups[GROUPS];
    rrl_prompt_view prompts[GROUPS];
    rrl_row_stats stats[GROUPS * G];
} step;

static const int32_t PROMPT[5] = {1, 70, 80, 90, 100};

static void open_step(step *s, int threads, double max_grad_norm) {
    CHECK_OK(rrl_cpu_open(&s->device, "auto", threads));
    CHECK_OK(rrl_model_open(&s->model, s->device, TINY));
    rrl_adapter_spec spec = {.r = 4, .alpha = 8};
    CHECK_OK(rrl_adapter_open(&s->adapter, s->model, &spec, 7));
    rrl_learner_settings set = {.grpo = {.type = RRL_LOSS_DAPO, .epsilon = 0.2, .epsilon_high = 0.2, .beta = 0.04,
                                         .kl_on_flat_groups = true, .micro_rows = GROUPS * G, .accumulation = 1,
                                         .max_tokens = TOKENS},
                                .group_size = G, .slot_rows = G, .groups = GROUPS, .temperature = 0.7f,
                                .max_grad_norm = max_grad_norm, .max_rows = 64};
    CHECK_OK(rrl_learner_open(&s->learner, s->model, s->adapter, &set));
    for (int g = 0; g < GROUPS; g++) {
        CHECK_OK(rrl_group_create(&s->groups[g], G, G * TOKENS));
        s->prompts[g] = (rrl_prompt_view){PROMPT, 5 - g % 3, (uint64_t)g};
        for (int i = 0; i < G; i++) {
            s->groups[g]->rows[i] = (rrl_completion){.sample = i, .n_tokens = TOKENS, .advantage = i ? 0.5f : -0.5f};
            for (int t = 0; t < TOKENS; t++) s->groups[g]->tokens[i * TOKENS + t] = 3 + (g * 31 + i * 17 + t * 7) % 500;
        }
    }
}

static void close_step(step *s) {
    for (int g = 0; g < GROUPS; g++) rrl_group_free(&s->groups[g]);
    rrl_learner_close(&s->learner);
    rrl_adapter_close(&s->adapter);
    rrl_model_close(&s->model);
    rrl_device_close(&s->device);
}

/* Any number of learners gives the bits of one: their parts joined by the tree between them. */
static void test_tree(void) {
    step s = {0};
    open_step(&s, 1, 0);
    int64_t n = rrl_adapter_size(s.adapter);
    float *whole = calloc((size_t)n, sizeof *whole), *node[GROUPS] = {0};
    CHECK_OK(rrl_learner_gradient(s.learner, s.stats, s.groups, s.prompts, 0, GROUPS, 0));
    memcpy(whole, rrl_learner_gradient_data(s.learner), (size_t)n * sizeof *whole);
    for (int learners = 2; learners <= 5; learners++) {
        int32_t first, count, active = 0;
        for (int i = 0; i < learners; i++) {
            rrl_learner_share(&first, &count, &active, GROUPS, learners, i);
            if (count == 0) continue;
            CHECK_OK(rrl_learner_gradient(s.learner, s.stats, s.groups, s.prompts, first, count, 0));
            node[i] = malloc((size_t)n * sizeof(float));
            memcpy(node[i], rrl_learner_gradient_data(s.learner), (size_t)n * sizeof(float));
        }
        for (int stride = 1; stride < active; stride *= 2)
            for (int i = 0; i + stride < active; i += 2 * stride)
                for (int64_t k = 0; k < n; k++) node[i][k] = node[i][k] + node[i + stride][k];
        CHECK(memcmp(node[0], whole, (size_t)n * sizeof *whole) == 0);
        for (int i = 0; i < GROUPS; i++) {
            free(node[i]);
            node[i] = NULL;
        }
    }
    free(whole);
    close_step(&s);
}

/* KL is exactly 0 while B = 0, and a gradient that is not finite changes nothing. */
static void test_step(void) {
    step s = {0};
    double norm = 0;
    bool finite = false;
    open_step(&s, 2, 1);
    CHECK_OK(rrl_learner_gradient(s.learner, s.stats, s.groups, s.prompts, 0, GROUPS, 0));
    for (int i = 0; i < GROUPS * G; i++) CHECK(s.stats[i].kl_sum == 0 && s.stats[i].loss_kl == 0);
    CHECK_OK(rrl_learner_update(s.learner, &norm, &finite, 1e-3, 0));
    CHECK(finite && norm > 0);
    CHECK_EQ_INT(rrl_learner_updates(s.learner), 1);
    size_t bytes = (size_t)rrl_adapter_size(s.adapter) * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, rrl_adapter_data(s.adapter), bytes);
    rrl_learner_gradient_data(s.learner)[3] = NAN;
    CHECK_OK(rrl_learner_update(s.learner, &norm, &finite, 1e-3, 0));
    CHECK(!finite);
    CHECK_EQ_INT(rrl_learner_updates(s.learner), 1);
    CHECK(memcmp(before, rrl_adapter_data(s.adapter), bytes) == 0);
    free(before);
    close_step(&s);
}

/* First step of AdamW in closed form: the moments' corrections cancel, p1 = p0 (1 - lr wd) - lr g / (|g| + eps). */
static void test_first_adamw_step(void) {
    enum { N = 5 };
    rrl_device *d = NULL;
    const double lr = 0.01, wd = 0.1;
    float p[N] = {1, -2, 0.5f, 3, 0}, m[N] = {0}, v[N] = {0}, g[N] = {0.25f, -1, 2, 0, -0.125f}, p0[N];
    memcpy(p0, p, sizeof p);
    CHECK_OK(rrl_cpu_open(&d, "auto", 1));
    rrl_adamw_args a = {.lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = wd, .clip = 1, .step = 1};
    CHECK_OK(d->ops->adamw(d, p, m, v, g, N, &a));
    for (int i = 0; i < N; i++)
        CHECK_NEAR(p[i], p0[i] * (1 - lr * wd) - lr * g[i] / (fabs((double)g[i]) + 1e-8), 3e-7 * (1 + fabs((double)p0[i])));
    rrl_device_close(&d);
}

/* Which groups are said to have made a step that is left out. */
static void test_nonfinite_groups(void) {
    rrl_group groups[3] = {{.head.count = 2}, {.head.count = 1}, {.head.count = 3}};
    rrl_group *const list[3] = {&groups[0], &groups[1], &groups[2]};
    rrl_row_stats stats[6] = {{0}};
    bool bad[3];
    rrl_report_nonfinite(bad, list, 3, stats);
    CHECK(bad[0] && bad[1] && bad[2]); /* the gradient alone: nobody in particular */
    stats[5].loss_kl = INFINITY;
    rrl_report_nonfinite(bad, list, 3, stats);
    CHECK(!bad[0] && !bad[1] && bad[2]);
    stats[1].loss_policy = NAN;
    rrl_report_nonfinite(bad, list, 3, stats);
    CHECK(bad[0] && !bad[1] && bad[2]);
}

/* Save, change, load: same vectors; a damaged newest one is passed over; another run's is refused. */
static void test_checkpoint(void) {
    step s = {0};
    char dir[] = "/tmp/rrl-checkpoint-XXXXXX", command[128];
    rrl_train_state state = {.step = 5, .updates = 4, .num_tokens = 99, .nonfinite = 1}, got = {0};
    bool found = true;
    int skipped = 0;
    rrl_buffer flight = {0}, back = {0};
    CHECK_OK(rrl_buffer_puts(&flight, "groups in flight"));
    CHECK(mkdtemp(dir) != NULL);
    open_step(&s, 1, 1);
    CHECK_OK(rrl_checkpoint_load(&found, &skipped, dir, NULL, s.learner, s.adapter, &got, &back, "abc"));
    CHECK(!found);
    size_t bytes = (size_t)rrl_adapter_size(s.adapter) * sizeof(float);
    float *before = malloc(bytes);
    rrl_learner_moment(s.learner, 1)[0] = 0.125f;
    memcpy(before, rrl_adapter_data(s.adapter), bytes);
    CHECK_OK(rrl_checkpoint_save(dir, s.learner, s.adapter, &state, &flight, "abc", 2));
    state.step = 6;
    CHECK_OK(rrl_checkpoint_save(dir, s.learner, s.adapter, &state, &flight, "abc", 2));
    state.step = 7;
    CHECK_OK(rrl_checkpoint_save(dir, s.learner, s.adapter, &state, &flight, "abc", 2));
    rrl_adapter_data(s.adapter)[0] += 1;
    rrl_learner_moment(s.learner, 1)[0] = 0;
    snprintf(command, sizeof command, "%s/checkpoints/step-00000007/tensors.safetensors", dir);
    FILE *f = fopen(command, "r+b");
    CHECK(f && fseek(f, -1, SEEK_END) == 0 && fputc(0x5a, f) != EOF && fclose(f) == 0);
    CHECK_OK(rrl_checkpoint_load(&found, &skipped, dir, NULL, s.learner, s.adapter, &got, &back, "abc"));
    CHECK(found);
    CHECK_EQ_INT(skipped, 1);
    CHECK_EQ_INT(got.step, 6);
    CHECK_EQ_INT(got.num_tokens, 99);
    CHECK_EQ_STR(back.data, "groups in flight");
    CHECK_EQ_INT(rrl_learner_updates(s.learner), 4);
    CHECK(memcmp(before, rrl_adapter_data(s.adapter), bytes) == 0);
    CHECK_NEAR(rrl_learner_moment(s.learner, 1)[0], 0.125, 0);
    CHECK_STATUS(rrl_checkpoint_load(&found, &skipped, dir, NULL, s.learner, s.adapter, &got, &back, "other"), RRL_ERR_CONFIG);
    snprintf(command, sizeof command, "%s/checkpoints/step-00000005", dir);
    CHECK(!rrl_dir_exists(command)); /* only the newest two stay */
    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK_EQ_INT(system(command), 0);
    free(before);
    rrl_buffer_free(&flight);
    rrl_buffer_free(&back);
    close_step(&s);
}

int main(int argc, char **argv) {
    const char *dir = argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden";
    rrl_device *d = NULL;
    CHECK_OK(rrl_cpu_open(&d, "auto", 1));
    if (d) CHECK_EQ_INT(golden_learn_all(dir, d), 0);
    rrl_device_close(&d);
    test_shares();
    test_schedule();
    test_learning_rate();
    test_loss_closed_forms();
    test_weights();
    test_tree();
    test_step();
    test_first_adamw_step();
    test_nonfinite_groups();
    test_checkpoint();
    return CHECK_DONE();
}

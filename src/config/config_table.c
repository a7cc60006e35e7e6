/* Expands the rows of config_keys.h. Knows shapes only: no YAML, no checks. */
#include "config/config_table.h"

#include <string.h>

/* Which members a row fills, by type. */
#define DATA_BOOL(list, def, low, high)  .int_default = (def)
#define DATA_INT(list, def, low, high)   .int_default = (def), .int_low = (low), .int_high = (high)
#define DATA_REAL(list, def, low, high)  .real_default = (def), .real_low = (low), .real_high = (high)
#define DATA_TEXT(list, def, low, high)  .text_default = (def)
#define DATA_PATH(list, def, low, high)  .text_default = (def)
#define DATA_NAME(list, def, low, high)  .text_default = (def)
#define DATA_ENUM(list, def, low, high)  .int_default = (def), .texts = RRL_ENUM_TEXTS(list)
#define DATA_TEXTS(list, def, low, high) .text_default = (def)
#define DATA_INTS(list, def, low, high)  .text_default = (def), .int_low = (low), .int_high = (high)
#define DATA_REALS(list, def, low, high) .text_default = (def), .real_low = (low), .real_high = (high)

#define X(key, ktype, list, def, low, high, kclass, kunit, kdoc)                                             \
    {.name = #key,                                                                                           \
     .type = RRL_KEY_##ktype,                                                                                \
     .cls = RRL_CLASS_##kclass,                                                                              \
     .offset = offsetof(OWNER, key),                                                                         \
     .unit = (kunit),                                                                                        \
     .doc = (kdoc),                                                                                          \
     DATA_##ktype(list, def, low, high)},

#define OWNER rrl_config
static const rrl_key ROOT_KEYS[] = {RRL_ROOT_KEYS(X)};
#undef OWNER
#define OWNER rrl_dataset_config
static const rrl_key DATASET_KEYS[] = {RRL_DATASET_KEYS(X)};
#undef OWNER
#define OWNER rrl_model_section
static const rrl_key MODEL_KEYS[] = {RRL_MODEL_KEYS(X)};
#undef OWNER
#define OWNER rrl_generation_config
static const rrl_key GENERATION_KEYS[] = {RRL_GENERATION_KEYS(X)};
#undef OWNER
#define OWNER rrl_corruption_config
static const rrl_key CORRUPTION_KEYS[] = {RRL_CORRUPTION_KEYS(X)};
#undef OWNER
#define OWNER rrl_member_config
static const rrl_key MEMBER_KEYS[] = {RRL_MEMBER_KEYS(X)};
#undef OWNER
#define OWNER rrl_verifier_config
static const rrl_key VERIFIER_KEYS[] = {RRL_VERIFIER_KEYS(X)};
#undef OWNER
#define OWNER rrl_reward_config
static const rrl_key REWARD_KEYS[] = {RRL_REWARD_KEYS(X)};
#undef OWNER
#define OWNER rrl_evaluation_config
static const rrl_key EVALUATION_KEYS[] = {RRL_EVALUATION_KEYS(X)};
#undef OWNER
#define OWNER rrl_training_config
static const rrl_key TRAINING_KEYS[] = {RRL_TRAINING_KEYS(X)};
#undef OWNER
#define OWNER rrl_lora_config
static const rrl_key LORA_KEYS[] = {RRL_LORA_KEYS(X)};
#undef OWNER
#define OWNER rrl_experiment_config
static const rrl_key EXPERIMENT_KEYS[] = {RRL_EXPERIMENT_KEYS(X)};
#undef OWNER
#define OWNER rrl_arm_config
static const rrl_key ARM_KEYS[] = {RRL_ARM_KEYS(X)};
#undef OWNER
#define OWNER rrl_hypothesis_config
static const rrl_key HYPOTHESIS_KEYS[] = {RRL_HYPOTHESIS_KEYS(X)};
#undef OWNER
#define OWNER rrl_parallel_config
static const rrl_key PARALLEL_KEYS[] = {RRL_PARALLEL_KEYS(X)};
#undef OWNER
#define OWNER rrl_roles_config
static const rrl_key ROLES_KEYS[] = {RRL_ROLES_KEYS(X)};
#undef OWNER
#define OWNER rrl_records_config
static const rrl_key RECORDS_KEYS[] = {RRL_RECORDS_KEYS(X)};
#undef OWNER
#undef X

#define COUNT(a)    (sizeof(a) / sizeof *(a))
#define KEYS(a)     .keys = (a), .n_keys = COUNT(a)
#define CHILDREN(a) .children = (a), .n_children = COUNT(a)
#define ONE(owner, member, kind)                                                                             \
    .name = #member, .section = &(kind), .offset = offsetof(owner, member), .count_offset = RRL_NO_OFFSET
#define LIST(owner, member, kind)                                                                            \
    .name = #member, .section = &(kind), .offset = offsetof(owner, member),                                  \
    .count_offset = offsetof(owner, n_##member)

static const rrl_section DATASET = {
    KEYS(DATASET_KEYS), .size = sizeof(rrl_dataset_config),
    .given_offset = offsetof(rrl_dataset_config, given), .optional = true,
    .doc = "A pool of questions: rows with a question and its reference answer."};
static const rrl_section MODEL = {KEYS(MODEL_KEYS), .size = sizeof(rrl_model_section),
                                  .given_offset = RRL_NO_OFFSET,
                                  .doc = "The policy's base model and how a question becomes a prompt."};
static const rrl_section GENERATION = {KEYS(GENERATION_KEYS), .size = sizeof(rrl_generation_config),
                                       .given_offset = RRL_NO_OFFSET,
                                       .doc = "How completions are sampled, in training and in evaluation."};
static const rrl_section CORRUPTION = {
    KEYS(CORRUPTION_KEYS), .size = sizeof(rrl_corruption_config), .given_offset = RRL_NO_OFFSET,
    .shorthand = "kind",
    .doc = "An error put into a member's reward. The kind's bare name may stand "
           "in the section's place: `corruption: flip`."};

static const rrl_child MEMBER_CHILDREN[] = {{ONE(rrl_member_config, corruption, CORRUPTION)}};
static const rrl_section MEMBER = {KEYS(MEMBER_KEYS),
                                   CHILDREN(MEMBER_CHILDREN),
                                   .size = sizeof(rrl_member_config),
                                   .given_offset = RRL_NO_OFFSET,
                                   .shorthand = "kind",
                                   .doc =
                                       "One verifier of the ensemble; its bare kind may stand in its place."};
static const rrl_child TRAINING_VERIFIER_CHILDREN[] = {
    {LIST(rrl_verifier_config, members, MEMBER),
     .default_text = "[{kind: rule}, {kind: rule}, {kind: rule}]"}};
static const rrl_section TRAINING_VERIFIER = {KEYS(VERIFIER_KEYS), CHILDREN(TRAINING_VERIFIER_CHILDREN),
                                              .size = sizeof(rrl_verifier_config),
                                              .given_offset = RRL_NO_OFFSET,
                                              .doc = "An ensemble of members. The evaluation verifier is the "
                                                     "independent judge: one member, never corrupted."};
static const rrl_child EVALUATION_VERIFIER_CHILDREN[] = {
    {LIST(rrl_verifier_config, members, MEMBER), .default_text = "[{kind: rule}]"}};
static const rrl_section EVALUATION_VERIFIER = {KEYS(VERIFIER_KEYS), CHILDREN(EVALUATION_VERIFIER_CHILDREN),
                                                .size = sizeof(rrl_verifier_config),
                                                .given_offset = RRL_NO_OFFSET};

static const rrl_section REWARD = {KEYS(REWARD_KEYS), .size = sizeof(rrl_reward_config),
                                   .given_offset = offsetof(rrl_reward_config, given),
                                   .doc = "From the ensemble's reward to the one the policy is trained on."};
static const rrl_section EVALUATION = {KEYS(EVALUATION_KEYS), .size = sizeof(rrl_evaluation_config),
                                       .given_offset = RRL_NO_OFFSET, .doc = "Metrics of an evaluation."};
static const rrl_section LORA = {KEYS(LORA_KEYS), .size = sizeof(rrl_lora_config),
                                 .given_offset = RRL_NO_OFFSET,
                                 .doc = "The adapter: y = Wx + (alpha / r) B A x."};
static const rrl_child TRAINING_CHILDREN[] = {{ONE(rrl_training_config, lora, LORA)}};
static const rrl_section TRAINING = {
    KEYS(TRAINING_KEYS), CHILDREN(TRAINING_CHILDREN), .size = sizeof(rrl_training_config),
    .given_offset = RRL_NO_OFFSET,
    .doc = "GRPO updates. batch_size * gradient_accumulation_steps rows an update."};

static const rrl_child ARM_CHILDREN[] = {{ONE(rrl_arm_config, corruption, CORRUPTION)},
                                         {LIST(rrl_arm_config, members, CORRUPTION)}};
static const rrl_section ARM = {KEYS(ARM_KEYS), CHILDREN(ARM_CHILDREN), .size = sizeof(rrl_arm_config),
                                .given_offset = RRL_NO_OFFSET,
                                .doc = "One kind of corruption: either `corruption` for all members, whose "
                                       "probability is the level, or `members`, "
                                       "a fixed corruption for each (then there are no levels)."};
static const rrl_child EXPERIMENT_CHILDREN[] = {
    {ONE(rrl_experiment_config, corruption, CORRUPTION)},
    {LIST(rrl_experiment_config, arms, ARM)},
    {ONE(rrl_experiment_config, robust_reward, REWARD), .default_text = "{strategy: combined}"},
    {ONE(rrl_experiment_config, train_dataset, DATASET)},
    {ONE(rrl_experiment_config, qualification_dataset, DATASET)}};
static const rrl_section EXPERIMENT = {KEYS(EXPERIMENT_KEYS), CHILDREN(EXPERIMENT_CHILDREN),
                                       .size = sizeof(rrl_experiment_config), .given_offset = RRL_NO_OFFSET,
                                       .doc = "A study: arms x levels x seeds x methods."};

static const rrl_section HYPOTHESIS = {KEYS(HYPOTHESIS_KEYS), .size = sizeof(rrl_hypothesis_config),
                                       .given_offset = RRL_NO_OFFSET,
                                       .doc = "A comparison stated before the study runs."};
static const rrl_section ROLES = {KEYS(ROLES_KEYS), .size = sizeof(rrl_roles_config),
                                  .given_offset = RRL_NO_OFFSET,
                                  .doc = "Ranks of a team by role; all 0 = every rank does everything."};
static const rrl_child PARALLEL_CHILDREN[] = {{ONE(rrl_parallel_config, roles, ROLES)}};
static const rrl_section PARALLEL = {KEYS(PARALLEL_KEYS), CHILDREN(PARALLEL_CHILDREN),
                                     .size = sizeof(rrl_parallel_config), .given_offset = RRL_NO_OFFSET,
                                     .doc = "How ranks share the work; never visible in the numbers."};
static const rrl_section RECORDS = {KEYS(RECORDS_KEYS), .size = sizeof(rrl_records_config),
                                    .given_offset = RRL_NO_OFFSET, .doc = "What is written, and how often."};

static const rrl_child ROOT_CHILDREN[] = {{ONE(rrl_config, dataset, DATASET)},
                                          {ONE(rrl_config, model, MODEL)},
                                          {ONE(rrl_config, generation, GENERATION)},
                                          {ONE(rrl_config, training_verifier, TRAINING_VERIFIER)},
                                          {ONE(rrl_config, evaluation_verifier, EVALUATION_VERIFIER)},
                                          {ONE(rrl_config, reward, REWARD)},
                                          {ONE(rrl_config, evaluation, EVALUATION)},
                                          {ONE(rrl_config, training, TRAINING)},
                                          {ONE(rrl_config, experiment, EXPERIMENT)},
                                          {LIST(rrl_config, hypotheses, HYPOTHESIS)},
                                          {ONE(rrl_config, parallel, PARALLEL)},
                                          {ONE(rrl_config, records, RECORDS)}};
static const rrl_section ROOT = {KEYS(ROOT_KEYS), CHILDREN(ROOT_CHILDREN), .size = sizeof(rrl_config),
                                 .given_offset = RRL_NO_OFFSET, .doc = "The top of the file."};

const rrl_section *rrl_config_root(void) {
    return &ROOT;
}

const rrl_key *rrl_section_key(const rrl_section *s, const char *name) {
    for (size_t i = 0; i < s->n_keys; i++)
        if (strcmp(s->keys[i].name, name) == 0) return &s->keys[i];
    return NULL;
}

const rrl_child *rrl_section_child(const rrl_section *s, const char *name) {
    for (size_t i = 0; i < s->n_children; i++)
        if (strcmp(s->children[i].name, name) == 0) return &s->children[i];
    return NULL;
}

bool rrl_child_is_list(const rrl_child *c) {
    return c->count_offset != RRL_NO_OFFSET;
}

void *rrl_key_at(const rrl_key *k, void *section) {
    return (char *)section + k->offset;
}

void *rrl_child_at(const rrl_child *c, void *section, int64_t i) {
    char *at = (char *)section + c->offset;
    if (!rrl_child_is_list(c)) return at;
    char *first;
    memcpy(&first, at, sizeof first); /* the list's own pointer type is not known here */
    return first + (size_t)i * c->section->size;
}

int64_t rrl_child_count(const rrl_child *c, const void *section) {
    if (!rrl_child_is_list(c)) return 1;
    int64_t n;
    memcpy(&n, (const char *)section + c->count_offset, sizeof n);
    return n;
}

const char *rrl_enum_text(const char *const *texts, int v) {
    for (int i = 0; texts[i]; i++)
        if (i == v) return texts[i];
    return "?";
}

int rrl_enum_value(const char *const *texts, const char *text) {
    for (int i = 0; texts[i]; i++)
        if (strcmp(texts[i], text) == 0) return i;
    return -1;
}

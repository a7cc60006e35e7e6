/* Configuration: YAML in the reference project's dialect (a superset), strict, resolved, with a digest.
 *
 * The keys stand in config_keys.h. An engine sees no config: callers copy what it needs into its own arguments. */
#ifndef RRL_CONFIG_H
#define RRL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/config_keys.h"
#include "rrl/determinism.h"
#include "rrl/shape.h"
#include "rrl/status.h"
#include "rrl/verify.h"

#define RRL_BACKEND_LIST(X) X(RRL_BACKEND_TRANSFORMER, "transformers") X(RRL_BACKEND_FIXTURE, "fixture")
#define RRL_PROMPT_FORMAT_LIST(X) X(RRL_PROMPT_CHAT, "chat") X(RRL_PROMPT_TEXT, "text")
#define RRL_DEVICE_LIST(X) X(RRL_DEVICE_AUTO, "auto") X(RRL_DEVICE_CPU, "cpu") X(RRL_DEVICE_CUDA, "cuda")
#define RRL_DTYPE_LIST(X)                                                                                              \
    X(RRL_DTYPE_AUTO, "auto") X(RRL_DTYPE_F32, "float32") X(RRL_DTYPE_BF16, "bfloat16") X(RRL_DTYPE_F16, "float16")
#define RRL_KV_DTYPE_LIST(X) X(RRL_KV_AUTO, "auto") X(RRL_KV_F32, "float32") X(RRL_KV_BF16, "bfloat16")
#define RRL_MEMBER_LIST(X) X(RRL_MEMBER_RULE, "rule") X(RRL_MEMBER_EXACT, "exact")
#define RRL_MISSING_LIST(X) X(RRL_MISSING_ZERO, "zero") X(RRL_MISSING_EXCLUDE, "exclude")
#define RRL_SCHEDULER_LIST(X)                                                                                          \
    X(RRL_SCHEDULE_LINEAR, "linear") X(RRL_SCHEDULE_CONSTANT, "constant") X(RRL_SCHEDULE_COSINE, "cosine")             \
    X(RRL_SCHEDULE_WARMUP, "constant_with_warmup")
#define RRL_LOSS_LIST(X)                                                                                               \
    X(RRL_LOSS_DAPO, "dapo") X(RRL_LOSS_GRPO, "grpo") X(RRL_LOSS_BNPO, "bnpo") X(RRL_LOSS_DR_GRPO, "dr_grpo")
/* Values of model.chat_template that are no file: X(function, name, SHA-256 of the template's text in
 * tokenizer_config.json). */
#define RRL_CHAT_TEMPLATE_LIST(X)                                                                                      \
    X(smollm2, "smollm2", "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788")                          \
    X(qwen25, "qwen2.5", "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f")                           \
    X(chatml, "chatml", "153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3")
#define RRL_COLLECTIVES_LIST(X)                                                                                        \
    X(RRL_COLLECTIVES_AUTO, "auto") X(RRL_COLLECTIVES_MPI, "mpi") X(RRL_COLLECTIVES_NCCL, "nccl")
#define RRL_MODE_LIST(X) X(RRL_MODE_TRAIN, "train") X(RRL_MODE_FIXTURE, "fixture")

#define X(name, text) name,
typedef enum { RRL_BACKEND_LIST(X) RRL_BACKEND_COUNT_ } rrl_backend;
typedef enum { RRL_PROMPT_FORMAT_LIST(X) RRL_PROMPT_COUNT_ } rrl_prompt_format;
typedef enum { RRL_DEVICE_LIST(X) RRL_DEVICE_COUNT_ } rrl_device_choice;
typedef enum { RRL_DTYPE_LIST(X) RRL_DTYPE_COUNT_ } rrl_dtype_choice;
typedef enum { RRL_KV_DTYPE_LIST(X) RRL_KV_COUNT_ } rrl_kv_choice;
typedef enum { RRL_MEMBER_LIST(X) RRL_MEMBER_COUNT_ } rrl_member_kind;
typedef enum { RRL_MISSING_LIST(X) RRL_MISSING_COUNT_ } rrl_missing_rule;
typedef enum { RRL_SCHEDULER_LIST(X) RRL_SCHEDULE_COUNT_ } rrl_lr_scheduler;
typedef enum { RRL_LOSS_LIST(X) RRL_LOSS_COUNT_ } rrl_loss_type;
typedef enum { RRL_COLLECTIVES_LIST(X) RRL_COLLECTIVES_COUNT_ } rrl_collectives_choice;
typedef enum { RRL_MODE_LIST(X) RRL_MODE_COUNT_ } rrl_mode;
#undef X

typedef struct { char **v; int64_t n; } rrl_texts;
typedef struct { int64_t *v; int64_t n; } rrl_ints;
typedef struct { double *v; int64_t n; } rrl_reals;

/* One member per key; the C type of each TYPE. */
#define RRL_CTYPE_BOOL bool
#define RRL_CTYPE_INT int64_t
#define RRL_CTYPE_REAL double
#define RRL_CTYPE_TEXT char *
#define RRL_CTYPE_PATH char * /* absolute once resolved, "" = none */
#define RRL_CTYPE_NAME char * /* a known name or hub id; absolute = a path */
#define RRL_CTYPE_ENUM int
#define RRL_CTYPE_TEXTS rrl_texts
#define RRL_CTYPE_INTS rrl_ints
#define RRL_CTYPE_REALS rrl_reals
#define X(key, type, list, def, low, high, cls, unit, doc) RRL_CTYPE_##type key;

typedef struct { RRL_DATASET_KEYS(X) bool given; } rrl_dataset_config; /* given: the section stands in the file */
typedef struct { RRL_MODEL_KEYS(X) } rrl_model_section;
typedef struct { RRL_GENERATION_KEYS(X) } rrl_generation_config;
typedef struct { RRL_CORRUPTION_KEYS(X) } rrl_corruption_config;
typedef struct { RRL_MEMBER_KEYS(X) rrl_corruption_config corruption; } rrl_member_config;
typedef struct { RRL_VERIFIER_KEYS(X) rrl_member_config *members; int64_t n_members; } rrl_verifier_config;
typedef struct { RRL_REWARD_KEYS(X) bool given; } rrl_reward_config;
typedef struct { RRL_EVALUATION_KEYS(X) } rrl_evaluation_config;
typedef struct { RRL_LORA_KEYS(X) } rrl_lora_config;
typedef struct { RRL_TRAINING_KEYS(X) rrl_lora_config lora; } rrl_training_config;
typedef struct {
    RRL_ARM_KEYS(X)
    rrl_corruption_config corruption; /* one for all members, probability = the level */
    rrl_corruption_config *members;   /* fixed, one per member, then levels.n is 0; n_members 0 = none */
    int64_t n_members;
} rrl_arm_config;
typedef struct {
    RRL_EXPERIMENT_KEYS(X)
    rrl_corruption_config corruption;
    rrl_arm_config *arms;
    int64_t n_arms;
    rrl_reward_config robust_reward; /* strategy combined unless given */
    rrl_dataset_config train_dataset, qualification_dataset;
} rrl_experiment_config;
typedef struct { RRL_HYPOTHESIS_KEYS(X) } rrl_hypothesis_config;
typedef struct { RRL_ROLES_KEYS(X) } rrl_roles_config;
typedef struct { RRL_PARALLEL_KEYS(X) rrl_roles_config roles; } rrl_parallel_config;
typedef struct { RRL_RECORDS_KEYS(X) } rrl_records_config;

/* One config, resolved: every default is filled in, experiment.arms holds at least one arm with its levels and methods
 * (mode fixture: the one method RRL_METHOD_AUDIT), slot_rows and epsilon_high hold the value that applies, relative
 * paths are absolute.
 * dataset: evaluation questions where experiment.train_dataset is given, else the only pool (training for `train`,
 * evaluation for `eval`). The team part (shared by the conditions of a study) is model and parallel. */
typedef struct {
    RRL_ROOT_KEYS(X)
    rrl_dataset_config dataset;
    rrl_model_section model;
    rrl_generation_config generation;
    rrl_verifier_config training_verifier, evaluation_verifier;
    rrl_reward_config reward;
    rrl_evaluation_config evaluation;
    rrl_training_config training;
    rrl_experiment_config experiment;
    rrl_hypothesis_config *hypotheses;
    int64_t n_hypotheses;
    rrl_parallel_config parallel;
    rrl_records_config records;
    char *file; /* where it came from, for messages; "" if nowhere */
    char *base; /* folder that relative paths and models/, data/ are under */
    void *arena;
} rrl_config;
#undef X

/* The method of mode fixture. */
#define RRL_METHOD_AUDIT "fixture_verifier_audit"

/** The texts of an enum list, ending with NULL: one table shape serves every list. */
#define RRL_ENUM_TEXTS(list) ((const char *const[]){list(RRL_ENUM_TEXT_) NULL})
#define RRL_ENUM_TEXT_(name, text) text,
/** Text of value v, "?" outside the list; and the value of a text, -1 if the list does not have it. */
const char *rrl_enum_text(const char *const *texts, int v);
int rrl_enum_value(const char *const *texts, const char *text);

/** Read a config file and apply `sets` ("a.b=value", in order). Strict: an unknown or repeated key, a wrong type, an
 *  out-of-range value or NaN ends with file, line, key, the nearest known key or the range. Relative paths resolve
 *  against the file's folder, or its parent where that folder is called configs; in sets against the working
 *  directory. A set's value is YAML (flow style), text as it stands where the key holds text; "[i]" picks a list
 *  element, i = length adds one. Errors: RRL_ERR_CONFIG; no such file: RRL_ERR_CONFIG too. The caller closes it. */
rrl_status rrl_config_open(rrl_config **out, const char *path, const char *const *sets, int n_sets);
/** The same from text; where = name for messages, base = folder for relative paths (NULL = working directory). An
 *  empty document is refused, "{}" is all defaults. */
rrl_status rrl_config_parse(rrl_config **out, const char *text, size_t len, const char *where, const char *base,
                            const char *const *sets, int n_sets);
rrl_status rrl_config_copy(rrl_config **out, const rrl_config *c); /* deep; for a condition of a study */
void rrl_config_close(rrl_config **c);
/** Zeroed memory, and a copy of text, that live as long as c: for changes to a copy. */
rrl_status rrl_config_memory(void *out, rrl_config *c, size_t count, size_t size);
rrl_status rrl_config_text(char **out, rrl_config *c, const char *text);

/* What a config is checked for: the command's needs. */
typedef enum { RRL_FOR_TRAIN, RRL_FOR_EVAL, RRL_FOR_STUDY, RRL_FOR_QUALIFY } rrl_purpose;
/** All checks across keys. Errors: RRL_ERR_CONFIG with both keys named. */
rrl_status rrl_config_check(const rrl_config *c, rrl_purpose purpose);
/** Resolved YAML of every key (it parses back to the same config); paths relative to `base` where below it (NULL = all
 *  absolute). A data set that was not given is left out. The caller frees *out. */
rrl_status rrl_config_yaml(char **out, const rrl_config *c, const char *base);
/** SHA-256 hex of the resolved RESULT keys (sorted "key=value\n", shortest numbers) followed by `extra` lines (digests
 *  of model, data, adapter, numeric path; NULL = none). */
rrl_status rrl_config_digest(char out[65], const rrl_config *c, const char *extra);
/** The RESULT keys that differ, "key: old -> new" lines, between two resolved YAML texts; *out NULL if none. */
rrl_status rrl_config_difference(char **out, const char *yaml_old, const char *yaml_new);
/** Notes a user should see once at start, a line each, may be "": keys that are set and have no effect (bf16, fp16,
 *  sample_batch_size, ...), float16, members whose events coincide. The caller frees *out. */
rrl_status rrl_config_notes(char **out, const rrl_config *c);
/** docs/configuration.md from the table. The caller frees *out. */
rrl_status rrl_config_reference(char **out);

#endif

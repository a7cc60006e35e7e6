/* The lists expanded to descriptors. A row's packed form is that of a little-endian machine, which this code
 * needs. */
#include "record/tables.h"

#include <stdint.h>

#include "learn/training_row.h"
#include "record/schema.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packed rows are little-endian");

#define KIND_OF(type)                                                                                        \
    _Generic((type){0},                                                                                                \
        uint8_t: RRL_COLUMN_U8,                                                                                        \
        uint16_t: RRL_COLUMN_U16,                                                                                      \
        uint32_t: RRL_COLUMN_U32,                                                                                      \
        uint64_t: RRL_COLUMN_U64,                                                                                      \
        int32_t: RRL_COLUMN_I32,                                                                                       \
        int64_t: RRL_COLUMN_I64,                                                                                       \
        float: RRL_COLUMN_F32,                                                                                         \
        double: RRL_COLUMN_F64,                                                                                        \
        char *: RRL_COLUMN_TEXT,                                                                                       \
        const char *: RRL_COLUMN_TEXT)

/* The HDF5 types named in schema.h. hdf5.h is not included here, so these names are plain words. */
enum {
    KIND_H5T_STD_U8LE = RRL_COLUMN_U8,
    KIND_H5T_STD_U16LE = RRL_COLUMN_U16,
    KIND_H5T_STD_U32LE = RRL_COLUMN_U32,
    KIND_H5T_STD_U64LE = RRL_COLUMN_U64,
    KIND_H5T_STD_I32LE = RRL_COLUMN_I32,
    KIND_H5T_STD_I64LE = RRL_COLUMN_I64,
    KIND_H5T_IEEE_F32LE = RRL_COLUMN_F32
};
#define X(field, type, h5, unit, missing, doc)                                                               \
    _Static_assert((int)KIND_##h5 == (int)KIND_OF(type), "type of " #field);
RRL_ROLLOUT_COLUMNS(X)
RRL_VERDICT_COLUMNS(X)
#undef X

static const rrl_column rollout_columns[] = {
#define X(field, type, h5, unit, missing, doc)                                                               \
    {#field, KIND_OF(type), offsetof(rrl_rollout_row, field), true, unit, missing, doc},
    RRL_ROLLOUT_COLUMNS(X)
#undef X
};

static const rrl_column verdict_columns[] = {
#define X(field, type, h5, unit, missing, doc)                                                               \
    {#field, KIND_OF(type), offsetof(rrl_verdict_row, field), true, unit, missing, doc},
    RRL_VERDICT_COLUMNS(X)
#undef X
};

/* Every double of a training row is NaN where it is undefined. */
#define MISSING_OF(type) (KIND_OF(type) == RRL_COLUMN_F64 ? "NaN" : "never")
static const rrl_column training_columns[] = {
#define X(field, type, name, unit, digest, doc)                                                              \
    {name, KIND_OF(type), offsetof(rrl_training_row, field), digest, unit, MISSING_OF(type), doc},
    RRL_TRAINING_COLUMNS(X)
#undef X
};

static const rrl_column question_columns[] = {
#define X(field, type, name, unit, missing, doc)                                                             \
    {name, KIND_OF(type), offsetof(rrl_record_question, field), true, unit, missing, doc},
    RRL_QUESTION_COLUMNS(X)
#undef X
};

static const rrl_column member_columns[] = {
#define X(field, type, name, unit, missing, doc)                                                             \
    {name, KIND_OF(type), offsetof(rrl_record_member, field), true, unit, missing, doc},
    RRL_MEMBER_COLUMNS(X)
#undef X
};

static const rrl_column metric_columns[] = {
#define X(field, type, name, unit, missing, doc)                                                             \
    {name, KIND_OF(type), offsetof(rrl_metric, field), true, unit, missing, doc},
    RRL_METRIC_COLUMNS(X)
#undef X
};

#define TABLE(name, columns, row, doc)                                                                       \
    { name, doc, columns, sizeof columns / sizeof *columns, sizeof(row) }
const rrl_table rrl_table_rollouts =
    TABLE("rollouts", rollout_columns, rrl_rollout_row, "one row a completion, in schedule order");
const rrl_table rrl_table_verdicts =
    TABLE("verdicts", verdict_columns, rrl_verdict_row, "one row a completion and member, in that order");
const rrl_table rrl_table_training =
    TABLE("training", training_columns, rrl_training_row, "one row an optimiser update");
const rrl_table rrl_table_questions = TABLE("questions", question_columns, rrl_record_question,
                                            "pool that the column question of rollouts points into");
const rrl_table rrl_table_members =
    TABLE("members", member_columns, rrl_record_member, "the verifier ensemble");
const rrl_table rrl_table_metrics = TABLE("metrics", metric_columns, rrl_metric, "metrics of the evaluation");
#undef TABLE

const rrl_column rrl_column_text = {
    "text",
    RRL_COLUMN_TEXT,
    0,
    true,
    "",
    "never",
    "decoded completion, row-aligned with rollouts; its length is text_bytes"};
const rrl_column rrl_column_answer = {
    "answer",
    RRL_COLUMN_TEXT,
    0,
    true,
    "",
    "empty; answer_bytes is -1",
    "extracted answer, row-aligned with rollouts; its length is answer_bytes"};
const rrl_column rrl_column_tokens = {"tokens",
                                      RRL_COLUMN_I32,
                                      0,
                                      true,
                                      "",
                                      "never",
                                      "token ids, completion after completion from token_offset"};
const rrl_column rrl_column_logprobs = {
    "logprobs",
    RRL_COLUMN_F32,
    0,
    true,
    "nats",
    "never",
    "log-prob of each token at the sampling temperature, before penalty, top-k and top-p"};

const rrl_column rrl_column_segment_rollouts = {
    "segment_rollouts",
    RRL_COLUMN_I64,
    0,
    false,
    "completions",
    "never",
    "completions that came with each row of training; in segments alone, where a resume may have to cut one"};

/* kind, bytes, numpy's name */
static const struct {
    size_t bytes;
    const char *text;
} KINDS[] = {
    [RRL_COLUMN_U8] = {1, "uint8"},    [RRL_COLUMN_U16] = {2, "uint16"},  [RRL_COLUMN_U32] = {4, "uint32"},
    [RRL_COLUMN_U64] = {8, "uint64"},  [RRL_COLUMN_I32] = {4, "int32"},   [RRL_COLUMN_I64] = {8, "int64"},
    [RRL_COLUMN_F32] = {4, "float32"}, [RRL_COLUMN_F64] = {8, "float64"}, [RRL_COLUMN_TEXT] = {0, "text"},
};

size_t rrl_column_bytes(rrl_column_kind kind) {
    return KINDS[kind].bytes;
}

const char *rrl_column_kind_text(rrl_column_kind kind) {
    return KINDS[kind].text;
}

const void *rrl_column_at(const rrl_column *c, const void *row) {
    return (const char *)row + c->offset;
}

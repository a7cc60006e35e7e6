/* Table descriptors: the column lists of schema.h and training_row.h as data. Writer, reader, digest and docs
 * walk these; nothing else knows a column. */
#ifndef RRL_RECORD_TABLES_H
#define RRL_RECORD_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "rrl/status.h"

typedef enum {
    RRL_COLUMN_U8,
    RRL_COLUMN_U16,
    RRL_COLUMN_U32,
    RRL_COLUMN_U64,
    RRL_COLUMN_I32,
    RRL_COLUMN_I64,
    RRL_COLUMN_F32,
    RRL_COLUMN_F64,
    RRL_COLUMN_TEXT /* char * in memory; fixed-length UTF-8 in a file */
} rrl_column_kind;

typedef struct {
    const char *name; /* in the file */
    rrl_column_kind kind;
    size_t offset; /* of the field in the row struct */
    bool digest;   /* a pure function of the run */
    const char *unit, *missing, *meaning;
} rrl_column;

typedef struct {
    const char *name; /* of the dataset */
    const char *meaning;
    const rrl_column *columns;
    int n_columns;
    size_t row_bytes; /* of the row struct */
} rrl_table;

extern const rrl_table rrl_table_rollouts, rrl_table_verdicts, rrl_table_training;
extern const rrl_table rrl_table_questions, rrl_table_members, rrl_table_metrics;

/* The datasets beside the tables, of a set of completions. */
extern const rrl_column rrl_column_text, rrl_column_answer, rrl_column_tokens, rrl_column_logprobs;
/* Of a segment: completions that came with each training row. */
extern const rrl_column rrl_column_segment_rollouts;

/** Bytes of a value of this kind; 0 for texts, whose width is the file's. */
size_t rrl_column_bytes(rrl_column_kind kind);
/** Name of the kind as numpy writes it ("uint64", "float32"; "text"). */
const char *rrl_column_kind_text(rrl_column_kind kind);
/** The field of column c in a row; for texts the pointer to the char *. */
const void *rrl_column_at(const rrl_column *c, const void *row);

#endif

/* Question pools: JSONL files, subsets by published row numbers, the Hugging Face shuffle, and a synthetic
 * generator. */
#ifndef RRL_DATA_QUESTIONS_H
#define RRL_DATA_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/status.h"

typedef struct {
    char *id;        /* unique in its pool */
    char *question;  /* text, UTF-8 */
    char *reference; /* the answer as the data set has it, after answer_separator; "1,234" stays as it is */
    char *metadata;  /* JSON object as the file writes it, "{}" if none: class, steps, ... */
    char *klass;     /* metadata.class: a text as it is, True, False, None, a number as written; "" if none */
    int64_t line;    /* of the file, from 1; 0 for a question that was made */
} rrl_question;

typedef struct {
    rrl_question *rows;
    int64_t n;
    char digest[65]; /* SHA-256 hex over id, question, reference, metadata of the rows in order (u32 length +
                        bytes) */
} rrl_questions;

/* How to read a pool; strings are borrowed. Zero / NULL = default, but for shuffle_seed: set it to -1. */
typedef struct {
    const char *path;            /* JSONL file */
    const char *question_column; /* "question" */
    const char *answer_column;   /* "answer" */
    const char *
        answer_separator; /* e.g. "####": the reference is what follows the last one, trimmed; NULL = whole */
    const char
        *id_column; /* "id"; where a row has none: id_prefix + first 16 hex digits of SHA-256(question) */
    const char *id_prefix; /* "" */
    const char *pools;     /* pools.json path, with `pool` */
    const char *pool;      /* name of a pool in pools.json: its row numbers of the file are taken, in order */
    int64_t shuffle_seed;  /* < 0 none; else numpy default_rng(seed).permutation(n) order, before limit */
    int64_t limit;         /* 0 = all */
} rrl_questions_spec;

/** Read a pool. A column is a text or a number; a blank line is refused but at the end. Errors: RRL_ERR_DATA
 * with file and line: cut line, no object, missing column, empty question or reference, repeated id, repeated
 * question, repeated key, nesting above 64, empty set, pool digest mismatch. Only the pool's own rows are
 * looked at where one is named. */
rrl_status rrl_questions_open(rrl_questions **out, const rrl_questions_spec *spec);
void rrl_questions_close(rrl_questions **q);
/** RRL_ERR_DATA naming ids when two pools share an id or a question. */
rrl_status rrl_questions_disjoint(const rrl_questions *a, const char *name_a, const rrl_questions *b,
                                  const char *name_b);
/** order [n] of numpy's default_rng(seed).permutation(n) (PCG64, SeedSequence): the Hugging Face shuffle. */
rrl_status rrl_numpy_permutation(int64_t *order, int64_t n, uint64_t seed);
/** n questions "What is A op B?" with exact (also fractional) answers: the fixture's and smoke data. class =
 * addition, subtraction, multiplication, division in turn; A, B in 0..99, B not 0 in a division; no question
 * twice; ids are id_prefix (NULL = "") + 5 digits. Sets of two seeds may share questions: for disjoint ones
 * divide one set. Errors: RRL_ERR_RANGE (n outside 1 to 20000). */
rrl_status rrl_questions_synthetic(rrl_questions **out, int64_t n, uint64_t seed, const char *id_prefix);

#endif

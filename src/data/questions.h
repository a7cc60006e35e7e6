/* Question pools: JSONL files, subsets by published row numbers, the Hugging Face shuffle, and a synthetic generator. */
#ifndef RRL_DATA_QUESTIONS_H
#define RRL_DATA_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/status.h"

typedef struct {
    char *id;        /* unique in its pool */
    char *question;  /* text, UTF-8 */
    char *reference; /* the answer as the data set has it, after answer_separator */
    char *metadata;  /* JSON object as text, "{}" if none: class, steps, ... */
    char *klass;     /* metadata.class as Python's str() writes it; "" if none */
} rrl_question;

typedef struct {
    rrl_question *rows;
    int64_t n;
    char digest[65]; /* SHA-256 hex over id, question, reference, metadata of the rows in order (u32 length + bytes) */
} rrl_questions;

/* How to read a pool; strings are borrowed. Zero / NULL = default. */
typedef struct {
    const char *path;             /* JSONL file */
    const char *question_column;  /* "question" */
    const char *answer_column;    /* "answer" */
    const char *answer_separator; /* e.g. "####": the reference is what follows the last one, trimmed; NULL = whole */
    const char *id_column;        /* "id"; where a row has none: id_prefix + first 16 hex digits of SHA-256(question) */
    const char *id_prefix;        /* "" */
    const char *pools;            /* pools.json path, with `pool` */
    const char *pool;             /* name of a pool in pools.json: its row numbers of the file are taken, in order */
    int64_t shuffle_seed;         /* < 0 none; else numpy default_rng(seed).permutation(n) order, before limit */
    int64_t limit;                /* 0 = all */
} rrl_questions_spec;

/** Read a pool. Errors: RRL_ERR_DATA with file and line: cut line, no object, missing column, empty question or
 *  reference, repeated id, repeated question, empty set, pool digest mismatch. */
rrl_status rrl_questions_open(rrl_questions **out, const rrl_questions_spec *spec);
void rrl_questions_close(rrl_questions **q);
/** RRL_ERR_DATA naming ids when two pools share an id or a question. */
rrl_status rrl_questions_disjoint(const rrl_questions *a, const char *name_a, const rrl_questions *b,
                                  const char *name_b);
/** order [n] of numpy's default_rng(seed).permutation(n) (PCG64, SeedSequence): the Hugging Face shuffle. */
rrl_status rrl_numpy_permutation(int64_t *order, int64_t n, uint64_t seed);
/** n questions "What is A op B?" with exact (also fractional) answers: the fixture's and smoke data. class = addition,
 *  subtraction, multiplication, division. */
rrl_status rrl_questions_synthetic(rrl_questions **out, int64_t n, uint64_t seed, const char *id_prefix);

#endif

/* A base and its adapter made one model: W + scale B A in each adapted matrix, written as a model folder of its own. */
#ifndef RRL_MODEL_MERGE_H
#define RRL_MODEL_MERGE_H

#include "model/model.h"

/* What the written weights are: the type that each tensor has in the base, or one type for all. */
typedef enum { RRL_MERGE_AUTO, RRL_MERGE_F32, RRL_MERGE_BF16, RRL_MERGE_F16 } rrl_merge_dtype;
/** "auto", "float32", "bfloat16", "float16". Errors: RRL_ERR_USAGE naming them. */
rrl_status rrl_merge_dtype_of(rrl_merge_dtype *out, const char *name);

typedef struct {
    int32_t matrices;              /* changed by the adapter */
    int64_t weights;               /* in them */
    double change;                 /* largest |scale B A| of a weight */
    double rounding, rounding_rel; /* largest |written - f32| of any weight of the model; that over |f32| */
} rrl_merge_report;

/** Write the folder `dir`: model.safetensors (one file), config.json, generation_config.json and the tokenizer's files of
 *  base_dir, config.json last, so that a folder with one is whole. a was opened on the model of base_dir. Sums of r
 *  products and the addition in f32, then one rounding to nearest even. Errors: RRL_ERR_USAGE (dir holds a model),
 *  RRL_ERR_NONFINITE (a weight that is not finite, or too large for the type; tensor named), RRL_ERR_DATA, RRL_ERR_IO. */
rrl_status rrl_merge_write(rrl_merge_report *out, const rrl_adapter *a, const char *base_dir, const char *dir,
                           rrl_merge_dtype dtype);

/** Logits [n, vocab], host, at every position of one sequence of n tokens; a NULL = the base. */
rrl_status rrl_merge_logits(float *out, rrl_model *m, rrl_adapter *a, const int32_t *ids, int32_t n);

typedef struct {
    int64_t positions, other_argmax; /* positions compared; those with another most likely token */
    double largest, largest_rel;     /* |difference| of a logit; that over the largest |logit| of its position */
} rrl_merge_error;
/** Compare logits [n, vocab] of the merged model with those of base and adapter; adds to *e. NaN is an infinite error. */
void rrl_merge_compare(rrl_merge_error *e, const float *merged, const float *unmerged, int32_t n, int32_t vocab);

#endif

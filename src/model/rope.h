/* Tables of the rotary position embedding. */
#ifndef RRL_MODEL_ROPE_H
#define RRL_MODEL_ROPE_H

#include "model/model.h"

/** Angular frequency of each pair i < head_dim/2: theta^(-2i/head_dim), with llama3's scaling where the
 * config has it. frequency [head_dim/2]. */
void rrl_rope_frequencies(double *frequency, const rrl_model_config *c);
/** cos and sin of position * frequency, host, [max_positions, head_dim/2]; computed in double, stored as f32.
 */
rrl_status rrl_rope_tables(float *cos_table, float *sin_table, const rrl_model_config *c);

#endif

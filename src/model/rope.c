/* Rotary tables in double with our own sin and cos, so that they are the same bits on every machine.
 * Transformers computes the angles in f32; at position p that differs by about p * frequency * 6e-8. */
#include "model/rope.h"

#include <stdlib.h>

#include "base/exactmath.h"
#include "base/memory.h"

static const double TWO_PI = 6.283185307179586476925;

/* Wavelengths above original/low are stretched by factor, those below original/high stay, between them a
 * linear blend in original/wavelength (transformers, _compute_llama3_parameters). */
static double llama3(double frequency, const rrl_model_config *c) {
    double wavelength = TWO_PI / frequency, original = (double)c->rope_original_positions;
    if (wavelength < original / c->rope_high_freq) return frequency;
    if (wavelength > original / c->rope_low_freq) return frequency / c->rope_factor;
    double smooth = (original / wavelength - c->rope_low_freq) / (c->rope_high_freq - c->rope_low_freq);
    return (1 - smooth) * frequency / c->rope_factor + smooth * frequency;
}

void rrl_rope_frequencies(double *frequency, const rrl_model_config *c) {
    for (int32_t i = 0; i < c->head_dim / 2; i++) {
        double plain = 1.0 / rrl_pow(c->rope_theta, 2.0 * i / c->head_dim);
        frequency[i] = c->rope_factor > 0 ? llama3(plain, c) : plain;
    }
}

rrl_status rrl_rope_tables(float *cos_table, float *sin_table, const rrl_model_config *c) {
    const int32_t half = c->head_dim / 2;
    double *frequency = NULL;
    RRL_TRY(rrl_alloc(&frequency, (size_t)half, sizeof *frequency, "rotary frequencies"));
    rrl_rope_frequencies(frequency, c);
    for (int64_t p = 0; p < c->max_positions; p++)
        for (int32_t i = 0; i < half; i++) {
            double s, co;
            rrl_sincos(&s, &co, (double)p * frequency[i]);
            cos_table[p * half + i] = (float)co;
            sin_table[p * half + i] = (float)s;
        }
    free(frequency);
    return RRL_OK;
}

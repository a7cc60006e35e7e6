/* The ops of the table, one family a file; each checks its shapes and enqueues. What they compute stands in device.h.
 */
#ifndef RRL_DEVICE_CUDA_OPS_CUH
#define RRL_DEVICE_CUDA_OPS_CUH

#include "device/cuda/cuda_common.cuh"

/* rows.cu */
rrl_status rrl_cuda_embed(rrl_device *d, rrl_tensor y, const rrl_weight *w, const rrl_batch *b);
rrl_status rrl_cuda_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, const float *w, float eps);
rrl_status rrl_cuda_add_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, rrl_tensor r, const float *w, float eps);
rrl_status rrl_cuda_rms_norm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, rrl_tensor x, const float *w,
                                      float eps, bool accumulate);
rrl_status rrl_cuda_rope(rrl_device *d, rrl_tensor x, int32_t n_heads, int32_t head_dim, const rrl_batch *b,
                         const float *cos, const float *sin, bool inverse);
rrl_status rrl_cuda_swiglu(rrl_device *d, rrl_tensor y, rrl_tensor gate, rrl_tensor up);
rrl_status rrl_cuda_swiglu_backward(rrl_device *d, rrl_tensor dgate, rrl_tensor dup, rrl_tensor dy, rrl_tensor gate,
                                    rrl_tensor up);
rrl_status rrl_cuda_gather(rrl_device *d, rrl_tensor y, rrl_tensor x, const int32_t *row);
rrl_status rrl_cuda_scatter_add(rrl_device *d, rrl_tensor x, rrl_tensor y, const int32_t *row);

/* attention.cu, with the cache */
rrl_status rrl_cuda_kv_write(rrl_device *d, const rrl_kv_pool *pool, int32_t layer, const rrl_kv_rows *in,
                             const rrl_batch *b, const rrl_kv_writes *w);
rrl_status rrl_cuda_kv_copy(rrl_device *d, const rrl_kv_pool *pool, const int32_t *from, const int32_t *to, int32_t n);
rrl_status rrl_cuda_attention(rrl_device *d, rrl_tensor out, rrl_tensor lse, rrl_tensor q, int32_t n_heads,
                              const rrl_kv_pool *pool, int32_t layer, const rrl_kv_table *table, const rrl_batch *b,
                              float scale);

/* attention_backward.cu */
rrl_status rrl_cuda_attention_backward(rrl_device *d, rrl_tensor dq, rrl_tensor dk, rrl_tensor dv, rrl_tensor dout,
                                       rrl_tensor out, rrl_tensor lse, rrl_tensor q, rrl_tensor k, rrl_tensor v,
                                       int32_t n_heads, int32_t head_dim, const rrl_batch *b, const rrl_parents *p,
                                       float scale);

/* lora.cu */
rrl_status rrl_cuda_lora(rrl_device *d, rrl_tensor x, const rrl_batch *b, const rrl_lora_product *products, int32_t n);
rrl_status rrl_cuda_lora_backward(rrl_device *d, float *da, float *db, rrl_tensor dx, rrl_tensor du, rrl_tensor dy,
                                  rrl_tensor x, rrl_tensor us, const rrl_lora *m, const rrl_batch *b,
                                  const rrl_lora_args *args);
rrl_status rrl_cuda_lora_pack(rrl_device *d, const rrl_lora *m);

/* products.cu */
rrl_status rrl_cuda_linear(rrl_device *d, rrl_tensor x, const rrl_product *products, int32_t n, const rrl_weight *then);
rrl_status rrl_cuda_linear_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w, bool accumulate);

/* vocab.cu */
rrl_status rrl_cuda_lm_score(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x, const rrl_weight *w,
                             const int32_t *target, const float *temperature, rrl_tensor scratch);
rrl_status rrl_cuda_lm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w, const int32_t *target,
                                const float *temperature, const float *lse, const float *dlogp, rrl_tensor scratch);

/* sampling.cu */
rrl_status rrl_cuda_sample(rrl_device *d, int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows);

/* optimizer.cu */
rrl_status rrl_cuda_adamw(rrl_device *d, float *p, float *m, float *v, const float *g, int64_t n,
                          const rrl_adamw_args *args);
rrl_status rrl_cuda_sum_squares(rrl_device *d, double *out, const float *x, int64_t n);
rrl_status rrl_cuda_axpy(rrl_device *d, float *y, const float *x, float a, int64_t n);
rrl_status rrl_cuda_zero(rrl_device *d, float *y, int64_t n);

#endif

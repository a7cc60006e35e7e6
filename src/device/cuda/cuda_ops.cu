/* The op table. */
#include "device/cuda/cuda_ops.cuh"

#include "device/cuda/collective_nccl.h"
#include "device/cuda/cuda_device.cuh"

const rrl_device_ops rrl_cuda_op_table = {
    .name = "cuda",
    .close = rrl_cuda_close,
    .numeric_path = rrl_cuda_numeric_path,
    .isa = rrl_cuda_isa,
    .alloc = rrl_cuda_alloc,
    .free = rrl_cuda_free,
    .upload = rrl_cuda_upload,
    .download = rrl_cuda_download,
    .sync = rrl_cuda_sync,
    .weight_pack = rrl_cuda_weight_pack,
    .weight_free = rrl_cuda_weight_free,
    .weight_bytes = NULL, /* processes do not share a GPU's memory */
    .weight_view = NULL,
    .weight_fill = NULL,
    .embed = rrl_cuda_embed,
    .rms_norm = rrl_cuda_rms_norm,
    .add_rms_norm = rrl_cuda_add_rms_norm,
    .linear = rrl_cuda_linear,
    .lora = rrl_cuda_lora,
    .rope = rrl_cuda_rope,
    .kv_write = rrl_cuda_kv_write,
    .kv_copy = rrl_cuda_kv_copy,
    .attention = rrl_cuda_attention,
    .swiglu = rrl_cuda_swiglu,
    .gather = rrl_cuda_gather,
    .lm_score = rrl_cuda_lm_score,
    .sample = rrl_cuda_sample,
    .rms_norm_backward = rrl_cuda_rms_norm_backward,
    .linear_backward = rrl_cuda_linear_backward,
    .lora_backward = rrl_cuda_lora_backward,
    .attention_backward = rrl_cuda_attention_backward,
    .swiglu_backward = rrl_cuda_swiglu_backward,
    .scatter_add = rrl_cuda_scatter_add,
    .lm_backward = rrl_cuda_lm_backward,
    .lora_pack = rrl_cuda_lora_pack,
    .adamw = rrl_cuda_adamw,
    .sum_squares = rrl_cuda_sum_squares,
    .axpy = rrl_cuda_axpy,
    .zero = rrl_cuda_zero,
    .peers = &rrl_cuda_peers,
};

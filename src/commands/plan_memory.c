/* Memory of a rank, predicted: what the parts say they allocate, and a few sizes that were measured.
 * tests/test_memory.c holds a run to it. Every page counts that was ever used, as the system's peak of resident memory does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "commands/plan.h"
#include "config/config_check.h"
#include "device/cuda_module.h"

enum { MIB = 1 << 20 };
/* gradient, scratch, two moments, one node of the tree; copies of adapter and moments, and the file made of them */
enum { OPTIMISER_VECTORS = 5, SAVED_VECTORS = 6 };
/* Products of the CPU back end: rows and ids of a piece of the head; bytes a thread and token of the vocabulary */
enum { HEAD_ROWS = 256, SAMPLER_BYTES = 36 };
/* Measured (Open MPI 4.1, HDF5 1.10): program, libraries, an open record and the heap of the thread that writes
 * it; bytes of a loaded tokenizer for each of its file; bytes of a completion while it is
 * judged and written, and of each of its tokens. */
static const double PROGRAM = 26.0 * MIB, TOKENIZER = 4.5, COMPLETION = 600, TOKEN = 24;

typedef struct {
    const rrl_config *c;
    const rrl_engine *e;
    bool trains, gpu;
    int32_t fleet, threads;
    rrl_dtype dtype;
} plan;

static int32_t longest(const rrl_engine *e) {
    return e->train.longest > e->test.longest ? e->train.longest : e->test.longest;
}

static double max(double a, double b) { return a > b ? a : b; }

/* What the device holds beside its tensors: rounded activations, W^T of a few matrices, gradients of logits, masses. */
static double scratch_bytes(const plan *p, const rrl_slot_limits *slot) {
    const rrl_model_config *d = &p->e->dims;
    const double block = slot->max_rows < RRL_BLOCK_ROWS ? slot->max_rows : RRL_BLOCK_ROWS;
    double bytes = (double)p->threads * SAMPLER_BYTES * d->vocab;
    if (p->dtype == RRL_F32) return bytes;
    bytes += sizeof(float) * max(RRL_BF16_NEAR_ROWS * (double)d->intermediate, block * d->hidden);
    if (!p->trains) return bytes;
    return bytes + RRL_BF16_TURNED * sizeof(uint16_t) * (double)d->hidden * d->intermediate +
           sizeof(float) * (double)p->threads * HEAD_ROWS * RRL_VOCAB_BLOCK;
}

/* Completions: of a fleet's evaluations all are there until the last is judged, of a run's training all when its
 * segments are joined at the end. */
static double group_bytes(const plan *p) {
    const rrl_config *c = p->c;
    const rrl_training_config *t = &c->training;
    const double rows = (double)(t->batch_size * t->gradient_accumulation_steps * t->max_steps / t->num_iterations);
    const rrl_questions *test = p->e->test.questions;
    const double asked = test ? (double)test->n * (double)c->generation.num_generations : 0;
    return max(p->trains ? rows : 0, p->fleet * asked) * (COMPLETION + TOKEN * (double)c->generation.max_tokens);
}

static double program_bytes(const plan *p) {
    const char *dir = p->c->model.tokenizer[0] ? p->c->model.tokenizer : p->e->model_dir;
    char *path = NULL;
    struct stat file = {0};
    if (dir && rrl_path_join(&path, dir, "tokenizer.json") == RRL_OK && stat(path, &file) != 0) file.st_size = 0;
    free(path);
    return PROGRAM + TOKENIZER * (double)file.st_size;
}

/* What a machine that is too small should hear. */
static void say_if_too_large(const plan *p, const rrl_setup *s, double rank) {
    const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double need = rank * s->team->ranks_on_node;
    const bool could = p->trains && !p->c->training.gradient_checkpointing;
    if (!(need > have)) return;
    printf("note         %d ranks of this machine need %.0f MiB, it has %.0f%s\n", s->team->ranks_on_node, need / MIB,
           have / MIB, could ? ": training.gradient_checkpointing true needs less" : "");
}

/* What lies where the engine computes, in bytes; and the copies of adapter and moments that the host makes to save
 * them. */
typedef struct {
    double weights, rollout, slot, adapters, saved;
} engine_bytes;

static engine_bytes bytes_of_engine(const plan *p, const rrl_slot_limits *slots) {
    const rrl_config *c = p->c;
    const rrl_engine *e = p->e;
    engine_bytes b = {0};
    b.weights = (double)(p->gpu               ? rrl_model_bytes_gpu(&e->dims, p->dtype)
                         : p->dtype == RRL_F32 ? rrl_model_bytes(&e->dims)
                                               : rrl_model_bytes_bf16(&e->dims));
    b.rollout = (double)rrl_rollout_bytes(&e->dims, rrl_engine_kv_dtype(c, p->dtype), (int32_t)c->generation.batch_limit,
                                          longest(e) + (int32_t)c->generation.max_tokens);
    if (!p->trains) return b;
    const rrl_adapter_spec spec = rrl_engine_adapter_spec(c);
    const double vector = sizeof(float) * (double)rrl_config_adapter_size(&e->dims, &spec);
    b.slot = (double)rrl_slot_engine_bytes(&e->dims, slots, (int32_t)c->training.lora.r);
    b.adapters = p->fleet * ((double)rrl_config_adapter_bytes(&e->dims, &spec) + OPTIMISER_VECTORS * vector);
    b.saved = SAVED_VECTORS * vector;
    return b;
}

/* On a GPU: what the engine asks for. What CUDA and its libraries take for themselves is not known here. */
static void print_gpu(const plan *p, const engine_bytes *b) {
    const bool exact = p->c->model.deterministic == RRL_DETERMINISM_EXACT;
    const double room = RRL_CUDA_ROOM_BYTES + (exact ? 0 : RRL_CUDA_BLASLT_BYTES);
    const double rank = b->weights + b->rollout + b->slot + b->adapters + room;
    printf("GPU memory   a rank about %.0f MiB: weights %.1f, cache and decode %.1f,\n"
           "             training slot %.1f, adapter and optimiser %.1f, working room %.0f;\n"
           "             CUDA's own, some hundred MiB, on top\n",
           rank / MIB, b->weights / MIB, b->rollout / MIB, b->slot / MIB, b->adapters / MIB, room / MIB);
}

rrl_status rrl_plan_memory(const rrl_setup *s, const rrl_options *o, const rrl_engine *e, rrl_purpose purpose) {
    const rrl_config *c = s->config;
    plan p = {.c = c, .e = e, .fleet = purpose == RRL_FOR_STUDY ? (int32_t)c->parallel.fleet : 1};
    p.trains = purpose == RRL_FOR_TRAIN || (purpose == RRL_FOR_STUDY && rrl_study_trains(c));
    p.threads = rrl_engine_threads(c, (int)o->threads, s->team);
    p.gpu = rrl_engine_device_is_gpu(c);
    RRL_TRY(rrl_engine_dtype(&p.dtype, c, e->model_dir));
    const rrl_slot_limits slots =
        p.trains ? rrl_engine_slot_limits(e, c) : (rrl_slot_limits){.max_rows = RRL_BLOCK_ROWS};
    const engine_bytes b = bytes_of_engine(&p, &slots);
    double program = program_bytes(&p) + group_bytes(&p), rank = b.saved;
    if (!p.gpu) {
        program += scratch_bytes(&p, &slots);
        rank += b.weights + b.rollout + b.slot + b.adapters;
    }
    rank += program;
    if (p.gpu)
        printf("memory       a rank about %.0f MiB: copies to save %.1f, program and records %.0f;\n"
               "             CUDA's libraries on top\n", rank / MIB, b.saved / MIB, program / MIB);
    else
        printf("memory       a rank about %.0f MiB: weights %.1f, cache and decode %.1f,\n"
               "             training slot %.1f, adapter and optimiser %.1f, program and records %.0f\n",
               rank / MIB, b.weights / MIB, b.rollout / MIB, b.slot / MIB, (b.adapters + b.saved) / MIB, program / MIB);
    if (p.gpu) print_gpu(&p, &b);
    if (slots.again > 0)
        printf("             %d of %d layers are computed again in the backward pass\n", slots.again, e->dims.layers);
    say_if_too_large(&p, s, rank);
    return RRL_OK;
}

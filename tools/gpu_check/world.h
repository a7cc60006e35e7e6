/* A model with an adapter on a device, and what a training step makes of it. */
#ifndef RRL_GPU_CHECK_WORLD_H
#define RRL_GPU_CHECK_WORLD_H

#include "check.h"
#include "learn/learner.h"
#include "rollout/rollout.h"

typedef struct {
    int32_t groups, group_size, prompt, tokens; /* of a step: groups of completions, tokens of prompt and completion */
    int32_t rank;                               /* of the adapter */
} rrl_gpu_batch;

typedef struct {
    rrl_gpu_batch b;
    rrl_device *device; /* borrowed */
    rrl_model *model;
    rrl_adapter *adapter;
    rrl_learner *learner;
    rrl_group **groups;       /* [b.groups], of the last rollout */
    rrl_prompt_view *prompts; /* [b.groups] */
    int32_t *ids;             /* [b.groups, b.prompt] */
    rrl_row_stats *stats;     /* [b.groups * b.group_size] */
} rrl_gpu_world;

rrl_status rrl_gpu_world_open(rrl_gpu_world *w, rrl_device *d, const char *dir, const rrl_gpu_batch *b);
void rrl_gpu_world_close(rrl_gpu_world *w);
/** Sample the groups of this step, with advantages that are not flat. */
rrl_status rrl_gpu_rollout(rrl_gpu_world *w, int64_t step);
/** Gradient of all slots; update with learning_rate. */
rrl_status rrl_gpu_learn(rrl_gpu_world *w, double learning_rate);

#endif

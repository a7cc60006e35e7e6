/* What a team opens once and shares between the runs of a study: model, rollout, tokenizer, prompts. */
#ifndef RRL_ROLES_ENGINE_H
#define RRL_ROLES_ENGINE_H

#include "data/prompt.h"
#include "data/questions.h"
#include "model/slot.h"
#include "rollout/rollout.h"
#include "rrl/config.h"
#include "roles/engine_device.h"
#include "roles/links.h"
#include "roles/team.h"

/* Questions with their prompts as token ids. */
typedef struct {
    rrl_questions *questions;
    int32_t **ids;   /* [n] */
    int32_t *n_ids;  /* [n] */
    uint64_t *keys;  /* [n] rrl_rng_question(id) */
    int32_t longest; /* tokens */
} rrl_pool;

typedef struct {
    const rrl_config *config; /* borrowed: the team part */
    rrl_device *device;       /* NULL on ranks that neither generate nor learn, and for the fixture back end */
    char device_why[RRL_WHY_BYTES]; /* the reason for this device, for the log */
    rrl_links links;          /* of an engine opened to train */
    rrl_model *model;
    rrl_rollout *rollout;
    rrl_slot_engine *slots;   /* learners of runs, one after the other; NULL until the first (rrl_engine_slots) */
    rrl_tokenizer *tokenizer;
    rrl_prompt *prompt;
    rrl_model_config dims; /* read on every rank; zero for the fixture */
    rrl_pool train, test;  /* questions NULL where not configured */
    rrl_node_memory *memory; /* of the team; in it the weights, where the ranks of the node share them */
    rrl_node_block weights;
    char *model_dir;
    char data_digest[65], model_digest[65];
} rrl_engine;

/** Collective over the team (weights are read by the ranks that need them). threads 0 = as rrl_engine_threads says. The
 *  train pool is opened when `train`. Errors: RRL_ERR_DATA (missing model or data, overlap of train and test, a prompt
 *  longer than the context: id and lengths), RRL_ERR_CONFIG. */
rrl_status rrl_engine_open(rrl_engine **out, rrl_team *team, const rrl_config *config, bool train, const char *isa,
                           int threads);
/** Whether all ranks have the same settings, data, model and numeric path; rrl_engine_open asks it. Collective. Errors:
 *  RRL_ERR_CONFIG on all ranks, naming what differs. */
rrl_status rrl_engine_alike(const rrl_engine *e, rrl_team *team);
/** The engine without weights, for plans: config, tokenizer, prompts and pools. Local. */
rrl_status rrl_engine_open_plan(rrl_engine **out, const rrl_config *config, bool train);
void rrl_engine_close(rrl_engine **e);
/** The largest slot of a run of `config`, and how it is computed. Needs the train pool. */
rrl_slot_limits rrl_engine_slot_limits(const rrl_engine *e, const rrl_config *config);
/** e->slots with room for `most`: opened, or opened anew where it is too small, so nobody may be using it. Local. */
rrl_status rrl_engine_slots(rrl_engine *e, const rrl_slot_limits *most);
/** Shape of the adapter that training.lora asks for; borrows from config. */
rrl_adapter_spec rrl_engine_adapter_spec(const rrl_config *config);
/** Products of the engine: RRL_F32 or RRL_BF16, from model.dtype and, where that is auto, from the weights in model_dir. */
rrl_status rrl_engine_dtype(rrl_dtype *out, const rrl_config *config, const char *model_dir);
/** Keys and values of an engine with products in dtype: what generation.kv_dtype says; auto = as the products. */
rrl_dtype rrl_engine_kv_dtype(const rrl_config *config, rrl_dtype dtype);
/** Threads for this rank: given, else config, else OMP_NUM_THREADS, else the node's share: cores / ranks. */
int rrl_engine_threads(const rrl_config *config, int given, const rrl_team *team);

#endif

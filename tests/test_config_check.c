/* Checks across keys: what passes for which command, and what is refused with both keys named. */
#include "check.h"

#include "rrl/config.h"

#define DATA  "dataset: {path: a}\n"
#define STUDY "dataset: {path: a}\n"
#define POOLS "train_dataset: {path: b}"

static const struct {
    rrl_purpose purpose;
    const char *text, *message; /* message NULL: passes */
} CHECKS[] = {
    {RRL_FOR_TRAIN, DATA, NULL},
    {RRL_FOR_TRAIN, "{}", "dataset is missing"},
    {RRL_FOR_TRAIN, DATA "generation: {num_generations: 1}\nevaluation: {k: 1}",
     "generation.num_generations is 1"},
    {RRL_FOR_EVAL, DATA "generation: {num_generations: 1}\nevaluation: {k: 1}", NULL},
    {RRL_FOR_TRAIN, DATA "generation: {temperature: 0}", "generation.temperature is 0"},
    {RRL_FOR_EVAL, DATA "generation: {temperature: 0}", NULL},
    {RRL_FOR_TRAIN, DATA "training: {batch_size: 12}",
     "training.batch_size 12 x training.gradient_accumulation_steps 1"},
    {RRL_FOR_TRAIN, DATA "training: {batch_size: 4, gradient_accumulation_steps: 4}", NULL},
    {RRL_FOR_TRAIN, DATA "training: {slot_rows: 3}",
     "training.slot_rows 3 does not divide generation.num_generations 8"},
    {RRL_FOR_TRAIN, DATA "training: {slot_rows: 4}", NULL},
    {RRL_FOR_TRAIN, DATA "training: {slot_rows: 16}", "training.slot_rows 16"},
    {RRL_FOR_TRAIN, DATA "training: {epsilon_high: -0.5}", "training.epsilon_high -0.5 is below 0"},
    {RRL_FOR_TRAIN, DATA "training: {warmup_steps: 200}",
     "training.warmup_steps 200 is above training.max_steps 100"},
    {RRL_FOR_TRAIN, DATA "training: {lora: {enabled: false}}", "training.lora.enabled: false is refused"},
    {RRL_FOR_TRAIN, DATA "training: {lora: {target_modules: []}}", "target_modules is empty"},
    {RRL_FOR_TRAIN, DATA "training: {use_cpu: true}\nmodel: {device: cuda}",
     "training.use_cpu is true and model.device is cuda"},
    {RRL_FOR_TRAIN, DATA "model: {backend: fixture}", "model.backend fixture cannot be trained"},
    {RRL_FOR_TRAIN, DATA "model: {prompt_template: hello}", "model.prompt_template has no {question}"},
    {RRL_FOR_EVAL, DATA "experiment: {mode: fixture}", "experiment.mode fixture needs model.backend fixture"},
    {RRL_FOR_EVAL, DATA "evaluation: {k: [1, 16]}",
     "evaluation.k has 16, above generation.num_generations 8"},
    {RRL_FOR_EVAL, DATA "evaluation: {k: [4, 4]}", "evaluation.k has 4 twice"},
    {RRL_FOR_EVAL, DATA "evaluation: {k: []}", "evaluation.k is empty"},
    {RRL_FOR_EVAL, DATA "reward: {moderate_threshold: 0.95}",
     "reward.moderate_threshold 0.95 is above reward.severe_threshold"},
    {RRL_FOR_EVAL, DATA "experiment: {robust_reward: {severe_threshold: 0.1}}",
     "experiment.robust_reward.moderate_threshold"},
    {RRL_FOR_EVAL, DATA "evaluation_verifier: {members: [rule, rule]}",
     "evaluation_verifier.members has 2 members"},
    {RRL_FOR_EVAL, DATA "evaluation_verifier: {members: [{corruption: flip}]}",
     "evaluation_verifier.members[0].corruption"},
    {RRL_FOR_EVAL, DATA "training_verifier: {members: []}", "training_verifier.members has 0 members"},
    {RRL_FOR_EVAL, DATA "parallel: {roles: {generators: 1}}", "parallel.roles has generators 1, verifiers 0"},
    {RRL_FOR_EVAL, DATA "parallel: {ranks_per_team: 4, roles: {generators: 1, verifiers: 1, learners: 1}}",
     "parallel.roles add up to 3 ranks, parallel.ranks_per_team is 4"},
    {RRL_FOR_EVAL, DATA "parallel: {ranks_per_team: 3, roles: {generators: 1, verifiers: 1, learners: 1}}",
     NULL},
    {RRL_FOR_EVAL, "dataset: {source: gsm8k}", "dataset.source gsm8k needs dataset.split"},
    {RRL_FOR_EVAL, "dataset: {source: huggingface, split: test}", "needs dataset.name"},
    {RRL_FOR_EVAL, "dataset: {source: synthetic}", "needs dataset.limit"},
    {RRL_FOR_EVAL, "dataset: {limit: 3}", "dataset.source jsonl needs dataset.path"},
    {RRL_FOR_QUALIFY, "{}", "qualification_dataset is missing"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS "}", NULL},
    {RRL_FOR_STUDY, STUDY, "experiment.train_dataset is missing"},
    {RRL_FOR_STUDY, STUDY "experiment: {methods: base}\ngeneration: {num_generations: 1}\nevaluation: {k: 1}",
     NULL},
    {RRL_FOR_STUDY, STUDY "generation: {temperature: 0}\nexperiment: {" POOLS "}",
     "generation.temperature is 0"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", qualification_min_pass1: 0.1}",
     "needs experiment.qualification_dataset"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", seeds: [1, 2, 1]}", "experiment.seeds has 1 twice"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", seeds: []}", "experiment.seeds is empty"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", levels: []}", "experiment.levels is empty"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", methods: []}", "experiment.methods is empty"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", methods: [base, base]}", "method 'base' stands twice"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", methods: [robus]}",
     "method 'robus' of arm none is unknown (did you mean 'robust'?)"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", levels: [0.2]}", "level 0.2 of arm none corrupts nothing"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", corruption: flip, levels: [0.2, 0.2]}",
     "level 0.2 stands twice"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", corruption: flip, levels: [0.2, 0.20000001]}",
     "stands twice"},
    {RRL_FOR_STUDY,
     STUDY "experiment: {" POOLS ", corruption: flip, arms: [{levels: [0.1]}, {levels: [0.2]}]}", NULL},
    {RRL_FOR_STUDY,
     STUDY "experiment: {" POOLS ", corruption: flip, arms: [{levels: [0.1]}, {levels: [0.1]}]}",
     "level 0.1 of arm flip in two entries"},
    {RRL_FOR_STUDY,
     STUDY "experiment: {" POOLS ", arms: [{name: a, corruption: flip}, {name: a, corruption: missing}]}",
     "two arms called a that differ"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", arms: [{name: a, members: [none, exploit]}]}",
     "arm a has 2 members, training_verifier.members has 3"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", arms: [{name: a, members: [none, none, {kind: flip}]}]}",
     "members[2] of arm a has probability 0"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", arms: [{name: a/b, corruption: flip}]}",
     "is no folder name"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS ", arms: [{name: base, corruption: flip}]}",
     "choose another"},
    {RRL_FOR_STUDY,
     STUDY "training_verifier: {members: [{corruption: {kind: flip, probability: 0.1}}]}\nexperiment: {" POOLS
           "}",
     "training_verifier.members[0].corruption and experiment.arms both corrupt"},
    {RRL_FOR_STUDY, STUDY "model: {backend: fixture}\nexperiment: {" POOLS "}",
     "needs experiment.mode fixture"},
    {RRL_FOR_STUDY, STUDY "model: {backend: fixture}\nexperiment: {mode: fixture}", NULL},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS "}\nhypotheses: [{contrast: robust, direction: less}]",
     "is no 'method_a - method_b'"},
    {RRL_FOR_STUDY, STUDY "experiment: {" POOLS "}\nhypotheses: [{contrast: robust - base, direction: up}]",
     "hypotheses[0].direction 'up'"},
    {RRL_FOR_STUDY,
     STUDY "experiment: {" POOLS "}\nhypotheses: [{contrast: robust - base, direction: less, arm: q}]",
     "hypotheses[0].arm 'q'"},
};

int main(void) {
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        const char *text = CHECKS[i].text;
        rrl_config *c = NULL;
        if (!CHECK_OK(rrl_config_parse(&c, text, strlen(text), "t.yaml", "/base", NULL, 0))) continue;
        rrl_status rc = rrl_config_check(c, CHECKS[i].purpose);
        int ok;
        if (CHECKS[i].message)
            ok = CHECK_STATUS(rc, RRL_ERR_CONFIG) && CHECK(strstr(rrl_error_message(), CHECKS[i].message)) &&
                 CHECK(strncmp(rrl_error_message(), "t.yaml: ", 8) == 0);
        else
            ok = CHECK_OK(rc);
        if (!ok) fprintf(stderr, "  case: %s\n  message: %s\n", text, rrl_error_message());
        rrl_config_close(&c);
    }
    return CHECK_DONE();
}

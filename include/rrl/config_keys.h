/* Every configuration key, once. Struct, defaults, parser, bounds, --set, help, docs/configuration.md and the digest
 * expand from these rows.
 *
 * X(key, TYPE, list, default, low, high, CLASS, unit, meaning)
 *   TYPE   BOOL bool | INT int64_t | REAL double | TEXT char * | ENUM int | TEXTS, INTS, REALS lists |
 *          PATH char *, made absolute | NAME char *, a known name or a path
 *   list   for ENUM: the name of its X-list in config.h (names are the values' texts); else NONE
 *   low..  inclusive bounds of numbers and of list elements; 0, 0 for the other types
 *   CLASS  RESULT changes numbers: in the digest, a change refuses resume; LAYOUT and PLACE are free (the digest
 *          covers the SHA-256 of model files and data rows instead of places); INERT is accepted without effect
 *          (said once at start). */
#ifndef RRL_CONFIG_KEYS_H
#define RRL_CONFIG_KEYS_H

#define RRL_SEED_MAX 9223372036854775807LL

#define RRL_ROOT_KEYS(X)                                                                                               \
    X(seed, INT, NONE, 42, 0, RRL_SEED_MAX, RESULT, "", "seed of sampling, schedule, adapter and dropout")             \
    X(output_dir, PATH, NONE, "runs/run", 0, 0, PLACE, "path", "folder of the run or study")

/* dataset, experiment.train_dataset, experiment.qualification_dataset */
#define RRL_DATASET_KEYS(X)                                                                                            \
    X(source, TEXT, NONE, "jsonl", 0, 0, PLACE, "", "jsonl | gsm8k | huggingface | synthetic")                         \
    X(path, PATH, NONE, "", 0, 0, PLACE, "path", "JSONL file, or a folder with <split>.jsonl")                         \
    X(name, TEXT, NONE, "", 0, 0, PLACE, "", "hub id of a huggingface source (looked up under data/)")                 \
    X(subset, TEXT, NONE, "", 0, 0, PLACE, "", "configuration name of a huggingface source")                           \
    X(split, TEXT, NONE, "", 0, 0, PLACE, "", "train | validation | test")                                             \
    X(revision, TEXT, NONE, "", 0, 0, PLACE, "", "pinned revision of a huggingface source")                            \
    X(limit, INT, NONE, 0, 0, 1000000000, PLACE, "rows", "first rows taken after shuffle and pool; 0 = all")           \
    X(question_column, TEXT, NONE, "question", 0, 0, PLACE, "", "column of the question")                              \
    X(answer_column, TEXT, NONE, "answer", 0, 0, PLACE, "", "column of the reference answer")                          \
    X(answer_separator, TEXT, NONE, "", 0, 0, PLACE, "", "the reference is what follows the last one; empty = whole")  \
    X(id_column, TEXT, NONE, "id", 0, 0, PLACE, "", "column of the id; rows without one get id_prefix + hash")         \
    X(id_prefix, TEXT, NONE, "", 0, 0, PLACE, "", "before the first 16 hex digits of SHA-256(question)")               \
    X(shuffle_seed, INT, NONE, -1, -1, RRL_SEED_MAX, PLACE, "", "numpy permutation before limit; -1 = file order")     \
    X(pool, TEXT, NONE, "", 0, 0, PLACE, "", "named row numbers of data/gsm8k/pools.json")

#define RRL_MODEL_KEYS(X)                                                                                              \
    X(backend, ENUM, RRL_BACKEND_LIST, RRL_BACKEND_TRANSFORMER, 0, 0, RESULT, "", "what makes completions")            \
    X(name, NAME, NONE, "data/tiny", 0, 0, PLACE, "path", "model folder, or hub id under models/<owner>--<name>")      \
    X(revision, TEXT, NONE, "", 0, 0, PLACE, "", "pinned revision: folder <owner>--<name>@<revision> is preferred")    \
    X(adapter, PATH, NONE, "", 0, 0, PLACE, "path", "PEFT folder to start from or to evaluate")                        \
    X(tokenizer, PATH, NONE, "", 0, 0, PLACE, "path", "folder of the tokenizer; empty = model folder")                 \
    X(prompt_format, ENUM, RRL_PROMPT_FORMAT_LIST, RRL_PROMPT_CHAT, 0, 0, RESULT, "", "plain text or one user message")\
    X(prompt_template, TEXT, NONE, "", 0, 0, RESULT, "", "text with {question}; empty = the protocol's")               \
    X(chat_template, NAME, NONE, "", 0, 0, RESULT, "", "smollm2 | qwen2.5 | chatml | file; empty = recognised")        \
    X(device, ENUM, RRL_DEVICE_LIST, RRL_DEVICE_AUTO, 0, 0, LAYOUT, "", "where the engine runs")                       \
    X(deterministic, ENUM, RRL_DETERMINISM_LIST, RRL_DETERMINISM_RUN, 0, 0, LAYOUT, "", "same bits on a GPU: every run | exact = as the CPU | off") \
    X(dtype, ENUM, RRL_DTYPE_LIST, RRL_DTYPE_AUTO, 0, 0, RESULT, "", "numbers of the engine")                          \
    X(cpu_threads, INT, NONE, 0, 0, 4096, LAYOUT, "threads", "threads a rank; 0 = OMP_NUM_THREADS, else cores / ranks")

#define RRL_GENERATION_KEYS(X)                                                                                         \
    X(num_generations, INT, NONE, 8, 1, 4096, RESULT, "completions", "G: completions of a question")                   \
    X(sample_batch_size, INT, NONE, 0, 0, 1000000, INERT, "", "batching never changes results here")                   \
    X(temperature, REAL, NONE, 0.7, 0, 100, RESULT, "1", "0 = greedy (evaluation only)")                               \
    X(top_p, REAL, NONE, 0.95, 1e-9, 1, RESULT, "1", "smallest set whose mass reaches it")                             \
    X(top_k, INT, NONE, 0, 0, 1000000, RESULT, "tokens", "0 = all")                                                    \
    X(max_tokens, INT, NONE, 512, 1, 1000000, RESULT, "tokens", "new tokens at most")                                  \
    X(repetition_penalty, REAL, NONE, 1, 0.01, 100, RESULT, "1", "on prompt and completion; 1 = none")                 \
    X(batch_limit, INT, NONE, 64, 1, 65536, LAYOUT, "sequences", "sequences decoded at once at most")                  \
    X(kv_dtype, ENUM, RRL_KV_DTYPE_LIST, RRL_KV_AUTO, 0, 0, RESULT, "", "numbers of keys and values; auto: of products")

#define RRL_CORRUPTION_KEYS(X)                                                                                         \
    X(kind, ENUM, RRL_CORRUPTION_LIST, RRL_CORRUPT_NONE, 0, 0, RESULT, "", "what happens to a reward")                 \
    X(probability, REAL, NONE, 0, 0, 1, RESULT, "1", "of the event; in a study the level")                             \
    X(seed, INT, NONE, 0, 0, RRL_SEED_MAX, RESULT, "", "in a study run seed + 1009 * member")                          \
    X(noise_std, REAL, NONE, 0.1, 0, 1000, RESULT, "1", "of kind noise")                                               \
    X(confidence_scale, REAL, NONE, 1, 0, 1, RESULT, "1", "multiplies the member's confidence")                        \
    X(bias_key, TEXT, NONE, "class", 0, 0, RESULT, "", "metadata key of kind bias")                                    \
    X(bias_value, TEXT, NONE, "addition", 0, 0, RESULT, "", "its value as Python's str() writes it")                   \
    X(bias_reward, REAL, NONE, 1, 0, 1, RESULT, "1", "reward given where it matches")

/* training_verifier.members[]; each has a corruption section too */
#define RRL_MEMBER_KEYS(X) X(kind, ENUM, RRL_MEMBER_LIST, RRL_MEMBER_RULE, 0, 0, RESULT, "", "how answers are compared")

#define RRL_VERIFIER_KEYS(X)                                                                                           \
    X(strategy, ENUM, RRL_ENSEMBLE_LIST, RRL_ENSEMBLE_MEAN, 0, 0, RESULT, "", "how member rewards are joined")

#define RRL_REWARD_KEYS(X)                                                                                             \
    X(strategy, ENUM, RRL_SHAPING_LIST, RRL_SHAPE_STANDARD, 0, 0, RESULT, "", "shaping of the ensemble reward")        \
    X(penalty, REAL, NONE, 0.2, 0, 1000, RESULT, "1", "lambda in r - lambda U")                                        \
    X(moderate_threshold, REAL, NONE, 0.4, 0, 1, RESULT, "1", "U from which moderate_scale applies")                   \
    X(severe_threshold, REAL, NONE, 0.9, 0, 1, RESULT, "1", "U from which severe_scale applies")                       \
    X(moderate_scale, REAL, NONE, 0.5, 0, 1, RESULT, "1", "attenuation")                                               \
    X(severe_scale, REAL, NONE, 0, 0, 1, RESULT, "1", "attenuation")                                                   \
    X(missing, ENUM, RRL_MISSING_LIST, RRL_MISSING_ZERO, 0, 0, RESULT, "", "a missing reward enters as 0, or not")

#define RRL_EVALUATION_KEYS(X)                                                                                         \
    X(k, INTS, NONE, "1,4,8", 1, 4096, RESULT, "samples", "k of pass@k; none above generation.num_generations")

#define RRL_TRAINING_KEYS(X)                                                                                           \
    X(max_steps, INT, NONE, 100, 0, 100000000, RESULT, "updates", "optimiser updates")                                 \
    X(batch_size, INT, NONE, 8, 1, 1000000, RESULT, "rows", "loss micro-batch of the whole team")                      \
    X(gradient_accumulation_steps, INT, NONE, 1, 1, 1000000, RESULT, "", "micro-batches an update")                    \
    X(slot_rows, INT, NONE, 0, 0, 1000000, RESULT, "rows", "unit of gradient sums; 0 = num_generations")               \
    X(learning_rate, REAL, NONE, 5e-6, 0, 10, RESULT, "1", "at the start")                                             \
    X(lr_scheduler, ENUM, RRL_SCHEDULER_LIST, RRL_SCHEDULE_LINEAR, 0, 0, RESULT, "", "course of the learning rate")    \
    X(warmup_steps, INT, NONE, 0, 0, 100000000, RESULT, "updates", "linear warm-up")                                   \
    X(beta, REAL, NONE, 0.04, 0, 1000, RESULT, "1", "weight of the KL term")                                           \
    X(epsilon, REAL, NONE, 0.2, 0, 1, RESULT, "1", "lower clip of the ratio")                                          \
    X(epsilon_high, REAL, NONE, -1, -1, 1000, RESULT, "1", "upper clip; -1 = epsilon")                                 \
    X(loss_type, ENUM, RRL_LOSS_LIST, RRL_LOSS_DAPO, 0, 0, RESULT, "", "aggregation of token losses")                  \
    X(scale_rewards, ENUM, RRL_SCALE_REWARDS_LIST, RRL_SCALE_NONE, 0, 0, RESULT, "", "division of advantages")         \
    X(num_iterations, INT, NONE, 1, 1, 1000, RESULT, "updates", "updates a sampled batch serves")                      \
    X(mask_truncated_completions, BOOL, NONE, false, 0, 0, RESULT, "", "truncated rows carry no loss")                 \
    X(kl_on_flat_groups, BOOL, NONE, true, 0, 0, RESULT, "", "KL acts where all advantages are 0")                     \
    X(max_grad_norm, REAL, NONE, 1, 0, 1e30, RESULT, "1", "global L2 clip; 0 = none")                                  \
    X(weight_decay, REAL, NONE, 0, 0, 10, RESULT, "1", "AdamW decay")                                                  \
    X(max_nonfinite, INT, NONE, 3, 1, 1000000, RESULT, "steps", "non-finite steps before the run stops")               \
    X(save_steps, INT, NONE, 50, 0, 100000000, LAYOUT, "updates", "a checkpoint every so many; 0 = only the end")      \
    X(logging_steps, INT, NONE, 10, 1, 100000000, LAYOUT, "updates", "an event line every so many")                    \
    X(use_cpu, BOOL, NONE, false, 0, 0, LAYOUT, "", "true = model.device cpu")                                         \
    X(bf16, BOOL, NONE, false, 0, 0, INERT, "", "the engine's numbers follow model.dtype")                             \
    X(fp16, BOOL, NONE, false, 0, 0, INERT, "", "the engine's numbers follow model.dtype")                             \
    X(gradient_checkpointing, BOOL, NONE, false, 0, 0, LAYOUT, "", "compute every layer again in the backward pass; same bits") \
    X(activation_memory, INT, NONE, 1280, 1, 100000000, LAYOUT, "MiB", "of a training slot; layers beyond it are computed again, same bits") \

#define RRL_LORA_KEYS(X)                                                                                               \
    X(enabled, BOOL, NONE, true, 0, 0, RESULT, "", "false is refused until full training exists")                      \
    X(r, INT, NONE, 8, 1, 256, RESULT, "", "rank")                                                                     \
    X(alpha, REAL, NONE, 16, 1e-9, 1e6, RESULT, "1", "scale is alpha / r")                                             \
    X(dropout, REAL, NONE, 0, 0, 0.99, RESULT, "1", "of the adapter's input")                                          \
    X(dropout_in_rollout, BOOL, NONE, false, 0, 0, RESULT, "", "same masks while sampling")                            \
    X(target_modules, TEXTS, NONE, "all-linear", 0, 0, RESULT, "", "module names, or all-linear")

#define RRL_EXPERIMENT_KEYS(X)                                                                                         \
    X(label, TEXT, NONE, "", 0, 0, PLACE, "", "title of the report")                                                   \
    X(mode, ENUM, RRL_MODE_LIST, RRL_MODE_TRAIN, 0, 0, RESULT, "", "train policies, or audit verifiers")               \
    X(seeds, INTS, NONE, "42", 0, RRL_SEED_MAX, RESULT, "", "seeds of the study")                                      \
    X(levels, REALS, NONE, "0", 0, 1, RESULT, "1", "corruption probabilities")                                         \
    X(methods, TEXTS, NONE, "base,baseline,robust", 0, 0, RESULT, "", "base | baseline | robust")                      \
    X(qualification_min_pass1, REAL, NONE, 0, 0, 1, RESULT, "1", "pass@1 demanded before a study")                     \
    X(qualification_sampled, BOOL, NONE, false, 0, 0, PLACE, "", "as generation says; false = one greedy answer")      \
    X(continue_on_error, BOOL, NONE, true, 0, 0, LAYOUT, "", "go on with other conditions after a failure")            \
    X(reuse_base_generations, BOOL, NONE, true, 0, 0, LAYOUT, "", "base completions made once a seed")                 \
    X(resume, BOOL, NONE, true, 0, 0, LAYOUT, "", "skip what is complete, continue what is not")

/* experiment.arms[]; each has corruption or members[] (of corruption sections or `none`) */
#define RRL_ARM_KEYS(X)                                                                                                \
    X(name, TEXT, NONE, "", 0, 0, RESULT, "", "name of the arm; the corruption kind by default")                       \
    X(levels, REALS, NONE, "", 0, 1, RESULT, "1", "empty = experiment.levels; none for arms with fixed members")       \
    X(methods, TEXTS, NONE, "", 0, 0, RESULT, "", "empty = experiment.methods")                                        \
    X(shared, BOOL, NONE, false, 0, 0, RESULT, "", "one corruption event for all members (same seed)")

/* hypotheses[] */
#define RRL_HYPOTHESIS_KEYS(X)                                                                                         \
    X(name, TEXT, NONE, "", 0, 0, PLACE, "", "short name")                                                             \
    X(metric, TEXT, NONE, "independent_accuracy", 0, 0, PLACE, "", "metric compared")                                  \
    X(contrast, TEXT, NONE, "", 0, 0, PLACE, "", "method_a - method_b")                                                \
    X(arm, TEXT, NONE, "", 0, 0, PLACE, "", "arm; empty = all")                                                        \
    X(levels, REALS, NONE, "", 0, 1, PLACE, "1", "levels it speaks of; empty = all")                                   \
    X(direction, TEXT, NONE, "", 0, 0, PLACE, "", "greater | less | equal")

#define RRL_PARALLEL_KEYS(X)                                                                                           \
    X(ranks_per_team, INT, NONE, 0, 0, 1000000, LAYOUT, "ranks", "0 = all for train and eval, 1 for study")            \
    X(fleet, INT, NONE, 1, 1, 256, LAYOUT, "conditions", "conditions of a study that a team co-schedules")        \
    X(pipeline_depth, INT, NONE, 0, 0, 1, RESULT, "steps", "steps sampled ahead; 0 = on policy")                  \
    X(timeout_s, REAL, NONE, 600, 1, 1e9, LAYOUT, "s", "watchdog for a silent peer")                              \
    X(collectives, ENUM, RRL_COLLECTIVES_LIST, RRL_COLLECTIVES_AUTO, 0, 0, LAYOUT, "", "gradients and adapters of GPUs") \
    X(ranks_per_gpu, INT, NONE, 1, 1, 64, LAYOUT, "ranks", "ranks of a node that share a GPU")

/* parallel.roles; all 0 = every rank does everything */
#define RRL_ROLES_KEYS(X)                                                                                              \
    X(generators, INT, NONE, 0, 0, 1000000, LAYOUT, "ranks", "ranks that sample")                                      \
    X(verifiers, INT, NONE, 0, 0, 1000000, LAYOUT, "ranks", "ranks that judge")                                        \
    X(learners, INT, NONE, 0, 0, 1000000, LAYOUT, "ranks", "ranks that train")

#define RRL_RECORDS_KEYS(X)                                                                                            \
    X(steps_per_segment, INT, NONE, 25, 1, 1000000, LAYOUT, "updates", "steps of a record segment")                    \
    X(keep_checkpoints, INT, NONE, 2, 1, 1000, LAYOUT, "", "checkpoints kept")                                         \
    X(writer_share, REAL, NONE, 0.005, 0.001, 1, LAYOUT, "1",                                                           \
      "share of a core that writing may take; what waits is joined; 1 = each is written")

#endif

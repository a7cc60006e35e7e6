/* The subcommands, once: main.c's table, `rrl --help`, the usage of each and the prototypes expand from these rows. */
#ifndef RRL_COMMANDS_COMMANDS_H
#define RRL_COMMANDS_COMMANDS_H

#include "commands/command.h"

/* X(name, arguments, their number, options taken, summary, example); the function is rrl_command_<name>. */
#define RRL_COMMAND_LIST(X)                                                                                            \
    X(train, "CONFIG", 1, RRL_TAKES_RUN, "one run: train, evaluate, record",                                           \
      "mpirun -n 2 rrl train configs/train.yaml --set training.max_steps=20")                                          \
    X(eval, "CONFIG", 1, RRL_TAKES_RUN & ~RRL_TAKES_resume, "evaluate a base model or a saved adapter",                \
      "rrl eval configs/train.yaml --set output_dir=runs/eval --set model.adapter=DIR")                                \
    X(study, "CONFIG", 1, RRL_TAKES_STUDY, "arms x levels x seeds x methods; skips what is complete",                  \
      "mpirun -n 4 rrl study configs/quick.yaml")                                                                      \
    X(status, "DIR", 1, RRL_TAKES_STATUS, "how far each condition is, from files; DIR or CONFIG",                      \
      "rrl status runs/quick")                                                                                         \
    X(repair, "DIR", 1, RRL_TAKES_REPAIR, "set damaged files aside, make run.h5 again",                                \
      "rrl repair runs/quick --dry-run")                                                                               \
    X(report, "DIR", 1, RRL_TAKES_ALWAYS, "tables from the records of a study or a run", "rrl report runs/quick")      \
    X(validate, "CONFIG", 1, RRL_TAKES_CONFIG, "strict check of a config; prints the resolved plan",                   \
      "rrl validate configs/quick.yaml --set training.batch_size=16")                                                  \
    X(predict, "CONFIG", 1, RRL_TAKES_PREDICT, "what noise and shaping do to the reward, enumerated",                  \
      "rrl predict configs/embedded.yaml --p-right 0.25")                                                              \
    X(convert, "CONFIG", 1, RRL_TAKES_CONVERT, "model and adapter merged into a model folder",                         \
      "rrl convert configs/train.yaml --set model.adapter=DIR --out models/merged")                                    \
    X(qualify, "CONFIG", 1, RRL_TAKES_CONFIG | RRL_TAKES_fresh, "pass@1 of the model on validation questions",         \
      "rrl qualify configs/qualification.yaml")                                                                        \
    X(rejudge, "FILE...", -1, RRL_TAKES_ALWAYS | RRL_TAKES_dry_run, "stored texts judged by the present verifiers",    \
      "rrl rejudge runs/train/run.h5")                                                                                 \
    X(export, "DIR", 1, RRL_TAKES_EXPORT, "evidence archive, or completions as JSONL",                                 \
      "rrl export runs/quick")                                                                                         \
    X(verify, "ARCHIVE", 1, RRL_TAKES_ALWAYS, "check an evidence archive against its manifest",                        \
      "rrl verify runs/quick.evidence.tar")                                                                            \
    X(bench, "", 0, RRL_TAKES_BENCH, "speed of this machine beside what memory and arithmetic allow",                  \
      "rrl bench --model models/HuggingFaceTB--SmolLM2-135M-Instruct --only decode,step")                              \
    X(show, "FILE|DIR", 1, RRL_TAKES_SHOW, "a record: summary, completions, progress, digest",                         \
      "rrl show runs/train --completion 0")

#define X(name, arguments, n, options, summary, example) rrl_command_function rrl_command_##name;
RRL_COMMAND_LIST(X)
#undef X

/* A row as a value of rrl_command: static const rrl_command COMMANDS[] = {RRL_COMMAND_LIST(RRL_COMMAND_ROW)}; */
#define RRL_COMMAND_ROW(name, arguments, n, options, summary, example)                                                 \
    {#name, arguments, n, options, summary, example, rrl_command_##name},

#endif

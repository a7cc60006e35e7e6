/* The options of the program, once: struct, parser, nearest names and help expand from this list. */
#ifndef RRL_COMMANDS_OPTIONS_H
#define RRL_COMMANDS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/status.h"

/* X(field, KIND, default, low, argument, meaning). The option is --field with "_" as "-".
 *   KIND  FLAG bool | INT int64_t, REAL double of at least low | TEXT const char * (NULL = not given) |
 *         LIST rrl_option_list */
#define RRL_OPTION_LIST(X)                                                                                             \
    X(set, LIST, {0}, 0, "KEY=VALUE", "change one key of the config; may be repeated")                                 \
    X(threads, INT, 0, 1, "N", "threads of each rank (default: model.cpu_threads, OMP_NUM_THREADS, cores / ranks)")    \
    X(isa, TEXT, NULL, 0, "NAME", "CPU: auto, amx, avx512, avx2, portable, reference (same bits)")                     \
    X(resume, TEXT, NULL, 0, "CHECKPOINT", "resume from this checkpoint folder, not from the newest")                  \
    X(fresh, FLAG, false, 0, "", "move an existing output folder to NAME.old-N and start anew")                        \
    X(dry_run, FLAG, false, 0, "", "say what would be done, and do nothing")                                           \
    X(clean, FLAG, false, 0, "", "remove temporaries that killed runs left over (*.tmp)")                              \
    X(condition, INT, -1, 0, "N", "run condition N of the study and no other (rrl validate lists them from 0)")        \
    X(completion, INT, -1, 0, "N", "print completion N: text, answer, verdicts, ensemble, shaping, advantage")         \
    X(evaluation, TEXT, NULL, 0, "NAME", "completions of this evaluation (default: training, else the last)")          \
    X(question, TEXT, NULL, 0, "TEXT", "list completions of the question with this id, or with TEXT in its text")      \
    X(right, FLAG, false, 0, "", "list completions that the independent judge calls right")                            \
    X(wrong, FLAG, false, 0, "", "list completions that the independent judge calls wrong")                            \
    X(disagreement, REAL, -1, 0, "U", "list completions whose members disagree by at least U")                         \
    X(top_wrong, INT, 0, 1, "N", "list the N wrong completions with the largest ensemble rewards")                     \
    X(limit, INT, 20, 1, "N", "completions of a list at most (default: 20)")                                           \
    X(jsonl, FLAG, false, 0, "", "write every completion as a line of JSON in place of the archive")                   \
    X(tensorboard, FLAG, false, 0, "", "write training rows and metrics as event files in place of the archive")       \
    X(weights, FLAG, false, 0, "", "adapters too; without it no weights are in the archive")                           \
    X(out, TEXT, NULL, 0, "PATH", "what to write: convert, a folder without a model in it; export, a file (folder)")   \
    X(dtype, TEXT, NULL, 0, "NAME", "auto (as in the base), float32, bfloat16; convert's weights: also float16")       \
    X(p_right, REAL, -1, 0, "X", "predict at one more P(right), between 0 and 1")                                      \
    X(eligible, TEXT, NULL, 0, "R,W", "shares of right and wrong completions open to bias and exploit (1,1)")          \
    X(model, TEXT, "data/tiny", 0, "DIR", "model folder (default: data/tiny)")                                         \
    X(only, TEXT, NULL, 0, "WORK,...", "run these works alone; \"decode\" stands for all of its sizes")                \
    X(quick, FLAG, false, 0, "", "one short round: does it work, not how fast")                                        \
    X(digest, FLAG, false, 0, "", "print the SHA-256 of everything that is a pure function of the run")                \
    X(json, FLAG, false, 0, "", "print one JSON object in place of text")                                              \
    X(verbose, FLAG, false, 0, "", "log more; name the source line of an error")                                       \
    X(quiet, FLAG, false, 0, "", "log warnings and errors only")                                                       \
    X(help, FLAG, false, 0, "", "print this help")                                                                     \
    X(version, FLAG, false, 0, "", "print the version")

/* What commands take: RRL_TAKES_<field>, one bit each of an unsigned, by way of the int that an enum constant is. */
enum {
#define X(field, kind, def, low, argument, doc) RRL_OPTION_AT_##field,
    RRL_OPTION_LIST(X)
#undef X
    RRL_N_OPTIONS
};
_Static_assert(RRL_N_OPTIONS <= 32, "one more option needs masks of 64 bits");
enum {
#define X(field, kind, def, low, argument, doc) RRL_TAKES_##field = (int)(1U << RRL_OPTION_AT_##field),
    RRL_OPTION_LIST(X)
#undef X
    RRL_TAKES_ALWAYS = RRL_TAKES_verbose | RRL_TAKES_quiet | RRL_TAKES_help | RRL_TAKES_version,
    RRL_TAKES_CONFIG = RRL_TAKES_ALWAYS | RRL_TAKES_set | RRL_TAKES_threads | RRL_TAKES_isa,
    RRL_TAKES_RUN = RRL_TAKES_CONFIG | RRL_TAKES_resume | RRL_TAKES_fresh | RRL_TAKES_dry_run,
    RRL_TAKES_STUDY = (RRL_TAKES_RUN & ~RRL_TAKES_resume) | RRL_TAKES_condition,
    RRL_TAKES_STATUS = RRL_TAKES_ALWAYS | RRL_TAKES_set | RRL_TAKES_json,
    RRL_TAKES_CONVERT = RRL_TAKES_CONFIG | RRL_TAKES_out | RRL_TAKES_dtype,
    RRL_TAKES_PREDICT = RRL_TAKES_ALWAYS | RRL_TAKES_set | RRL_TAKES_p_right | RRL_TAKES_eligible | RRL_TAKES_json,
    RRL_TAKES_SEARCH = RRL_TAKES_question | RRL_TAKES_right | RRL_TAKES_wrong | RRL_TAKES_disagreement |
                       RRL_TAKES_top_wrong | RRL_TAKES_limit,
    RRL_TAKES_SHOW = RRL_TAKES_ALWAYS | RRL_TAKES_SEARCH | RRL_TAKES_completion | RRL_TAKES_evaluation |
                     RRL_TAKES_digest | RRL_TAKES_json,
    RRL_TAKES_BENCH = RRL_TAKES_ALWAYS | RRL_TAKES_model | RRL_TAKES_dtype | RRL_TAKES_threads | RRL_TAKES_isa |
                      RRL_TAKES_only | RRL_TAKES_quick | RRL_TAKES_json | RRL_TAKES_dry_run,
    RRL_TAKES_REPAIR = RRL_TAKES_ALWAYS | RRL_TAKES_dry_run | RRL_TAKES_clean,
    RRL_TAKES_EXPORT = RRL_TAKES_ALWAYS | RRL_TAKES_jsonl | RRL_TAKES_tensorboard | RRL_TAKES_weights | RRL_TAKES_out,
};

typedef struct {
    const char **v; /* borrowed from argv */
    int n;
} rrl_option_list;

#define RRL_OPTION_CTYPE_FLAG bool
#define RRL_OPTION_CTYPE_INT int64_t
#define RRL_OPTION_CTYPE_REAL double
#define RRL_OPTION_CTYPE_TEXT const char *
#define RRL_OPTION_CTYPE_LIST rrl_option_list
typedef struct {
#define X(field, kind, def, low, argument, doc) RRL_OPTION_CTYPE_##kind field;
    RRL_OPTION_LIST(X)
#undef X
    rrl_option_list arguments; /* what is no option, in order */
} rrl_options;

/** Parse argv[0 .. argc), which starts behind the command's name. "--name value" and "--name=value" are one; "--" ends
 *  the options. takes = what the command takes. n_arguments: that many; -n = n or more. With --help or --version the
 *  number of arguments is not checked.
 *  `command` names it in messages. Strings are borrowed from argv. Errors: RRL_ERR_USAGE: unknown option (with the nearest
 *  name), one the command does not take, a missing or unfit value, another number of arguments than n_arguments.
 *  Free with rrl_options_free. */
rrl_status rrl_options_parse(rrl_options *out, int argc, char *const *argv, const char *command, unsigned takes,
                             int n_arguments);
void rrl_options_free(rrl_options *o);
/** The help of a command: summary, usage, the options it takes, an example. The caller frees *out. */
rrl_status rrl_options_help(char **out, const char *command, const char *arguments, const char *summary,
                            const char *example, unsigned takes);

#endif

/* The resolved plan of a config, as `validate` and --dry-run print it: what would run, how, and what it takes. */
#ifndef RRL_COMMANDS_PLAN_H
#define RRL_COMMANDS_PLAN_H

#include "commands/setup.h"

/** Print the plan to stdout; reads data and model headers, no weights. Local. */
rrl_status rrl_plan_print(const rrl_setup *s, const rrl_options *o, rrl_purpose purpose);

/** One more line of it: "note", then the text, broken at 80 columns. */
rrl_status rrl_plan_note(const char *text);

/** Its part about memory: the peak of a rank that generates, learns and records, by its largest terms. Local. */
rrl_status rrl_plan_memory(const rrl_setup *s, const rrl_options *o, const rrl_engine *e, rrl_purpose purpose);

#endif

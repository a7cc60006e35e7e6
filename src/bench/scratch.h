/* A folder for what the works write, and the model they run. */
#ifndef RRL_BENCH_SCRATCH_H
#define RRL_BENCH_SCRATCH_H

#include "rrl/status.h"

/** A new folder in the working directory, so that it lies on the disk that runs would use; the caller frees *out. */
rrl_status rrl_bench_scratch_open(char **out);
/** Remove it with all that is in it, and free the name. */
void rrl_bench_scratch_close(char **dir);
/** scratch/model: links to the files of model_dir, and an end token that is the last of the vocabulary, which text
 *  hardly ever holds. So completions have the length that is asked for. The caller frees *out. */
rrl_status rrl_bench_scratch_model(char **out, const char *scratch, const char *model_dir);

#endif

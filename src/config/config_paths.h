/* Where models and data sets lie: hub ids and named sources looked up on disk, with the command that fetches
 * what is not there. Nothing is ever downloaded here. */
#ifndef RRL_CONFIG_PATHS_H
#define RRL_CONFIG_PATHS_H

#include "rrl/config.h"

/** Folder of the base model: model.name as a path, or for a hub id owner/name the first of
 *  models/<owner>--<name>@<revision>, models/<owner>--<name> under the config's folder, then the working
 * directory. The caller frees *out. Errors: RRL_ERR_DATA with the command that fetches it. */
rrl_status rrl_config_model_dir(char **out, const rrl_config *c);
/** JSONL file of one of c's data sets; *out NULL for source synthetic (rows are generated). jsonl: `path`, or
 *  <split>.jsonl in it. gsm8k: the same, by default data/gsm8k. huggingface: the same, by default
 *  data/<owner>--<name>[@<revision>][/<subset>], then data/<name>. The caller frees *out. Errors:
 * RRL_ERR_DATA with the command. */
rrl_status rrl_config_dataset_path(char **out, const rrl_config *c, const rrl_dataset_config *d);
/** pools.json for a data set with `pool`: beside its file, else data/gsm8k/pools.json; *out NULL without
 * pool. The caller frees *out. Errors: RRL_ERR_DATA. */
rrl_status rrl_config_pools_path(char **out, const rrl_config *c, const rrl_dataset_config *d);
/** Dotted name of one of c's data sets, for messages. */
const char *rrl_config_dataset_name(const rrl_config *c, const rrl_dataset_config *d);

#endif

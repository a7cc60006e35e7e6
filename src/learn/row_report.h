/* What the training row says of a step: pure functions of its groups and row statistics, in schedule order. */
#ifndef RRL_LEARN_ROW_REPORT_H
#define RRL_LEARN_ROW_REPORT_H

#include <stdbool.h>

#include "learn/grpo.h"
#include "learn/training_row.h"

/** Columns that follow from the judged groups: rewards, judge, ensemble, lengths, counts. */
void rrl_report_rewards(rrl_training_row *row, rrl_group *const *groups, int32_t n_groups);
/** Columns that follow from the loss; stats [sum of counts] in schedule order. Sets rows[].kl_mean of the groups. */
void rrl_report_loss(rrl_training_row *row, const rrl_grpo *grpo, rrl_group *const *groups, int32_t n_groups,
                     const rrl_row_stats *stats);
/** bad [n_groups]: the groups with a row whose statistics are not finite; all of them where there is none, which is a
 *  gradient that overflowed. For a step that is left out. */
void rrl_report_nonfinite(bool *bad, rrl_group *const *groups, int32_t n_groups, const rrl_row_stats *stats);

#endif

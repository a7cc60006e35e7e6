/* A verifier member: what gives one reward to a completion, behind one table of functions.
 *
 * A member judges batches, in two steps, so that one with an engine of its own (a judge model) can work on a
 * batch while the others run; the rule members answer at once. Corruption is not the member's affair, see
 * verifier.c. */
#ifndef RRL_VERIFY_MEMBER_H
#define RRL_VERIFY_MEMBER_H

#include "rrl/verify.h"

/* One completion to judge. Everything is borrowed and stays valid until the batch is collected. */
typedef struct {
    const rrl_judged_question *question;
    const char *text; /* of the completion, UTF-8 */
    size_t n_text;
    const char *answer; /* as the answer parser extracted it, once for all members; NULL = none */
    size_t n_answer;
} rrl_member_item;

typedef struct {
    double reward;     /* [0,1]; NaN = missing */
    double confidence; /* [0,1] */
} rrl_member_verdict;

typedef struct {
    const char *kind; /* "exact", "rule" */
    rrl_status (*open)(void **state, const rrl_member_spec *spec);
    /** Take a batch of n items. One batch is in flight at a time. */
    rrl_status (*submit)(void *state, const rrl_member_item *items, int64_t n);
    /** Wait for the batch; verdicts [n] in the order of its items. Errors: RRL_ERR_INTERNAL (n differs from
     * submit). */
    rrl_status (*collect)(void *state, rrl_member_verdict *verdicts, int64_t n);
    void (*close)(void **state);
} rrl_member_ops;

/** The table of a kind. Errors: RRL_ERR_CONFIG, naming the kinds. */
rrl_status rrl_member_find(const rrl_member_ops **out, const char *kind);

#endif

/* The fixture back end: answers without a model, to audit verifiers and test the path. */
#ifndef RRL_ROLES_FIXTURE_H
#define RRL_ROLES_FIXTURE_H

#include "data/questions.h"
#include "rrl/group.h"

/** Completions "Fixture arithmetic. Final answer: x" of a question "What is A op B?" (+ - * / on non-negative integers,
 *  exact fractions), x one too large with probability 0.3, keyed by (seed, purpose, question, sample). No tokens.
 *  Errors: RRL_ERR_DATA (not such a question). */
rrl_status rrl_fixture_group(rrl_group **out, const rrl_question *q, uint64_t seed, uint32_t purpose, int32_t first,
                             int32_t count);

#endif

/* What the text around a number says about it: whether it stands for its value or for something else. */
#ifndef RRL_VERIFY_CONTEXT_H
#define RRL_VERIFY_CONTEXT_H

#include "verify/points.h"

/** Whether the letter behind a number is a unit: 5 m; the others are factors or scales: 5x, 10k. */
bool rrl_unit_letter(uint32_t letter);
/** Whether the text before a number leaves it alone: "The kite costs", but not "less than", "twice", "I doubt". */
bool rrl_lead_in_plain(const uint32_t *p, size_t n);
/** Whether what comes directly behind the number that ends at `end` is a unit, a counted noun, one of a few small
 *  words, or punctuation. money: a currency sign was seen, so "m" is no metre; single: one thing or part of one. */
bool rrl_number_followed(const uint32_t *p, size_t n, size_t end, bool money, bool single);
/** Whether all words behind a number leave it alone. */
bool rrl_tail_plain(const uint32_t *p, size_t n);

#endif

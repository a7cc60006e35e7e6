/* What stands next to the place of an answer: at a box, and in the sentences after it. */
#ifndef RRL_VERIFY_BOXED_H
#define RRL_VERIFY_BOXED_H

#include <stdbool.h>
#include <stddef.h>

#include "rrl/status.h"

/** Whether what stands right before and behind the box text[begin..end), within its line, leaves its content alone:
 *  no sign or factor, no "not", "or" or "million", no box it is listed with, no command around it that computes. */
rrl_status rrl_box_plain(bool *plain, const char *text, size_t len, size_t begin, size_t end);
/** Whether a sentence from `from` on takes back what was said: it begins with Wait, Actually, Oops, Correction,
 *  Sorry, Hmm, Hold on, or "No,". One pass. */
bool rrl_taken_back(const char *text, size_t len, size_t from);

#endif

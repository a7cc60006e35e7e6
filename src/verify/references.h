/* References that no completion can be right about. */
#ifndef RRL_VERIFY_REFERENCES_H
#define RRL_VERIFY_REFERENCES_H

#include "base/memory.h"
#include "data/questions.h"

/** Appends one line (no newline) where references of the set equal no answer whatever it is, themselves included ("nan",
 *  "1/0", a number beyond the parser's limits): how many, and which row of the file is the first. Nothing where all are
 *  good. `name` of the set begins the line. */
rrl_status rrl_references_note(rrl_buffer *note, const rrl_questions *q, const char *name);

#endif

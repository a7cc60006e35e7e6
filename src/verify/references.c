#include "verify/references.h"

#include <string.h>

#include "rrl/verify.h"

rrl_status rrl_references_note(rrl_buffer *note, const rrl_questions *q, const char *name) {
    const rrl_question *first = NULL;
    int64_t bad = 0;
    for (int64_t i = 0; i < q->n; i++) {
        const rrl_question *row = &q->rows[i];
        const size_t len = strlen(row->reference);
        bool equal = false;
        RRL_TRY(rrl_answer_equal(&equal, "rule", row->reference, len, row->reference, len));
        if (equal) continue;
        bad++;
        if (!first || row->line < first->line) first = row;
    }
    if (!first) return RRL_OK;
    return rrl_buffer_printf(note,
                             "%s: %lld of %lld references can never be right, so every answer to them is wrong; the "
                             "first is \"%.40s\" in line %lld, question %s",
                             name, (long long)bad, (long long)q->n, first->reference,
                             (long long)first->line, first->id);
}

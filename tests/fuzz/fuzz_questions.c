/* A JSONL file of questions, as it stands and with the answer behind "####". */
#include "data/questions.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_questions_spec spec = {.path = fuzz_file(data, size), .shuffle_seed = -1};
    for (int separated = 0; separated < 2; separated++) {
        rrl_questions *q = NULL;
        spec.answer_separator = separated ? "####" : NULL;
        spec.shuffle_seed = separated ? 42 : -1;
        if (rrl_questions_open(&q, &spec) == RRL_OK) fuzz_want(q->n > 0 && q->rows[q->n - 1].id[0], "rows with ids");
        rrl_questions_close(&q);
    }
    return 0;
}

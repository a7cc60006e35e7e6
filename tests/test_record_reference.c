/* The tables of docs/records.md are what the column lists say. `test_record_reference --write` renews them.
 */
#include "base/files.h"
#include "base/memory.h"
#include "check.h"
#include "record/record.h"

static const char PATH[] = RRL_SOURCE_DIR "/docs/records.md";
static const char MARK[] = "renew with test_record_reference --write -->\n";

int main(int argc, char **argv) {
    char *made = NULL, *found = NULL;
    size_t n = 0;
    rrl_buffer whole = {0};
    if (!CHECK_OK(rrl_record_reference(&made)) || !CHECK_OK(rrl_file_read(&found, &n, PATH, 1 << 20)))
        return CHECK_DONE();
    char *mark = strstr(found, MARK);
    if (!CHECK(mark != NULL)) return CHECK_DONE();
    mark += strlen(MARK);
    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        CHECK_OK(rrl_buffer_put(&whole, found, (size_t)(mark - found)));
        CHECK_OK(rrl_buffer_puts(&whole, made));
        CHECK_OK(rrl_file_publish(PATH, whole.data, whole.len));
    } else if (!CHECK(strcmp(mark, made) == 0)) {
        fprintf(stderr, "docs/records.md is not what the lists say; run test_record_reference --write\n");
    }
    CHECK(strstr(
        made,
        "| `advantage` | float32 | 1 | NaN | yes | of the update it served first; NaN in evaluation |\n"));
    CHECK(strstr(made, "| `step_time` | float64 | s | NaN | no |") != NULL);
    CHECK(strstr(made, "largest \\|recorded - trained\\| log-prob") != NULL);
    rrl_buffer_free(&whole);
    free(found);
    free(made);
    return CHECK_DONE();
}

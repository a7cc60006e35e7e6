/* What the fuzz targets share. A target is one function of bytes: a broken input must come back as a status, and what it
 * finds wrong ends the process. The same files are linked with libFuzzer (label fuzz) and with run_corpus.c (label unit). */
#ifndef RRL_TESTS_FUZZ_TARGET_H
#define RRL_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** The bytes as a file that a path names, in memory; valid until the next call. Ends the process when it cannot. */
const char *fuzz_file(const uint8_t *data, size_t size);
/** A folder of this process with the bytes as its file `name`; removed at exit. One folder, others may be linked in. */
const char *fuzz_folder(const char *name, const uint8_t *data, size_t size);
/** A link in that folder. */
void fuzz_link(const char *name, const char *target);
/** Ends the process unless true: what the target promises does not hold. */
void fuzz_want(int holds, const char *what);

#endif

/* Broken inputs for test_errors.c: files, and model folders made from data/tiny with one thing changed. */
#ifndef RRL_TESTS_ERROR_INPUTS_H
#define RRL_TESTS_ERROR_INPUTS_H

#include <stddef.h>

/** Write a file; read one whole (a NUL behind it; the caller frees it). Both end the test when they cannot. */
void input_write(const char *path, const void *bytes, size_t n);
char *input_read(size_t *n, const char *path);

/** A copy of data/tiny at `folder`. */
void input_model(const char *folder);
/** Replace the first `from` in folder/file; NULL `to` removes the file, NULL `from` replaces all of it. */
void input_edit(const char *folder, const char *file, const char *from, const char *to);
/** The same in the header of folder/model.safetensors, whose length is set anew. */
void input_edit_header(const char *folder, const char *from, const char *to);
/** Keep the first n bytes of folder/file; set the 8 bytes of a safetensors header's length. */
void input_cut(const char *folder, const char *file, size_t n);
void input_header_length(const char *folder, unsigned long long length);
/** Fill a tensor of folder/model.safetensors, whose data starts at byte `begin` of the data, with n equal floats. */
void input_fill(const char *folder, size_t begin, size_t n, float value);

#endif

/* Makes the broken inputs. */
#include "error_inputs.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_CHARS = 1024, LENGTH_BYTES = 8 };
static const char MODEL[] = RRL_SOURCE_DIR "/data/tiny", WEIGHTS[] = "model.safetensors";

static void give_up(const char *path) {
    perror(path);
    exit(1);
}

static const char *in(char path[PATH_CHARS], const char *folder, const char *file) {
    snprintf(path, PATH_CHARS, "%s/%s", folder, file);
    return path;
}

void input_write(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) give_up(path);
}

char *input_read(size_t *n, const char *path) {
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) give_up(path);
    char *text = malloc((size_t)st.st_size + 1);
    if (!text || fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size) give_up(path);
    fclose(f);
    text[st.st_size] = 0;
    *n = (size_t)st.st_size;
    return text;
}

void input_model(const char *folder) {
    static const char *const FILES[] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json"};
    if (mkdir(folder, 0777) != 0) give_up(folder);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char from[PATH_CHARS], to[PATH_CHARS];
        size_t n;
        char *text = input_read(&n, in(from, MODEL, FILES[i]));
        input_write(in(to, folder, FILES[i]), text, n);
        free(text);
    }
}

/* text [*n] with the first `from` replaced. */
static char *replaced(const char *text, size_t *n, const char *from, const char *to, const char *where) {
    const char *at = strstr(text, from);
    if (!at) {
        fprintf(stderr, "%s: has no %s\n", where, from);
        exit(1);
    }
    size_t before = (size_t)(at - text), after = *n - before - strlen(from), n_to = strlen(to);
    char *out = malloc(before + n_to + after + 1);
    if (!out) give_up(where);
    memcpy(out, text, before);
    memcpy(out + before, to, n_to);
    memcpy(out + before + n_to, at + strlen(from), after);
    *n = before + n_to + after;
    out[*n] = 0;
    return out;
}

void input_edit(const char *folder, const char *file, const char *from, const char *to) {
    char path[PATH_CHARS];
    size_t n;
    in(path, folder, file);
    if (!to) {
        if (unlink(path) != 0) give_up(path);
        return;
    }
    if (!from) {
        input_write(path, to, strlen(to));
        return;
    }
    char *text = input_read(&n, path), *changed = replaced(text, &n, from, to, path);
    input_write(path, changed, n);
    free(text);
    free(changed);
}

void input_edit_header(const char *folder, const char *from, const char *to) {
    char path[PATH_CHARS];
    size_t n, n_header;
    uint64_t length;
    char *bytes = input_read(&n, in(path, folder, WEIGHTS));
    memcpy(&length, bytes, sizeof length);
    char *header = strndup(bytes + LENGTH_BYTES, (size_t)length);
    n_header = strlen(header);
    char *changed = replaced(header, &n_header, from, to, path);
    FILE *f = fopen(path, "wb");
    uint64_t new_length = n_header;
    size_t rest = n - LENGTH_BYTES - (size_t)length;
    if (!f || fwrite(&new_length, LENGTH_BYTES, 1, f) != 1 || fwrite(changed, 1, n_header, f) != n_header ||
        fwrite(bytes + LENGTH_BYTES + length, 1, rest, f) != rest || fclose(f) != 0)
        give_up(path);
    free(bytes);
    free(header);
    free(changed);
}

void input_cut(const char *folder, const char *file, size_t n) {
    char path[PATH_CHARS];
    if (truncate(in(path, folder, file), (off_t)n) != 0) give_up(path);
}

static void put_at(const char *folder, size_t at, const void *bytes, size_t n) {
    char path[PATH_CHARS];
    FILE *f = fopen(in(path, folder, WEIGHTS), "r+b");
    if (!f || fseek(f, (long)at, SEEK_SET) != 0 || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) give_up(path);
}

void input_header_length(const char *folder, unsigned long long length) {
    uint64_t bytes = length;
    put_at(folder, 0, &bytes, sizeof bytes);
}

void input_fill(const char *folder, size_t begin, size_t n, float value) {
    char path[PATH_CHARS];
    size_t size;
    uint64_t length;
    char *bytes = input_read(&size, in(path, folder, WEIGHTS));
    memcpy(&length, bytes, sizeof length);
    free(bytes);
    for (size_t i = 0; i < n; i++) put_at(folder, LENGTH_BYTES + (size_t)length + begin + 4 * i, &value, sizeof value);
}

/* Runs a fuzz target on every file of the folders named: the corpus as an ordinary test, without libFuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_target.h"

static void run_file(const char *path) {
    FILE *in = fopen(path, "rb");
    long n = -1;
    if (in && fseek(in, 0, SEEK_END) == 0) n = ftell(in);
    fuzz_want(n >= 0 && fseek(in, 0, SEEK_SET) == 0, path);
    uint8_t *bytes = malloc(n ? (size_t)n : 1); /* exactly n: the sanitizer sees a read past the end */
    fuzz_want(bytes && fread(bytes, 1, (size_t)n, in) == (size_t)n, path);
    fclose(in);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that fails */
    (void)LLVMFuzzerTestOneInput(bytes, (size_t)n);
    free(bytes);
}

static int run_folder(const char *folder) {
    int files = 0;
    DIR *dir = opendir(folder);
    fuzz_want(dir != NULL, folder);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        run_file(path);
        files++;
    }
    closedir(dir);
    return files;
}

int main(int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++) files += run_folder(argv[i]);
    printf("%d inputs\n", files);
    return files ? 0 : 1; /* an empty corpus tests nothing */
}

/* Makes a run for test_record_h5py.py: test_record_writer DIR. Prints its digest. Without an argument it is a
 * test of its own: the run is made and can be read. */
#include "base/files.h"
#include "check.h"
#include "data/safetensors.h"
#include "record/record.h"
#include "record_case.h"

int main(int argc, char **argv) {
    char digest[65] = "", path[700];
    const float a[3] = {1.5f, -2, NAN}, b[2] = {0, 4};
    const rrl_st_write tensors[] = {{.name = "z.weight", .data = a, .n_dims = 1, .dims = {3}},
                                    {.name = "a.weight", .data = b, .n_dims = 2, .dims = {1, 2}}};
    const char *dir = argc > 1 ? argv[1] : case_folder("writer");
    snprintf(path, sizeof path, "%s/adapter", dir);
    CHECK_OK(rrl_dir_make(path));
    snprintf(path, sizeof path, "%s/adapter/adapter_model.safetensors", dir);
    CHECK_OK(rrl_safetensors_publish(path, tensors, 2));
    CHECK_OK(case_run(dir, 11, 3, 1, (case_change){.step = -1}));
    CHECK_OK(rrl_record_digest(digest, dir));
    printf("%s\n", digest);
    return CHECK_DONE();
}

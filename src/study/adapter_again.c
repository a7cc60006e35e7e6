#include "study/adapter_again.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/safetensors.h"

/* Of a checkpoint's tensors (learn/checkpoint.c) the moments have a prefix; the rest is the adapter, in its order. */
static bool is_moment(const char *name) {
    return strncmp(name, "m.", 2) == 0 || strncmp(name, "v.", 2) == 0;
}

/* The adapter file that a checkpoint's tensors make. */
static rrl_status file_of(rrl_buffer *out, const char *checkpoint) {
    rrl_status rc;
    char *path = NULL;
    rrl_safetensors *s = NULL;
    rrl_st_write *list = NULL;
    int n = 0;
    RRL_GOTO(rrl_path_join(&path, checkpoint, "tensors.safetensors"));
    RRL_GOTO(rrl_safetensors_open(&s, path));
    RRL_GOTO(rrl_alloc(&list, (size_t)rrl_safetensors_count(s), sizeof *list, "tensors of an adapter"));
    for (int64_t i = 0; i < rrl_safetensors_count(s); i++) {
        const rrl_st_tensor *t = rrl_safetensors_at(s, i);
        if (is_moment(t->name)) continue;
        if (t->dtype != RRL_ST_F32 || t->n_dims != 2)
            RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s is no matrix of an adapter", path, t->name));
        list[n++] = (rrl_st_write){.name = t->name, .data = t->data, .n_dims = 2, .dims = {t->dims[0], t->dims[1]}};
    }
    RRL_GOTO(rrl_safetensors_bytes(out, list, n));
done:
    free(list);
    rrl_safetensors_close(&s);
    free(path);
    return rc;
}

/* *made, and the file written, where this checkpoint has it. */
static rrl_status try_checkpoint(bool *made, const char *dir, const char *checkpoint, const char *sha256, bool dry) {
    rrl_status rc;
    uint8_t sum[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX], *folder = NULL, *path = NULL;
    rrl_buffer file = {0};
    rc = file_of(&file, checkpoint);
    if (rc != RRL_OK) {
        rc = rc == RRL_ERR_NOMEM ? rc : RRL_OK;
        goto done;
    }
    RRL_GOTO(rrl_sha256_of(sum, file.data, file.len));
    rrl_sha256_hex(hex, sum);
    *made = strcmp(hex, sha256) == 0;
    if (!*made || dry) goto done;
    RRL_GOTO(rrl_path_join(&folder, dir, "adapter"));
    RRL_GOTO(rrl_path_join(&path, folder, "adapter_model.safetensors"));
    RRL_GOTO(rrl_dir_make(folder));
    RRL_GOTO(rrl_file_publish(path, file.data, file.len));
done:
    rrl_buffer_free(&file);
    free(folder);
    free(path);
    return rc;
}

rrl_status rrl_adapter_again(bool *made, const char *dir, const char *sha256, bool dry) {
    rrl_status rc;
    char *root = NULL, *checkpoint = NULL, **names = NULL;
    size_t n = 0;
    *made = false;
    RRL_GOTO(rrl_path_join(&root, dir, "checkpoints"));
    if (rrl_dir_exists(root)) RRL_GOTO(rrl_dir_list(&names, &n, root));
    for (size_t i = n; i-- > 0 && !*made;) { /* the newest first */
        free(checkpoint);
        checkpoint = NULL;
        RRL_GOTO(rrl_path_join(&checkpoint, root, names[i]));
        if (strncmp(names[i], "step-", 5) == 0) RRL_GOTO(try_checkpoint(made, dir, checkpoint, sha256, dry));
    }
done:
    rrl_names_free(&names, n);
    free(checkpoint);
    free(root);
    return rc;
}

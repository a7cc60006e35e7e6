/* Reading safetensors: map a file, check every promise of its header before a single tensor is handed out.
 *
 * Layout of a file: u64 header length, little-endian; a JSON object name -> {dtype, shape, data_offsets}; the
 * data. The whole data range must be covered exactly once, so no byte is read as two tensors and none is
 * unaccounted for. A model of several shards is one mapping with one list of tensors. */
#include "data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data is used as it lies in the file");

enum { LENGTH_BYTES = 8, MAX_DIMS = 8 };
static const uint64_t MAX_HEADER = 100000000, MAX_INDEX = 100000000;

static const struct {
    const char *name;
    rrl_st_dtype dtype;
    int bytes;
} DTYPES[] = {
#define X(dtype, name, bytes) {name, dtype, bytes},
    RRL_ST_DTYPE_LIST(X)
#undef X
    {"F64", RRL_ST_OTHER, 8},  {"I16", RRL_ST_OTHER, 2},     {"I8", RRL_ST_OTHER, 1},
    {"U64", RRL_ST_OTHER, 8},  {"U32", RRL_ST_OTHER, 4},     {"U16", RRL_ST_OTHER, 2},
    {"BOOL", RRL_ST_OTHER, 1}, {"F8_E4M3", RRL_ST_OTHER, 1}, {"F8_E5M2", RRL_ST_OTHER, 1},
};
enum { N_DTYPES = sizeof DTYPES / sizeof DTYPES[0] };

typedef struct {
    char *path;
    const uint8_t *map;
    size_t size;
    cJSON *header; /* owns the names of its tensors */
} st_file;

struct rrl_safetensors {
    st_file *files;
    size_t n_files, files_capacity;
    rrl_st_tensor *tensors; /* by file, then by offset */
    size_t n, capacity;
    const rrl_st_tensor **by_name;
};

/* A tensor while its file is checked: offsets within the data of the file. */
typedef struct {
    rrl_st_tensor t;
    uint64_t begin, end;
} st_entry;

static rrl_status map_file(st_file *f, const char *path) {
    rrl_status rc = RRL_OK;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        rc = RRL_FAIL(errno == ENOENT ? RRL_ERR_DATA : RRL_ERR_IO, "%s: cannot be opened: %s", path,
                      strerror(errno));
        goto done;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: is no regular file", path);
        goto done;
    }
    if (st.st_size < LENGTH_BYTES + 2) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: %lld bytes are too few for a safetensors file (cut short?)", path,
                      (long long)st.st_size);
        goto done;
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        goto done;
    }
    f->map = map;
    f->size = (size_t)st.st_size;
    RRL_GOTO(rrl_strdup(&f->path, path));
done:
    if (fd >= 0) close(fd);
    return rc;
}

/* Non-negative whole number that a JSON number (a double) holds exactly. */
static bool whole(uint64_t *out, const cJSON *number) {
    if (!cJSON_IsNumber(number)) return false;
    double v = number->valuedouble;
    if (!(v >= 0 && v <= 9007199254740992.0) || v != floor(v)) return false;
    *out = (uint64_t)v;
    return true;
}

static rrl_status parse_shape(rrl_st_tensor *t, uint64_t *bytes, const cJSON *shape, int element,
                              const char *path) {
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > MAX_DIMS)
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: shape is no list of at most %d numbers", path, t->name,
                        MAX_DIMS);
    uint64_t n = 1;
    const cJSON *dim;
    cJSON_ArrayForEach(dim, shape) {
        uint64_t d;
        if (!whole(&d, dim))
            return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: dimension %d is no whole number >= 0", path,
                            t->name, t->n_dims);
        t->dims[t->n_dims++] = (int64_t)d;
        if (__builtin_mul_overflow(n, d, &n))
            return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: shape overflows 64 bits", path, t->name);
    }
    if (n > INT64_MAX || __builtin_mul_overflow(n, (uint64_t)element, bytes))
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: shape overflows 64 bits", path, t->name);
    t->n_elements = (int64_t)n;
    return RRL_OK;
}

static rrl_status parse_entry(st_entry *e, const cJSON *node, uint64_t data_size, const char *path) {
    *e = (st_entry){.t.name = node->string};
    if (!cJSON_IsObject(node))
        return RRL_FAIL(RRL_ERR_DATA, "%s: header entry %s is no object", path, e->t.name);
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(node, "dtype");
    int d = 0;
    while (d < N_DTYPES && !(cJSON_IsString(dtype) && strcmp(dtype->valuestring, DTYPES[d].name) == 0)) d++;
    if (d == N_DTYPES)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: tensor %s: dtype %s is not known (F32, BF16, F16 are what a model uses)", path,
                        e->t.name, cJSON_IsString(dtype) ? dtype->valuestring : "missing or no text");
    e->t.dtype = DTYPES[d].dtype;

    uint64_t bytes = 0;
    RRL_TRY(
        parse_shape(&e->t, &bytes, cJSON_GetObjectItemCaseSensitive(node, "shape"), DTYPES[d].bytes, path));
    const cJSON *range = cJSON_GetObjectItemCaseSensitive(node, "data_offsets");
    if (!cJSON_IsArray(range) || cJSON_GetArraySize(range) != 2 ||
        !whole(&e->begin, cJSON_GetArrayItem(range, 0)) || !whole(&e->end, cJSON_GetArrayItem(range, 1)))
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: data_offsets are not two whole numbers >= 0", path,
                        e->t.name);
    if (e->begin > e->end)
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: data_offsets run backwards (%llu to %llu)", path,
                        e->t.name, (unsigned long long)e->begin, (unsigned long long)e->end);
    if (e->end > data_size)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: tensor %s ends at byte %llu of %llu bytes of data (truncated file?)", path,
                        e->t.name, (unsigned long long)e->end, (unsigned long long)data_size);
    if (e->end - e->begin != bytes)
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s: its shape needs %llu bytes, its data_offsets hold %llu",
                        path, e->t.name, (unsigned long long)bytes, (unsigned long long)(e->end - e->begin));
    return RRL_OK;
}

static int by_offset(const void *a, const void *b) {
    const st_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty tensors come before the one that starts there */
}

/* Sorted entries must tile [0, data_size). */
static rrl_status check_cover(const st_entry *e, size_t n, uint64_t data_size, const char *path) {
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (e[i].begin != at)
            return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s starts at byte %llu, expected %llu: %s", path,
                            e[i].t.name, (unsigned long long)e[i].begin, (unsigned long long)at,
                            e[i].begin < at ? "tensors overlap" : "a hole before it");
        at = e[i].end;
    }
    if (at != data_size)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: tensors end at byte %llu of %llu bytes of data: bytes that belong to none", path,
                        (unsigned long long)at, (unsigned long long)data_size);
    return RRL_OK;
}

static rrl_status header_of(st_file *f, const uint8_t **data, uint64_t *data_size) {
    uint64_t length;
    memcpy(&length, f->map, sizeof length);
    if (length > f->size - LENGTH_BYTES || length > MAX_HEADER)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: header of %llu bytes in a file of %zu (limit %llu): no safetensors file, or cut",
                        f->path, (unsigned long long)length, f->size, (unsigned long long)MAX_HEADER);
    RRL_TRY(rrl_json_parse(&f->header, (const char *)f->map + LENGTH_BYTES, (size_t)length, f->path));
    if (!cJSON_IsObject(f->header)) return RRL_FAIL(RRL_ERR_DATA, "%s: header is no JSON object", f->path);
    *data = f->map + LENGTH_BYTES + length;
    *data_size = f->size - LENGTH_BYTES - length;
    return RRL_OK;
}

/* Map one more file and add its tensors. */
static rrl_status add_file(rrl_safetensors *s, const char *path) {
    rrl_status rc = RRL_OK;
    st_entry *entries = NULL;
    const uint8_t *data = NULL;
    uint64_t data_size = 0;
    size_t n = 0;

    RRL_GOTO(rrl_grow(&s->files, &s->files_capacity, s->n_files + 1, sizeof *s->files, "safetensors files"));
    st_file *f = &s->files[s->n_files];
    *f = (st_file){0};
    s->n_files++; /* from here close() releases what is there */
    RRL_GOTO(map_file(f, path));
    RRL_GOTO(header_of(f, &data, &data_size));
    RRL_GOTO(rrl_alloc(&entries, (size_t)cJSON_GetArraySize(f->header) + 1, sizeof *entries,
                       "safetensors header"));
    const cJSON *node;
    cJSON_ArrayForEach(node, f->header) {
        if (strcmp(node->string, "__metadata__") == 0) continue;
        RRL_GOTO(parse_entry(&entries[n++], node, data_size, path));
    }
    qsort(entries, n, sizeof *entries, by_offset);
    RRL_GOTO(check_cover(entries, n, data_size, path));

    RRL_GOTO(rrl_grow(&s->tensors, &s->capacity, s->n + n, sizeof *s->tensors, "safetensors tensors"));
    for (size_t i = 0; i < n; i++) {
        entries[i].t.data = data + entries[i].begin;
        s->tensors[s->n++] = entries[i].t;
    }
done:
    free(entries);
    return rc;
}

static int by_name(const void *a, const void *b) {
    const rrl_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static rrl_status index_names(rrl_safetensors *s, const char *where) {
    RRL_TRY(rrl_alloc(&s->by_name, s->n + 1, sizeof *s->by_name, "safetensors names"));
    for (size_t i = 0; i < s->n; i++) s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n, sizeof *s->by_name, by_name);
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->by_name[i - 1]->name, s->by_name[i]->name) == 0)
            return RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s is there twice", where, s->by_name[i]->name);
    return RRL_OK;
}

rrl_status rrl_safetensors_open(rrl_safetensors **out, const char *path) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *s = NULL;
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "safetensors"));
    RRL_GOTO(add_file(s, path));
    RRL_GOTO(index_names(s, path));
    *out = s;
    s = NULL;
done:
    rrl_safetensors_close(&s);
    return rc;
}

/* A shard is a plain file name: a path would let an index reach outside the model's folder. */
static bool plain_name(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Distinct shard names of weight_map, sorted; borrowed from the document. */
static rrl_status shard_names(const char **names, size_t *n, const cJSON *map, const char *where) {
    size_t count = 0;
    const cJSON *node;
    cJSON_ArrayForEach(node, map) {
        if (!cJSON_IsString(node) || !plain_name(node->valuestring))
            return RRL_FAIL(RRL_ERR_DATA,
                            "%s: shard \"%s\" of tensor %s is no file name in the model's folder", where,
                            cJSON_IsString(node) ? node->valuestring : "?", node->string);
        names[count++] = node->valuestring;
    }
    qsort(names, count, sizeof *names, by_text);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(names[kept - 1], names[i]) != 0) names[kept++] = names[i];
    *n = kept;
    return RRL_OK;
}

static rrl_status open_shards(rrl_safetensors *s, const char *dir, const char *index) {
    rrl_status rc = RRL_OK;
    cJSON *doc = NULL;
    const cJSON *map = NULL, *node;
    const char **names = NULL;
    char *path = NULL;
    size_t n = 0;

    RRL_GOTO(rrl_json_file(&doc, index, MAX_INDEX));
    RRL_GOTO(rrl_json_get(&map, doc, "weight_map", false, index));
    if (!cJSON_IsObject(map) || !map->child) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: weight_map is no object of tensor names", index);
        goto done;
    }
    RRL_GOTO(rrl_alloc(&names, (size_t)cJSON_GetArraySize(map), sizeof *names, "shard names"));
    RRL_GOTO(shard_names(names, &n, map, index));
    for (size_t i = 0; i < n; i++) {
        RRL_GOTO(rrl_path_join(&path, dir, names[i]));
        RRL_GOTO(rrl_context(add_file(s, path), "%s names a shard", index));
        free(path);
        path = NULL;
    }
    RRL_GOTO(index_names(s, index));
    cJSON_ArrayForEach(node, map) if (!rrl_safetensors_find(s, node->string)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: tensor %s is in none of the shards", index, node->string);
        goto done;
    }
done:
    free(names);
    free(path);
    cJSON_Delete(doc);
    return rc;
}

rrl_status rrl_safetensors_open_model(rrl_safetensors **out, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *s = NULL;
    char *single = NULL, *index = NULL;
    RRL_GOTO(rrl_path_join(&single, dir, "model.safetensors"));
    RRL_GOTO(rrl_path_join(&index, dir, "model.safetensors.index.json"));
    if (rrl_file_exists(single)) {
        RRL_GOTO(rrl_safetensors_open(&s, single));
    } else if (rrl_file_exists(index)) {
        RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "safetensors"));
        RRL_GOTO(open_shards(s, dir, index));
    } else {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: holds neither model.safetensors nor model.safetensors.index.json",
                      dir);
        goto done;
    }
    *out = s;
    s = NULL;
done:
    rrl_safetensors_close(&s);
    free(single);
    free(index);
    return rc;
}

void rrl_safetensors_close(rrl_safetensors **s) {
    if (!s || !*s) return;
    for (size_t i = 0; i < (*s)->n_files; i++) {
        st_file *f = &(*s)->files[i];
        if (f->map) munmap((void *)f->map, f->size);
        cJSON_Delete(f->header);
        free(f->path);
    }
    free((*s)->files);
    free((*s)->tensors);
    free((void *)(*s)->by_name);
    free(*s);
    *s = NULL;
}

int64_t rrl_safetensors_count(const rrl_safetensors *s) {
    return (int64_t)s->n;
}

const rrl_st_tensor *rrl_safetensors_at(const rrl_safetensors *s, int64_t i) {
    return i >= 0 && (size_t)i < s->n ? &s->tensors[i] : NULL;
}

const rrl_st_tensor *rrl_safetensors_find(const rrl_safetensors *s, const char *name) {
    rrl_st_tensor key = {.name = name};
    const rrl_st_tensor *p = &key;
    const rrl_st_tensor **hit = bsearch(&p, s->by_name, s->n, sizeof *s->by_name, by_name);
    return hit ? *hit : NULL;
}

static float bits_to_float(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
    if (exponent == 31)
        return bits_to_float(sign | 0x7f800000u | fraction << 13); /* inf, NaN with its payload */
    if (exponent == 0) {
        float v = (float)fraction * 0x1p-24f; /* denormals: exact, a power of two times at most 10 bits */
        return sign ? -v : v;
    }
    return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
}

rrl_status rrl_safetensors_to_f32(float *out, const rrl_st_tensor *t) {
    const uint8_t *p = t->data;
    size_t n = (size_t)t->n_elements;
    switch (t->dtype) {
    case RRL_ST_F32:
        if (n) memcpy(out, p, n * sizeof *out);
        return RRL_OK;
    case RRL_ST_BF16:
    case RRL_ST_F16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, p + 2 * i, sizeof h);
            out[i] = t->dtype == RRL_ST_BF16 ? bits_to_float((uint32_t)h << 16) : half_to_float(h);
        }
        return RRL_OK;
    default:
        return RRL_FAIL(RRL_ERR_DATA, "tensor %s: F32, BF16 or F16 expected, found another element type",
                        t->name);
    }
}

/* Whole pages within [p, p + n). That it cannot be done costs memory and no more. */
static void let_go(const uint8_t *p, size_t n) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)p + page - 1) / page * page, end = ((uintptr_t)p + n) / page * page;
    if (end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void rrl_safetensors_let_go(const rrl_st_tensor *t) {
    for (int i = 0; i < N_DTYPES; i++)
        if (DTYPES[i].dtype == t->dtype) {
            let_go(t->data, (size_t)t->n_elements * (size_t)DTYPES[i].bytes);
            return;
        }
}

rrl_status rrl_safetensors_state(rrl_buffer *out, const rrl_safetensors *s) {
    for (size_t i = 0; i < s->n_files; i++) {
        struct stat st;
        if (stat(s->files[i].path, &st) != 0)
            return RRL_FAIL(RRL_ERR_IO, "%s: cannot be looked at: %s", s->files[i].path, strerror(errno));
        RRL_TRY(rrl_buffer_printf(out, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", s->files[i].path,
                                  (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (long long)st.st_size,
                                  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
                                  st.st_ctim.tv_nsec));
    }
    return RRL_OK;
}

/* In pieces, each let go when it is hashed. */
static rrl_status hash_file(rrl_sha256 *h, const st_file *f) {
    enum { PIECE = 1 << 24 };
    for (size_t at = 0; at < f->size; at += PIECE) {
        size_t n = f->size - at < PIECE ? f->size - at : PIECE;
        RRL_TRY(rrl_sha256_add(h, f->map + at, n));
        let_go(f->map + at, n);
    }
    return RRL_OK;
}

rrl_status rrl_safetensors_digest(char out[65], const rrl_safetensors *s) {
    rrl_status rc = RRL_OK;
    rrl_sha256 *h = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(rrl_sha256_open(&h));
    for (size_t i = 0; i < s->n_files; i++) RRL_GOTO(hash_file(h, &s->files[i]));
    RRL_GOTO(rrl_sha256_end(h, digest));
    rrl_sha256_hex(out, digest);
done:
    rrl_sha256_close(&h);
    return rc;
}

/* Rows travel through a packed buffer of a bounded number of bytes: pack, write a block, pack on. A row
 * struct may be padded, the packed form is not, and its layout is the file's. */
#include "record/h5_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    CHUNK_BYTES = 1 << 18, /* of a chunk before compression */
    BLOCK_BYTES = 1 << 20, /* of the packed buffer */
    DEFLATE_LEVEL = 4,
    MAX_RATIO =
        1100 /* deflate cannot compress more (1032 and room); a file that claims it is broken or hostile */
};

static int64_t at_least_one(int64_t n) {
    return n < 1 ? 1 : n;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- datasets */

static rrl_status dataset_make(hid_t *out, hid_t parent, const char *name, hid_t type, int64_t n,
                               const char *path) {
    hsize_t rows = (hsize_t)n;
    hsize_t chunk = (hsize_t)smaller(at_least_one(CHUNK_BYTES / (int64_t)H5Tget_size(type)), at_least_one(n));
    hid_t space = H5Screate_simple(1, &rows, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    bool ok = space >= 0 && create >= 0 && H5Pset_obj_track_times(create, 0) >= 0;
    /* chunks may not be larger than a dataset of fixed size, so an empty one has none */
    if (ok && n > 0)
        ok = H5Pset_chunk(create, 1, &chunk) >= 0 && H5Pset_shuffle(create) >= 0 &&
             H5Pset_deflate(create, DEFLATE_LEVEL) >= 0 && H5Pset_fletcher32(create) >= 0;
    hid_t ds = ok ? H5Dcreate2(parent, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT) : -1;
    rrl_h5_drop(&space);
    rrl_h5_drop(&create);
    if (ds < 0) return rrl_h5_fail(RRL_ERR_IO, path, "dataset %s cannot be made", name);
    *out = ds;
    return RRL_OK;
}

/* The index of chunks has no checksum in files of HDF5 1.8, and a chunk that it lost would read as zeros: all must be
 * there, each with all its filters. */
static rrl_status check_chunks(hid_t ds, hid_t space, hsize_t rows, const char *name, const char *path) {
    hid_t create = H5Dget_create_plist(ds);
    hsize_t chunk = 0, n = 0, at = 0, bytes = 0;
    haddr_t address = 0;
    unsigned skipped = 0;
    bool chunked = create >= 0 && H5Pget_layout(create) == H5D_CHUNKED && H5Pget_chunk(create, 1, &chunk) == 1;
    rrl_h5_drop(&create);
    if (!chunked) return RRL_OK;
    bool ok = chunk > 0 && H5Dget_num_chunks(ds, space, &n) >= 0 && n == (rows + chunk - 1) / chunk;
    for (hsize_t i = 0; i < n && ok; i++)
        ok = H5Dget_chunk_info(ds, space, i, &at, &skipped, &address, &bytes) >= 0 && at == i * chunk && !skipped;
    return ok ? RRL_OK : rrl_h5_fail(RRL_ERR_DATA, path, "dataset %s: the index of its chunks is damaged", name);
}

/* An open one-dimensional dataset whose size is believable: rows are real bytes of this file. */
static rrl_status dataset_open(hid_t *out, int64_t *n, hid_t parent, const char *name, const char *path) {
    rrl_status rc = RRL_OK;
    hid_t ds = -1, space = -1, type = -1, file = -1;
    hsize_t rows = 0, size = 0;
    if (!rrl_h5_has(parent, name)) RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "dataset %s is missing", name));
    if ((ds = H5Dopen2(parent, name, H5P_DEFAULT)) < 0 || (space = H5Dget_space(ds)) < 0 ||
        (type = H5Dget_type(ds)) < 0 || (file = H5Iget_file_id(ds)) < 0 || H5Fget_filesize(file, &size) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "dataset %s cannot be opened", name));
    if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &rows, NULL) != 1)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "dataset %s does not have one dimension", name));
    hsize_t stored = H5Dget_storage_size(ds), width = H5Tget_size(type);
    if (stored > size || (rows && (!width || rows > (stored + 4) * MAX_RATIO / width)))
        RRL_GOTO(rrl_h5_fail(
            RRL_ERR_DATA, path, "dataset %s claims %llu rows of %llu bytes but holds only %llu bytes", name,
            (unsigned long long)rows, (unsigned long long)width, (unsigned long long)stored));
    RRL_GOTO(check_chunks(ds, space, rows, name, path));
    *n = (int64_t)rows;
    *out = ds;
    ds = -1;
done:
    rrl_h5_drop(&file);
    rrl_h5_drop(&type);
    rrl_h5_drop(&space);
    rrl_h5_drop(&ds);
    return rc;
}

typedef herr_t transfer_fn(hid_t ds, hid_t type, hid_t memory, hid_t file, void *block);

static herr_t transfer_write(hid_t ds, hid_t type, hid_t memory, hid_t file, void *block) {
    return H5Dwrite(ds, type, memory, file, H5P_DEFAULT, block);
}

static herr_t transfer_read(hid_t ds, hid_t type, hid_t memory, hid_t file, void *block) {
    return H5Dread(ds, type, memory, file, H5P_DEFAULT, block);
}

/* Rows [first, first + n) between the dataset and a packed block. */
static bool transfer(hid_t ds, hid_t type, int64_t first, int64_t n, void *block, transfer_fn *move) {
    hsize_t start = (hsize_t)first, count = (hsize_t)n;
    hid_t file = H5Dget_space(ds), memory = H5Screate_simple(1, &count, NULL);
    bool ok = file >= 0 && memory >= 0 &&
              H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
              move(ds, type, memory, file, block) >= 0;
    rrl_h5_drop(&memory);
    rrl_h5_drop(&file);
    return ok;
}

static rrl_status put_column_attributes(hid_t ds, const rrl_column *c, const char *path) {
    RRL_TRY(rrl_h5_attr_put_text(ds, "unit", c->unit, path));
    RRL_TRY(rrl_h5_attr_put_text(ds, "missing", c->missing, path));
    return rrl_h5_attr_put_text(ds, "meaning", c->meaning, path);
}

/* --- packed rows */

typedef struct {
    hid_t type;    /* compound of the file's types, no padding */
    size_t bytes;  /* of a row */
    size_t *at;    /* [n_columns] offset of each column */
    size_t *width; /* [n_columns] */
} packing;

static void packing_free(packing *p) {
    rrl_h5_drop(&p->type);
    free(p->at);
    free(p->width);
}

static rrl_status packing_alloc(packing *p, const rrl_table *t) {
    *p = (packing){.type = -1};
    RRL_TRY(rrl_alloc(&p->at, (size_t)t->n_columns, sizeof *p->at, "columns of a table"));
    return rrl_alloc(&p->width, (size_t)t->n_columns, sizeof *p->width, "columns of a table");
}

/* Offsets and compound type once the widths are known. */
static rrl_status packing_make(packing *p, const rrl_table *t, const char *path) {
    p->bytes = 0;
    for (int i = 0; i < t->n_columns; i++) {
        p->at[i] = p->bytes;
        p->bytes += p->width[i];
    }
    if ((p->type = H5Tcreate(H5T_COMPOUND, p->bytes)) < 0)
        return rrl_h5_fail(RRL_ERR_IO, path, "row type of %s cannot be made", t->name);
    for (int i = 0; i < t->n_columns; i++) {
        hid_t member = -1;
        RRL_TRY(rrl_h5_type(&member, t->columns[i].kind, p->width[i], path));
        herr_t e = H5Tinsert(p->type, t->columns[i].name, p->at[i], member);
        rrl_h5_drop(&member);
        if (e < 0)
            return rrl_h5_fail(RRL_ERR_IO, path, "column %s of %s cannot be made", t->columns[i].name,
                               t->name);
    }
    return RRL_OK;
}

static const char *text_of(const rrl_column *c, const void *row) {
    const char *text;
    memcpy(&text, rrl_column_at(c, row), sizeof text);
    return text ? text : "";
}

/* Widths of rows in memory: texts as wide as the longest. */
static void widths_of_rows(packing *p, const rrl_table *t, const char *rows, int64_t n) {
    for (int i = 0; i < t->n_columns; i++) {
        const rrl_column *c = &t->columns[i];
        p->width[i] = c->kind == RRL_COLUMN_TEXT ? 1 : rrl_column_bytes(c->kind);
        for (int64_t k = 0; k < n && c->kind == RRL_COLUMN_TEXT; k++) {
            size_t length = strlen(text_of(c, rows + (size_t)k * t->row_bytes));
            if (length > p->width[i]) p->width[i] = length;
        }
    }
}

/* Widths for reading: every column must be there, texts as wide as in the file. */
static rrl_status widths_of_file(packing *p, const rrl_table *t, hid_t ds, const char *path) {
    rrl_status rc = RRL_OK;
    hid_t type = H5Dget_type(ds), member = -1;
    if (type < 0 || H5Tget_class(type) != H5T_COMPOUND)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "%s is no table of compound rows", t->name));
    for (int i = 0; i < t->n_columns; i++) {
        const rrl_column *c = &t->columns[i];
        int at = H5Tget_member_index(type, c->name);
        if (at < 0) RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "table %s has no column %s", t->name, c->name));
        if ((member = H5Tget_member_type(type, (unsigned)at)) < 0)
            RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "column %s of %s cannot be read", c->name, t->name));
        H5T_class_t got = H5Tget_class(member);
        bool text = c->kind == RRL_COLUMN_TEXT;
        bool real = c->kind == RRL_COLUMN_F32 || c->kind == RRL_COLUMN_F64;
        if (got != (text   ? H5T_STRING
                    : real ? H5T_FLOAT
                           : H5T_INTEGER) ||
            (text && H5Tis_variable_str(member) != 0))
            RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "column %s of %s is not of type %s", c->name, t->name,
                                 rrl_column_kind_text(c->kind)));
        p->width[i] = text ? H5Tget_size(member) : rrl_column_bytes(c->kind);
        rrl_h5_drop(&member);
    }
done:
    rrl_h5_drop(&member);
    rrl_h5_drop(&type);
    return rc;
}

static void pack_row(char *packed, const packing *p, const rrl_table *t, const void *row) {
    for (int i = 0; i < t->n_columns; i++) {
        const rrl_column *c = &t->columns[i];
        const void *from = c->kind == RRL_COLUMN_TEXT ? text_of(c, row) : rrl_column_at(c, row);
        size_t bytes = c->kind == RRL_COLUMN_TEXT ? strlen(from) : p->width[i];
        memcpy(packed + p->at[i], from, bytes);
        memset(packed + p->at[i] + bytes, 0, p->width[i] - bytes);
    }
}

static rrl_status unpack_row(char *row, const packing *p, const rrl_table *t, const char *packed) {
    for (int i = 0; i < t->n_columns; i++) {
        const rrl_column *c = &t->columns[i];
        if (c->kind != RRL_COLUMN_TEXT) {
            memcpy(row + c->offset, packed + p->at[i], p->width[i]);
            continue;
        }
        char *text = NULL;
        size_t bytes = strnlen(packed + p->at[i], p->width[i]);
        RRL_TRY(rrl_alloc(&text, bytes + 1, 1, "text of a table"));
        memcpy(text, packed + p->at[i], bytes);
        memcpy(row + c->offset, &text, sizeof text);
    }
    return RRL_OK;
}

/* --- tables */

static rrl_status put_table_attributes(hid_t ds, const rrl_table *t, const char *path) {
    rrl_status rc = RRL_OK;
    const char **texts = NULL;
    static const char *const NAMES[] = {"columns", "unit", "missing", "meaning"};
    RRL_GOTO(rrl_alloc(&texts, (size_t)t->n_columns, sizeof *texts, "columns of a table"));
    for (int a = 0; a < 4; a++) {
        for (int i = 0; i < t->n_columns; i++) {
            const rrl_column *c = &t->columns[i];
            const char *of[] = {c->name, c->unit, c->missing, c->meaning};
            texts[i] = of[a];
        }
        RRL_GOTO(rrl_h5_attr_put_texts(ds, NAMES[a], texts, t->n_columns, path));
    }
done:
    free(texts);
    return rc;
}

rrl_status rrl_h5_table_put(hid_t parent, const rrl_table *t, const void *rows, int64_t n, const char *path) {
    rrl_status rc = RRL_OK;
    packing p;
    char *block = NULL;
    hid_t ds = -1;
    RRL_GOTO(packing_alloc(&p, t));
    widths_of_rows(&p, t, rows, n);
    RRL_GOTO(packing_make(&p, t, path));
    RRL_GOTO(dataset_make(&ds, parent, t->name, p.type, n, path));
    RRL_GOTO(put_table_attributes(ds, t, path));
    int64_t most = at_least_one(smaller(n, BLOCK_BYTES / (int64_t)p.bytes));
    RRL_GOTO(rrl_alloc(&block, (size_t)most, p.bytes, "rows of a table"));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = smaller(most, n - first);
        for (int64_t k = 0; k < count; k++)
            pack_row(block + (size_t)k * p.bytes, &p, t,
                     (const char *)rows + (size_t)(first + k) * t->row_bytes);
        if (!transfer(ds, p.type, first, count, block, transfer_write))
            RRL_GOTO(rrl_h5_fail(RRL_ERR_IO, path, "table %s cannot be written", t->name));
    }
done:
    free(block);
    rrl_h5_drop(&ds);
    packing_free(&p);
    return rc;
}

static void free_rows(char *rows, int64_t n, const rrl_table *t) {
    for (int i = 0; rows && i < t->n_columns; i++)
        for (int64_t k = 0; k < n && t->columns[i].kind == RRL_COLUMN_TEXT; k++) {
            char *text;
            memcpy(&text, rows + (size_t)k * t->row_bytes + t->columns[i].offset, sizeof text);
            free(text);
        }
    free(rows);
}

rrl_status rrl_h5_table_get(void **rows, int64_t *n, hid_t parent, const rrl_table *t, const char *path) {
    rrl_status rc = RRL_OK;
    packing p;
    char *block = NULL, *made = NULL;
    int64_t total = 0;
    hid_t ds = -1;
    RRL_GOTO(packing_alloc(&p, t));
    RRL_GOTO(dataset_open(&ds, &total, parent, t->name, path));
    RRL_GOTO(widths_of_file(&p, t, ds, path));
    RRL_GOTO(packing_make(&p, t, path));
    RRL_GOTO(rrl_alloc(&made, (size_t)at_least_one(total), t->row_bytes, "rows of a table"));
    int64_t most = at_least_one(smaller(total, BLOCK_BYTES / (int64_t)p.bytes));
    RRL_GOTO(rrl_alloc(&block, (size_t)most, p.bytes, "rows of a table"));
    for (int64_t first = 0; first < total; first += most) {
        int64_t count = smaller(most, total - first);
        if (!transfer(ds, p.type, first, count, block, transfer_read))
            RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "table %s cannot be read", t->name));
        for (int64_t k = 0; k < count; k++)
            RRL_GOTO(
                unpack_row(made + (size_t)(first + k) * t->row_bytes, &p, t, block + (size_t)k * p.bytes));
    }
    *rows = made;
    *n = total;
    made = NULL;
done:
    free_rows(made, total, t);
    free(block);
    rrl_h5_drop(&ds);
    packing_free(&p);
    return rc;
}

/* --- flat arrays */

rrl_status rrl_h5_array_put(hid_t parent, const rrl_column *c, const void *values, int64_t n,
                            const char *path) {
    rrl_status rc = RRL_OK;
    hid_t type = -1, ds = -1;
    RRL_GOTO(rrl_h5_type(&type, c->kind, 0, path));
    RRL_GOTO(dataset_make(&ds, parent, c->name, type, n, path));
    RRL_GOTO(put_column_attributes(ds, c, path));
    if (n > 0 && H5Dwrite(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        rc = rrl_h5_fail(RRL_ERR_IO, path, "%s cannot be written", c->name);
done:
    rrl_h5_drop(&ds);
    rrl_h5_drop(&type);
    return rc;
}

rrl_status rrl_h5_array_get(void **values, int64_t *n, hid_t parent, const rrl_column *c, const char *path) {
    rrl_status rc = RRL_OK;
    hid_t type = -1, ds = -1;
    void *made = NULL;
    int64_t total = 0;
    RRL_GOTO(dataset_open(&ds, &total, parent, c->name, path));
    RRL_GOTO(rrl_h5_type(&type, c->kind, 0, path));
    RRL_GOTO(rrl_alloc(&made, (size_t)at_least_one(total), rrl_column_bytes(c->kind), "values of a record"));
    if (total > 0 && H5Dread(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "%s cannot be read", c->name));
    *values = made;
    *n = total;
    made = NULL;
done:
    free(made);
    rrl_h5_drop(&type);
    rrl_h5_drop(&ds);
    return rc;
}

/* --- row-aligned texts */

static size_t text_bytes(rrl_text_bytes *bytes, const void *rows, int64_t i) {
    int64_t n = bytes(rows, i);
    return n > 0 ? (size_t)n : 0;
}

rrl_status rrl_h5_texts_put(hid_t parent, const rrl_column *c, char *const *texts, rrl_text_bytes *bytes,
                            const void *rows, int64_t n, const char *path) {
    rrl_status rc = RRL_OK;
    char *block = NULL;
    hid_t type = -1, ds = -1;
    size_t width = 1;
    for (int64_t i = 0; i < n; i++)
        if (text_bytes(bytes, rows, i) > width) width = text_bytes(bytes, rows, i);
    RRL_GOTO(rrl_h5_type(&type, RRL_COLUMN_TEXT, width, path));
    RRL_GOTO(dataset_make(&ds, parent, c->name, type, n, path));
    RRL_GOTO(put_column_attributes(ds, c, path));
    int64_t most = at_least_one(smaller(n, BLOCK_BYTES / (int64_t)width));
    RRL_GOTO(rrl_alloc(&block, (size_t)most, width, "texts of a record"));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = smaller(most, n - first);
        memset(block, 0, (size_t)count * width);
        for (int64_t k = 0; k < count; k++)
            memcpy(block + (size_t)k * width, texts[first + k], text_bytes(bytes, rows, first + k));
        if (!transfer(ds, type, first, count, block, transfer_write))
            RRL_GOTO(rrl_h5_fail(RRL_ERR_IO, path, "%s cannot be written", c->name));
    }
done:
    free(block);
    rrl_h5_drop(&ds);
    rrl_h5_drop(&type);
    return rc;
}

/* Opens texts for reading; *width is that of the file. */
static rrl_status texts_open(hid_t *out, size_t *width, int64_t n, hid_t parent, const rrl_column *c,
                             const char *path) {
    int64_t rows = 0;
    hid_t ds = -1;
    RRL_TRY(dataset_open(&ds, &rows, parent, c->name, path));
    hid_t type = H5Dget_type(ds);
    bool text = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
    *width = text ? H5Tget_size(type) : 0;
    rrl_h5_drop(&type);
    if (text && *width && rows == n) {
        *out = ds;
        return RRL_OK;
    }
    rrl_h5_drop(&ds);
    if (rows != n)
        return RRL_FAIL(RRL_ERR_DATA, "%s: %s has %lld rows, rollouts has %lld", path, c->name,
                        (long long)rows, (long long)n);
    return RRL_FAIL(RRL_ERR_DATA, "%s: %s holds no fixed-length texts", path, c->name);
}

rrl_status rrl_h5_texts_get(char ***texts, rrl_text_bytes *bytes, const void *rows, int64_t n, hid_t parent,
                            const rrl_column *c, const char *path) {
    rrl_status rc = RRL_OK;
    char *block = NULL, **made = NULL;
    size_t width = 0;
    hid_t ds = -1, type = -1;
    RRL_GOTO(texts_open(&ds, &width, n, parent, c, path));
    RRL_GOTO(rrl_h5_type(&type, RRL_COLUMN_TEXT, width, path));
    RRL_GOTO(rrl_alloc(&made, (size_t)at_least_one(n), sizeof *made, "texts of a record"));
    int64_t most = at_least_one(smaller(n, BLOCK_BYTES / (int64_t)width));
    RRL_GOTO(rrl_alloc(&block, (size_t)most, width, "texts of a record"));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = smaller(most, n - first);
        if (!transfer(ds, type, first, count, block, transfer_read))
            RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "%s cannot be read", c->name));
        for (int64_t k = 0; k < count; k++) {
            size_t length = text_bytes(bytes, rows, first + k);
            if (length > width)
                RRL_GOTO(RRL_FAIL(RRL_ERR_DATA,
                                  "%s: row %lld of %s is said to have %zu bytes, of %zu that fit", path,
                                  (long long)(first + k), c->name, length, width));
            RRL_GOTO(rrl_alloc(&made[first + k], length + 1, 1, "text of a record"));
            memcpy(made[first + k], block + (size_t)k * width, length);
        }
    }
    *texts = made;
    made = NULL;
done:
    for (int64_t i = 0; made && i < n; i++) free(made[i]);
    free(made);
    free(block);
    rrl_h5_drop(&type);
    rrl_h5_drop(&ds);
    return rc;
}

rrl_status rrl_h5_rows(int64_t *n, hid_t parent, const char *name, const char *path) {
    hid_t ds = -1;
    RRL_TRY(dataset_open(&ds, n, parent, name, path));
    rrl_h5_drop(&ds);
    return RRL_OK;
}

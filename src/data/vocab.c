/* Byte-level vocabularies spell each byte as a printable character: printable Latin-1 bytes stand for
 * themselves, the other 68 are U+0100, U+0101, ... in order of the byte (GPT-2's bytes_to_unicode). A token
 * with any character outside this alphabet stands for its own UTF-8 bytes, as in the decoder of the
 * tokenizers library. */
#include "data/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { FIRST_SLOTS = 1024, ALPHABET = 256 + 68 };

typedef struct {
    size_t text, bytes; /* offsets in the arena */
    uint32_t text_len, bytes_len;
    bool used;
} vocab_token;

struct rrl_vocab {
    rrl_buffer arena;
    vocab_token *tokens; /* [size], by id */
    size_t capacity;
    int32_t size;
    int32_t *slots; /* [n_slots], a power of two: ids by hash of their text, -1 = free */
    size_t n_slots, n_used;
    int32_t of_byte[256];
    int16_t to_byte[ALPHABET]; /* by code point, -1 = outside the alphabet */
    uint16_t of_byte_cp[256];
};

static bool prints_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static void byte_alphabet(uint16_t cp[256]) {
    uint16_t next = 256;
    for (int b = 0; b < 256; b++) cp[b] = prints_itself(b) ? (uint16_t)b : next++;
}

static uint64_t text_hash(const char *text, size_t len) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) h = (h ^ (uint8_t)text[i]) * 1099511628211u;
    return h ^ h >> 32;
}

rrl_status rrl_vocab_open(rrl_vocab **out) {
    rrl_vocab *v = NULL;
    RRL_TRY(rrl_alloc(&v, 1, sizeof *v, "vocabulary"));
    byte_alphabet(v->of_byte_cp);
    for (int c = 0; c < ALPHABET; c++) v->to_byte[c] = -1;
    for (int b = 0; b < 256; b++) {
        v->to_byte[v->of_byte_cp[b]] = (int16_t)b;
        v->of_byte[b] = -1;
    }
    *out = v;
    return RRL_OK;
}

void rrl_vocab_close(rrl_vocab **v) {
    if (!v || !*v) return;
    rrl_buffer_free(&(*v)->arena);
    free((*v)->tokens);
    free((*v)->slots);
    free(*v);
    *v = NULL;
}

/* The slot of a text: where it is, or the free one where it belongs. */
static size_t slot_of(const rrl_vocab *v, const char *text, size_t len) {
    size_t i = text_hash(text, len) & (v->n_slots - 1);
    for (; v->slots[i] >= 0; i = (i + 1) & (v->n_slots - 1)) {
        const vocab_token *t = &v->tokens[v->slots[i]];
        if (t->text_len == len && memcmp(v->arena.data + t->text, text, len) == 0) break;
    }
    return i;
}

static rrl_status grow_slots(rrl_vocab *v) {
    if (2 * (v->n_used + 1) <= v->n_slots) return RRL_OK;
    size_t n = v->n_slots ? 2 * v->n_slots : FIRST_SLOTS;
    int32_t *slots = NULL;
    RRL_TRY(rrl_alloc(&slots, n, sizeof *slots, "vocabulary"));
    memset(slots, 0xff, n * sizeof *slots);
    free(v->slots);
    v->slots = slots;
    v->n_slots = n;
    for (int32_t id = 0; id < v->size; id++)
        if (v->tokens[id].used)
            slots[slot_of(v, v->arena.data + v->tokens[id].text, v->tokens[id].text_len)] = id;
    return RRL_OK;
}

/* Append the bytes a spelling stands for: by the alphabet if all of it is in there, else as it is. */
static rrl_status put_bytes(rrl_vocab *v, const char *text, size_t len) {
    size_t start = v->arena.len;
    for (const char *p = text, *end = text + len; p < end;) {
        uint32_t cp = rrl_utf8_next(&p, end);
        if (cp >= ALPHABET || v->to_byte[cp] < 0) {
            v->arena.len = start;
            return rrl_buffer_put(&v->arena, text, len);
        }
        char byte = (char)v->to_byte[cp];
        RRL_TRY(rrl_buffer_put(&v->arena, &byte, 1));
    }
    return RRL_OK;
}

rrl_status rrl_vocab_add(rrl_vocab *v, const char *text, int64_t id, const char *where) {
    size_t len = strlen(text);
    if (id < 0 || id >= RRL_VOCAB_MAX)
        return RRL_FAIL(RRL_ERR_DATA, "%s: token \"%s\" has id %lld, expected 0 to %d", where, text,
                        (long long)id, RRL_VOCAB_MAX - 1);
    RRL_TRY(grow_slots(v));
    size_t slot = slot_of(v, text, len);
    if (v->slots[slot] >= 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: token \"%s\" is there twice (ids %d and %lld)", where, text,
                        v->slots[slot], (long long)id);
    if (id < v->size && v->tokens[id].used)
        return RRL_FAIL(RRL_ERR_DATA, "%s: id %lld belongs to \"%s\" and to \"%s\"", where, (long long)id,
                        v->arena.data + v->tokens[id].text, text);

    RRL_TRY(rrl_grow(&v->tokens, &v->capacity, (size_t)id + 1, sizeof *v->tokens, "vocabulary"));
    while (v->size <= id) v->tokens[v->size++] = (vocab_token){0};
    vocab_token t = {.text = v->arena.len, .text_len = (uint32_t)len, .used = true};
    RRL_TRY(rrl_buffer_put(&v->arena, text, len + 1)); /* with its 0, for messages */
    t.bytes = v->arena.len;
    RRL_TRY(put_bytes(v, text, len));
    t.bytes_len = (uint32_t)(v->arena.len - t.bytes);
    v->tokens[id] = t;
    v->slots[slot] = (int32_t)id;
    v->n_used++;

    const char *p = text;
    uint32_t cp = len ? rrl_utf8_next(&p, text + len) : ALPHABET;
    if (p == text + len && cp < ALPHABET && v->to_byte[cp] >= 0) v->of_byte[v->to_byte[cp]] = (int32_t)id;
    return RRL_OK;
}

int32_t rrl_vocab_find(const rrl_vocab *v, const char *text, size_t len) {
    return v->n_slots ? v->slots[slot_of(v, text, len)] : -1;
}

int32_t rrl_vocab_byte(const rrl_vocab *v, uint8_t byte) {
    return v->of_byte[byte];
}

static const vocab_token *token_of(const rrl_vocab *v, int32_t id) {
    return id >= 0 && id < v->size && v->tokens[id].used ? &v->tokens[id] : NULL;
}

const char *rrl_vocab_text(const rrl_vocab *v, int32_t id, size_t *len) {
    const vocab_token *t = token_of(v, id);
    *len = t ? t->text_len : 0;
    return t ? v->arena.data + t->text : NULL;
}

const char *rrl_vocab_bytes(const rrl_vocab *v, int32_t id, size_t *len) {
    const vocab_token *t = token_of(v, id);
    *len = t ? t->bytes_len : 0;
    return t ? v->arena.data + t->bytes : NULL;
}

int32_t rrl_vocab_size(const rrl_vocab *v) {
    return v->size;
}

rrl_status rrl_vocab_spell(rrl_buffer *b, const char *bytes, size_t len) {
    uint16_t cp[256];
    byte_alphabet(cp);
    for (size_t i = 0; i < len; i++) RRL_TRY(rrl_utf8_put(b, cp[(uint8_t)bytes[i]]));
    return RRL_OK;
}

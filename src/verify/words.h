/* What the words around a number do to it: closed lists, by class. A word may be in several; one in none is an open
 * word (a noun, a verb, a name). */
#ifndef RRL_VERIFY_WORDS_H
#define RRL_VERIFY_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    RRL_WORD_DOUBT = 1 << 0,      /* takes back, denies, offers another: no answer wherever it stands */
    RRL_WORD_SCALE = 1 << 1,      /* another scale: no answer wherever it stands */
    RRL_WORD_OPERATOR = 1 << 2,   /* makes another number of the number next to it */
    RRL_WORD_NOT_BEFORE = 1 << 3, /* directly before a number it says something else than its value */
    RRL_WORD_NOT_BEHIND = 1 << 4, /* the same behind it */
    RRL_WORD_STATES = 1 << 5,     /* the value stands behind it: is, has, equals */
    RRL_WORD_THROUGH = 1 << 6,    /* determiners and adverbs that leave a number alone: the, exactly */
    RRL_WORD_NEAR = 1 << 7,       /* what else may stand between "is" and the number: for, equal, to */
    RRL_WORD_MEASURE = 1 << 8,    /* "a total of 12" is 12; "the root of 12" is not */
    RRL_WORD_FOLLOWS = 1 << 9,    /* may stand right behind the number: left, per, each */
    RRL_WORD_UNIT = 1 << 10,      /* a unit, or what is counted without an s: feet, people */
    RRL_WORD_NO_NOUN = 1 << 11,   /* ends in s and is no plural: is, means */
    RRL_WORD_NUMBER = 1 << 12,    /* a number in words */
    RRL_WORD_UNREAL = 1 << 13,    /* anywhere before a number: wished, supposed, not quite reached */
    RRL_WORD_MONEY = 1 << 14      /* before a number: behind it, m is no metre but a million */
} rrl_word_class;

/** Classes of the word p[0..n), in any case; apostrophes at its ends do not matter. */
unsigned rrl_word_classes(const uint32_t *p, size_t n);
/** p[0..n) is `word`, in any case. */
bool rrl_word_is(const uint32_t *p, size_t n, const char *word);
/** A plural by its form, or a unit: what a number may count. */
bool rrl_word_counted(const uint32_t *p, size_t n);

#endif

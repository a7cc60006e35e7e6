/* What stands before and behind a number, judged by the classes of words.c.
 *
 * The rule is what may stand there, not what may not, wherever the grammar is closed: behind the number comes a unit,
 * a counted plural or one of a few small words; between "is" and the number only words that leave it alone. Verbs,
 * nouns and names are open, so they are accepted where a sentence has them, less those that are known to deny a
 * number, to bound it or to compute with it. */
#include "verify/context.h"

#include <string.h>

#include "verify/words.h"

static const char UNIT_LETTERS[] = "mgshlLdtcpCFWVAJN";
enum { PHRASE_WORDS = 6 }; /* how far behind the number its noun may stand: 12 bright red apples */

typedef struct {
    const uint32_t *p;
    size_t n;
    unsigned classes;
} word;

/* The word that begins at i, its apostrophes included; its length is 0 if none does. */
static word word_at(const uint32_t *p, size_t n, size_t i) {
    size_t end = i;
    while (end < n && (rrl_point_letter(p[end]) || (end > i && p[end] == '\''))) end++;
    return (word){p + i, end - i, end > i ? rrl_word_classes(p + i, end - i) : 0};
}

static bool is(word w, const char *text) {
    return rrl_word_is(w.p, w.n, text);
}

static bool ends_in(word w, const char *end) {
    size_t len = strlen(end);
    return w.n > len + 1 && rrl_word_is(w.p + w.n - len, len, end);
}

/* ---- before the number ---- */

typedef struct {
    word last, second, third; /* the latest words, those of THROUGH left out */
    size_t words;
    bool stated;     /* is, has, = or : stands before them */
    bool strange, second_strange; /* last, second: open words, and by their form no verbs */
    bool computes;   /* a word that computes, or a character that may */
    bool determined; /* "the" or the like behind `last` */
} lead_in;

static void state(lead_in *l) {
    *l = (lead_in){.stated = true};
}

/* "is sold for", "is slowly saving", "has to pay", "they need": a verb form, or an adverb. */
static bool verb_form(const lead_in *l, word w) {
    static const char *const BEFORE[] = {"to", "can", "could", "will", "would", "should", "must", "who",
                                         "he", "she", "it",    "they", "we",    "you",    "i"};
    for (size_t k = 0; k < sizeof BEFORE / sizeof *BEFORE; k++)
        if (is(l->last, BEFORE[k])) return true;
    return ends_in(w, "ed") || ends_in(w, "en") || ends_in(w, "wn") || ends_in(w, "ing") || ends_in(w, "ly");
}

static bool bound_by_to(const lead_in *l) {
    if (is(l->second, "up")) /* up to 12, but: adds up to 12 */
        return !(is(l->third, "adds") || is(l->third, "add") || is(l->third, "comes") || is(l->third, "sums"));
    if (l->determined || (l->stated && l->second_strange)) return true; /* x to the 12; is the way to 12 */
    return l->second.classes & (RRL_WORD_NOT_BEFORE | RRL_WORD_NUMBER); /* close to 12; adds one to 12 */
}

/* Whether the last words leave what comes next as it is. */
static bool last_words_plain(const lead_in *l) {
    if (l->last.classes & (RRL_WORD_NOT_BEFORE | RRL_WORD_NUMBER)) return false;
    if (is(l->last, "of")) return l->second.classes & RRL_WORD_MEASURE;
    return !(is(l->last, "to") && bound_by_to(l));
}

/* "used to", "refused to", "could be", "would have been": how it is not, or may not be. */
static bool unreal(word third, word second, word w) {
    static const char *const NOT_DONE[] = {"used", "fail", "fails", "failed", "refuse", "refuses", "refused",
                                           "declined", "forgot"};
    for (size_t k = 0; is(w, "to") && k < sizeof NOT_DONE / sizeof *NOT_DONE; k++)
        if (is(second, NOT_DONE[k])) return true;
    if (is(w, "be")) return is(second, "could");
    return is(w, "been") && is(second, "have") && (is(third, "could") || is(third, "would") || is(third, "should"));
}

static void take_word(lead_in *l, word w) {
    if (w.classes & RRL_WORD_STATES) {
        state(l);
        return;
    }
    l->computes |= (w.classes & RRL_WORD_OPERATOR) != 0;
    l->determined = w.classes & RRL_WORD_THROUGH;
    if (l->determined) return;
    l->second_strange = l->strange;
    l->strange = !(w.classes & (RRL_WORD_NEAR | RRL_WORD_MEASURE)) && !verb_form(l, w);
    l->third = l->second;
    l->second = l->last;
    l->last = w;
    l->words++;
}

/* "Some have 12": of whom the answer is not told. */
static bool some_of_all(word w) {
    return is(w, "some") || is(w, "most") || is(w, "many") || is(w, "others");
}

bool rrl_lead_in_plain(const uint32_t *p, size_t n) {
    lead_in l = {0};
    word second = {0}, third = {0}; /* the words just before, whatever they are */
    size_t first = rrl_skip_blanks(p, n, 0);
    for (size_t i = 0; i < n;) {
        word w = word_at(p, n, i);
        if (w.n) {
            if (w.classes & (RRL_WORD_DOUBT | RRL_WORD_UNREAL | RRL_WORD_SCALE)) return false;
            if (unreal(third, second, w) || (i == first && some_of_all(w))) return false;
            third = second;
            second = w;
            take_word(&l, w);
            i += w.n;
            continue;
        }
        bool dash = p[i] == '-' && i > 0 && p[i - 1] == ' ';
        if (p[i] == ':' || dash) {
            if (!last_words_plain(&l)) return false; /* "less than: 12" */
            bool computes = l.computes && l.words == 1; /* "twice: 12" */
            state(&l);
            l.computes = computes;
        } else if (p[i] == '=') {
            state(&l);
        } else if (p[i] != ' ' && p[i] != '-' && p[i] != ',' && p[i] != '*' && p[i] != '\'') {
            l.computes = true;
        }
        i++;
    }
    if (l.computes || (l.stated && l.strange)) return false;
    /* a word alone is a label or a function: total 12, foo 12 */
    if (!l.stated && l.words == 1 && !(l.last.classes & (RRL_WORD_MEASURE | RRL_WORD_NEAR))) return false;
    return last_words_plain(&l);
}

/* ---- behind the number ---- */

bool rrl_unit_letter(uint32_t letter) {
    return letter && letter < 0x80 && strchr(UNIT_LETTERS, (int)letter);
}

static bool unit_letter(word w) {
    return w.n == 1 && rrl_unit_letter(w.p[0]);
}

static bool ordinal(word w) {
    return is(w, "st") || is(w, "nd") || is(w, "rd") || is(w, "th");
}

/* A word that begins behind blanks at i; none behind punctuation. */
static word next_word(const uint32_t *p, size_t n, size_t i) {
    return word_at(p, n, rrl_skip_blanks(p, n, i));
}

/* "12 is the answer", but not "12 is too much". */
static bool confirms(word w) {
    return is(w, "the") || is(w, "correct") || is(w, "right") || is(w, "my") || is(w, "our");
}

/* "12 times", "12 times as many", but not "12 times x". */
static bool counts_times(word w) {
    return w.n == 0 || ((w.classes & RRL_WORD_FOLLOWS) && !is(w, "that")) || is(w, "more");
}

/* "12 breaks the rule": what looks like a plural has an object. "12 miles the first day" is missed. */
static bool has_object(const uint32_t *p, size_t n, size_t end) {
    word w = next_word(p, n, end);
    return is(w, "the") || is(w, "its") || is(w, "some") || is(w, "any");
}

/* A noun within the next few words, its adjectives before it. A single thing (1 apple, 3/4 cup) needs no plural. */
static bool counted_phrase(const uint32_t *p, size_t n, size_t i, bool single) {
    static const unsigned CLOSED = RRL_WORD_DOUBT | RRL_WORD_SCALE | RRL_WORD_OPERATOR | RRL_WORD_NOT_BEHIND |
                                   RRL_WORD_STATES | RRL_WORD_NUMBER | RRL_WORD_NO_NOUN;
    for (int k = 0; k < PHRASE_WORDS; k++) {
        word w = word_at(p, n, i);
        if (w.n == 0) return false;
        if (k == 0 && is(w, "and")) return false; /* 12 and change */
        if (rrl_word_counted(w.p, w.n)) return k > 0 || (w.classes & RRL_WORD_UNIT) || !has_object(p, n, i + w.n);
        if ((w.classes & CLOSED) || (k > 0 && (w.classes & RRL_WORD_FOLLOWS))) return false;
        i += w.n;
        bool hyphen = i + 1 < n && p[i] == '-' && rrl_point_letter(p[i + 1]);
        if (w.n == 1 && !hyphen) return false;
        if (single && w.p[0] < 0x80) return true;
        if (i + 1 < n && p[i] == '.' && p[i + 1] == ' ') i++; /* sq. ft. */
        i = hyphen ? i + 1 : rrl_skip_blanks(p, n, i);
    }
    return false;
}

bool rrl_number_followed(const uint32_t *p, size_t n, size_t end, bool money, bool single) {
    size_t i = rrl_skip_blanks(p, n, end);
    if (i < n && (p[i] == '%' || p[i] == 0xB0)) return true;
    if (i + 1 < n && i == end && p[i] == '-' && rrl_point_letter(p[i + 1])) /* 12-inch */
        return rrl_word_counted(p + i + 1, word_at(p, n, i + 1).n);
    if (i + 1 < n && p[i] == '\'') return !rrl_point_letter(p[i + 1]); /* 12' and no 12's */
    word w = word_at(p, n, i);
    if (w.n == 0) return true;
    word behind = next_word(p, n, i + w.n);
    if (i == end && ordinal(w)) return true;
    if (is(w, "is")) return i > end && confirms(behind);
    if (is(w, "to")) /* 12 to spend, not 12 to the third, 12 to one */
        return i > end && behind.n > 0 && !is(behind, "the") && !(behind.classes & RRL_WORD_NUMBER);
    if (is(w, "times")) return i > end && counts_times(behind);
    if (i > end && (w.classes & RRL_WORD_FOLLOWS)) return true;
    bool hyphen = i + w.n < n && p[i + w.n] == '-';
    if (unit_letter(w) && !hyphen) return !money && (behind.n == 0 || (behind.classes & RRL_WORD_FOLLOWS));
    if (money && w.n <= 2) return false; /* $12 mm, $12 mn */
    return counted_phrase(p, n, i, single);
}

/* "with one left over", "dollars and change", "and up", "with a remainder", but not "is the remainder": the number
 * is not all. */
static bool more_than_said(word before, word w) {
    static const char *const REST[] = {"change", "some", "counting", "more", "up", "above", "over", "beyond"};
    if (is(w, "remainder")) return !is(before, "the") && !is(before, "as");
    if (is(before, "with")) return is(w, "one") || is(w, "some") || is(w, "another");
    if (is(before, "so")) return is(w, "on");
    if (is(before, "less")) return !is(w, "than") && !(w.classes & RRL_WORD_FOLLOWS); /* less discount */
    for (size_t k = 0; k < sizeof REST / sizeof *REST; k++)
        if (is(before, "and") && is(w, REST[k])) return true;
    return false;
}

/* "and a day": a second thing. "too low", "at best": said of the number, against it. */
static bool judged(word second, word before, word w) {
    if (is(before, "at") && (is(w, "best") || is(w, "worst"))) return true;
    if (is(second, "and") && (is(before, "a") || is(before, "an"))) return true;
    return is(before, "too") && ((second.classes & RRL_WORD_STATES) || is(second, "seems") || is(second, "looks"));
}

/* A clause behind punctuation that begins so takes the number back. */
static bool takes_back(word w) {
    static const char *const WORDS[] = {"wait",    "actually", "oops",    "oh",     "hmm", "sorry", "correction",
                                        "however", "although", "scratch", "though", "hold"};
    for (size_t k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
        if (is(w, WORDS[k])) return true;
    return false;
}

/* "in one day" counts days; "less one" is another number. */
static bool one_of_something(word before) {
    return before.classes & (RRL_WORD_NEAR | RRL_WORD_THROUGH) || is(before, "per") || is(before, "any");
}

static bool tail_word_plain(word w, word before, bool hyphenated) {
    if (w.classes & (RRL_WORD_DOUBT | RRL_WORD_SCALE | RRL_WORD_OPERATOR | RRL_WORD_NOT_BEHIND)) return false;
    if (more_than_said(before, w)) return false;
    if (w.classes & RRL_WORD_NUMBER) return is(w, "one") && one_of_something(before);
    if (w.n == 1 && !hyphenated) return unit_letter(w) || is(w, "a") || is(w, "i");
    return !((is(before, "a") || is(before, "one")) && (is(w, "third") || is(w, "fourth") || is(w, "fifth")));
}

bool rrl_tail_plain(const uint32_t *p, size_t n) {
    word second = {0}, before = {0};
    size_t first = rrl_skip_blanks(p, n, 0);
    bool spelled = first < n && p[first] == '('; /* 42 (forty-two) */
    bool clause = false;                         /* punctuation stands before the word */
    for (size_t i = 0; i < n;) {
        word w = word_at(p, n, i);
        if (w.n == 0) {
            spelled = spelled && p[i] != ')';
            clause = p[i] != ' ' || (clause && p[i] == ' ');
            i++;
            continue;
        }
        bool hyphenated = (i > 0 && p[i - 1] == '-') || (i + w.n < n && p[i + w.n] == '-');
        if (!(spelled && (w.classes & RRL_WORD_NUMBER)) && !tail_word_plain(w, before, hyphenated)) return false;
        if (judged(second, before, w) || (clause && takes_back(w))) return false;
        clause = false;
        second = before;
        before = w;
        i += w.n;
    }
    return true;
}

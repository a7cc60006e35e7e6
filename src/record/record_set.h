/* Sets of completions in memory: growing by groups, joined, cut. Offsets and row numbers inside a set are
 * always those of the whole set, so what segments a run was written in leaves no trace. */
#ifndef RRL_RECORD_RECORD_SET_H
#define RRL_RECORD_RECORD_SET_H

#include "record/record.h"

/* Elements that the arrays of a set have room for; zero at first. One belongs to one set for its life. */
typedef struct {
    size_t rollouts, texts, answers, tokens, logprobs, verdicts;
} rrl_set_room;

/** Append the completions of a judged group (borrowed). On an error the set is as before. */
rrl_status rrl_set_add_group(rrl_record_set *s, rrl_set_room *room, const rrl_group *g);
/** Append the completions of `from`, which gives up its texts and is cleared. from has texts where s has. */
rrl_status rrl_set_add_set(rrl_record_set *s, rrl_set_room *room, rrl_record_set *from);
/** Copy of completions [first, end) of `from`, with texts where it has them; *out is a zeroed set. */
rrl_status rrl_set_slice(rrl_record_set *out, const rrl_record_set *from, int64_t first, int64_t end);
/** Free what the set holds and zero it. */
void rrl_set_clear(rrl_record_set *s);

/** Bytes of the text and of the answer (-1 = none) of rollout i; as rrl_text_bytes. */
int64_t rrl_set_text_bytes(const void *rollouts, int64_t i);
int64_t rrl_set_answer_bytes(const void *rollouts, int64_t i);

#endif

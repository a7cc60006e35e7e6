/* What a user should hear once at start. A key counts as set where it differs from its default. */
#include <string.h>

#include "base/memory.h"
#include "config/config_table.h"

static bool is_default(const rrl_key *k, const void *section) {
    const void *at = (const char *)section + k->offset;
    switch (k->type) {
    case RRL_KEY_BOOL:
        return *(const bool *)at == (k->int_default != 0);
    case RRL_KEY_INT:
        return *(const int64_t *)at == k->int_default;
    case RRL_KEY_ENUM:
        return *(const int *)at == k->int_default;
    case RRL_KEY_REAL:
        return *(const double *)at == k->real_default;
    default:
        return false; /* no text or list key is inert */
    }
}

static rrl_status note_inert(rrl_buffer *b, const char *prefix, const rrl_section *s, const void *section) {
    for (size_t i = 0; i < s->n_keys; i++) {
        const rrl_key *k = &s->keys[i];
        if (k->cls == RRL_CLASS_INERT && !is_default(k, section))
            RRL_TRY(rrl_buffer_printf(b, "%s.%s has no effect: %s\n", prefix, k->name, k->doc));
    }
    return RRL_OK;
}

static rrl_status note_corruption(rrl_buffer *b, const rrl_config *c) {
    const rrl_corruption_config *e = &c->experiment.corruption;
    if (e->kind != RRL_CORRUPT_NONE && e->probability > 0)
        RRL_TRY(rrl_buffer_puts(
            b, "experiment.corruption.probability has no effect: a study takes it from the levels\n"));
    if (e->kind != RRL_CORRUPT_NONE && e->seed > 0)
        RRL_TRY(rrl_buffer_puts(
            b, "experiment.corruption.seed has no effect: a study takes run seed + 1009 * member\n"));
    const rrl_verifier_config *v = &c->training_verifier;
    for (int64_t i = 0; i < v->n_members; i++)
        for (int64_t j = 0; j < i; j++) {
            const rrl_corruption_config *p = &v->members[i].corruption, *q = &v->members[j].corruption;
            if (p->kind != RRL_CORRUPT_NONE && p->probability > 0 && q->kind != RRL_CORRUPT_NONE &&
                p->seed == q->seed)
                RRL_TRY(rrl_buffer_printf(
                    b,
                    "training_verifier.members[%lld] and [%lld] have corruption seed %lld both: "
                    "their events coincide\n",
                    (long long)j, (long long)i, (long long)p->seed));
        }
    return RRL_OK;
}

/* Keys of the dialect that this version takes and does nothing with. */
static rrl_status note_missing(rrl_buffer *b, const rrl_config *c) {
    const rrl_experiment_config *x = &c->experiment;
    if (!x->resume)
        RRL_TRY(rrl_buffer_puts(b, "experiment.resume false has no effect: a study always continues; "
                                   "--fresh starts it again\n"));
    return RRL_OK;
}

rrl_status rrl_config_notes(char **out, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    const rrl_section *root = rrl_config_root();
    RRL_GOTO(rrl_buffer_puts(&b, ""));
    RRL_GOTO(note_inert(&b, "generation", rrl_section_child(root, "generation")->section, &c->generation));
    RRL_GOTO(note_inert(&b, "training", rrl_section_child(root, "training")->section, &c->training));
    if (c->model.dtype == RRL_DTYPE_F16)
        RRL_GOTO(rrl_buffer_puts(
            &b, "model.dtype float16: weights are read as float16, rounded to bfloat16 and computed as with bfloat16\n"));
    if (c->training.use_cpu)
        RRL_GOTO(rrl_buffer_puts(&b, "training.use_cpu: true is taken as model.device: cpu\n"));
    if (c->experiment.mode == RRL_MODE_FIXTURE)
        RRL_GOTO(rrl_buffer_puts(
            &b, "experiment.mode fixture: verifiers are audited, nothing is trained; the one method "
                "is " RRL_METHOD_AUDIT "\n"));
    RRL_GOTO(note_missing(&b, c));
    RRL_GOTO(note_corruption(&b, c));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

/* How repeatable numbers of a GPU are (model.deterministic). The CPU has one way alone, which is all of them. */
#ifndef RRL_DETERMINISM_H
#define RRL_DETERMINISM_H

/* run: same bits from run to run on one layout. exact: the CPU's order of sums in every op, so recorded = trained
 * log-probs bit for bit. off: the fastest algorithms. */
#define RRL_DETERMINISM_LIST(X)                                                                                        \
    X(RRL_DETERMINISM_RUN, "run") X(RRL_DETERMINISM_EXACT, "exact") X(RRL_DETERMINISM_OFF, "off")
typedef enum {
#define X(name, text) name,
    RRL_DETERMINISM_LIST(X)
#undef X
        RRL_DETERMINISM_COUNT
} rrl_determinism;

#endif

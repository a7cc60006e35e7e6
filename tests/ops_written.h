/* What the ops of a case wrote, and whether two devices wrote the same. */
#ifndef RRL_TESTS_OPS_WRITTEN_H
#define RRL_TESTS_OPS_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>

/* A stretch with bound 0 holds tokens or numbers that no device may compute otherwise. */
typedef struct {
    char *data;
    size_t len, capacity;
    struct stretch {
        size_t first, count; /* bytes; floats */
        double bound;        /* of the absolute error where sums may be taken in another order; 0 = none */
    } * stretches;
    size_t n_stretches, stretch_capacity;
} ops_written;

/** Append a stretch. */
void ops_written_add(ops_written *w, const void *p, size_t bytes, double bound);
void ops_written_free(ops_written *w);
/** Every bit, or stretches within their bounds, those without one bit for bit. The first difference is printed behind
 *  `name`, `round` and `who`. */
bool ops_written_equal(const ops_written *want, const ops_written *got, const char *name, int round, const char *who);
bool ops_written_near(const ops_written *want, const ops_written *got, const char *name, int round, const char *who);

#endif

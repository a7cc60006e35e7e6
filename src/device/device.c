/* What holds for a device of any back end. */
#include "device/device.h"

void rrl_device_close(rrl_device **d) {
    if (!d || !*d) return;
    (*d)->ops->close(*d);
    *d = NULL;
}

const char *rrl_device_numeric_path(const rrl_device *d) {
    return d->ops->numeric_path(d);
}

const char *rrl_device_isa(const rrl_device *d) {
    return d->ops->isa(d);
}

/* What every back end's rrl_weight begins with. */
typedef struct {
    int64_t n, k;
} shape;

int64_t rrl_weight_rows(const rrl_weight *w) {
    return ((const shape *)w)->n;
}

int64_t rrl_weight_cols(const rrl_weight *w) {
    return ((const shape *)w)->k;
}

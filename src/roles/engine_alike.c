/* What the ranks of a team must have alike: each reads config, data and model itself, and picks its own device. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "roles/engine.h"

typedef enum { SETTINGS, MODEL, NUMBERS, N_THINGS } thing;
static const char *const NAMES[N_THINGS] = {"configuration or data", "model", "numeric path (type of numbers, device)"};

/* A text as a number of 62 bits, so that it can be negated. */
static int64_t number_of(const char *text) {
    uint8_t sum[RRL_SHA256_BYTES];
    int64_t x = 0;
    rrl_sha256_joined(sum, text, "");
    memcpy(&x, sum, sizeof x);
    return x & INT64_MAX >> 1;
}

rrl_status rrl_engine_alike(const rrl_engine *e, rrl_team *team) {
    char settings[RRL_SHA256_HEX];
    int64_t x[2 * N_THINGS]; /* of each thing the largest number, and that of the smallest as its negative */
    for (int i = 0; i < 2 * N_THINGS; i++) x[i] = INT64_MIN;
    RRL_TRY(rrl_team_agree(team, rrl_config_digest(settings, e->config, e->data_digest), "settings read"));
    x[SETTINGS] = number_of(settings);
    if (e->device) { /* others have no model */
        x[MODEL] = number_of(e->model_digest);
        x[NUMBERS] = number_of(rrl_device_numeric_path(e->device));
    }
    for (int i = 0; i < N_THINGS; i++)
        if (x[i] != INT64_MIN) x[N_THINGS + i] = -x[i];
    RRL_TRY(rrl_team_max(team, x, 2 * N_THINGS));
    for (int i = 0; i < N_THINGS; i++) {
        if (x[i] == INT64_MIN || x[i] == -x[N_THINGS + i]) continue;
        team->peer_failed = team->rank != 0; /* all fail alike: one of them says it */
        return RRL_FAIL(RRL_ERR_CONFIG, "the ranks of the team differ in their %s (rank %d has %s); start all of them with "
                        "the same command on machines of one kind, or set model.device and model.dtype", NAMES[i],
                        team->rank, i == SETTINGS ? settings : !e->device ? "none" : i == MODEL ? e->model_digest
                                                                                   : rrl_device_numeric_path(e->device));
    }
    return RRL_OK;
}

/* rrl predict CONFIG */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands/commands.h"
#include "config/config_check.h"
#include "report/predict.h"

/* "R,W": the shares of right [1] and of wrong [0] completions. */
static rrl_status parse_eligible(double eligible[2], const char *text) {
    char right[RRL_NUMBER_CHARS];
    const char *comma = strchr(text, ',');
    size_t len = comma ? (size_t)(comma - text) : 0;
    if (len > 0 && len < sizeof right) {
        memcpy(right, text, len);
        right[len] = '\0';
        if (rrl_parse_double(&eligible[1], right) && rrl_parse_double(&eligible[0], comma + 1) &&
            eligible[1] >= 0 && eligible[1] <= 1 && eligible[0] >= 0 && eligible[0] <= 1)
            return RRL_OK;
    }
    return RRL_FAIL(RRL_ERR_USAGE,
                    "rrl predict: --eligible %s: expected two numbers in [0,1], such as 0.2,0.9", text);
}

static rrl_status request_of(rrl_predict_request *out, const rrl_options *o) {
    rrl_predict_request r = RRL_PREDICT_REQUEST;
    bool given = o->p_right >= 0;
    if (given && !(o->p_right > 0 && o->p_right < 1))
        return RRL_FAIL(RRL_ERR_USAGE,
                        "rrl predict: --p-right %g: expected a number between 0 and 1, neither of them",
                        o->p_right);
    if (given) r.extra_prior = o->p_right;
    if (o->eligible) RRL_TRY(parse_eligible(r.eligible, o->eligible));
    *out = r;
    return RRL_OK;
}

rrl_status rrl_command_predict(const rrl_options *o, rrl_command_context *ctx) {
    rrl_status rc = RRL_OK;
    rrl_config *c = NULL;
    rrl_predict_table t = {0};
    rrl_predict_request request;
    char *text = NULL;
    if (ctx->rank != 0) return RRL_OK;
    RRL_GOTO(request_of(&request, o));
    RRL_GOTO(rrl_config_open(&c, o->arguments.v[0], o->set.v, o->set.n));
    RRL_GOTO(rrl_config_check(c, rrl_config_purpose(c) == RRL_FOR_STUDY ? RRL_FOR_STUDY : RRL_FOR_EVAL));
    RRL_GOTO(rrl_predict_table_make(&t, c, &request, true));
    RRL_GOTO(o->json ? rrl_predict_json(&text, &t) : rrl_predict_text(&text, &t));
    fputs(text, stdout);
done:
    free(text);
    rrl_predict_table_free(&t);
    rrl_config_close(&c);
    return rc;
}

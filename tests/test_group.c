/* Groups: wire form and back, damaged bytes, joining parts. */
#include "check.h"
#include "rrl/group.h"

enum { MEMBERS = 3 };

/* A judged part whose every value follows from the sample's number, so that a joined group can be told by its
 * values. */
static rrl_group *make_part(int32_t group_size, int32_t first, int32_t count) {
    rrl_group *g = NULL;
    int64_t n_tokens = 0, at = 0, text_at = 0;
    for (int32_t i = 0; i < count; i++)
        n_tokens += first + i; /* sample s has s tokens: one part has an empty row */
    CHECK_OK(rrl_group_create(&g, count, n_tokens));
    g->head.first = first;
    g->head.group_size = group_size;
    g->head.purpose = 1;
    g->head.step = 7;
    g->head.policy_version = 6;
    g->head.question = 41;
    g->head.slot = 2;
    CHECK_OK(rrl_group_set_members(g, MEMBERS));
    CHECK(isnan(g->verdicts[0].reward));
    g->text = malloc(64 * (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        rrl_completion *r = &g->rows[i];
        int32_t s = first + i;
        r->sample = s;
        r->n_tokens = s;
        r->finish = s % 2 ? RRL_FINISH_EOS : RRL_FINISH_LENGTH;
        r->reward = s == 1 ? NAN : 0.25f * (float)s;
        r->available = s % (MEMBERS + 1);
        r->n_text = sprintf(g->text + text_at, "text %d", s);
        text_at += r->n_text;
        r->n_reasoning = 2;
        if (s % 2) {
            r->n_answer = sprintf(g->text + text_at, "%d", s);
            text_at += r->n_answer;
        }
        for (int32_t k = 0; k < s; k++, at++) {
            g->tokens[at] = 100 * s + k;
            g->logprobs[at] = -0.5f * (float)k;
        }
        for (int m = 0; m < MEMBERS; m++) g->verdicts[i * MEMBERS + m].confidence = (float)(10 * s + m);
    }
    g->head.n_text = text_at;
    return g;
}

static void check_group(const rrl_group *g, int32_t first, int32_t count) {
    CHECK_EQ_INT(g->head.count, count);
    CHECK_EQ_INT(g->head.first, first);
    CHECK_EQ_INT(g->head.step, 7);
    CHECK_EQ_INT(g->head.question, 41);
    for (int32_t i = 0; i < count; i++) {
        const rrl_completion *r = &g->rows[i];
        int32_t s = first + i;
        char want[32];
        CHECK_EQ_INT(r->sample, s);
        CHECK_NEAR(r->reward, s == 1 ? NAN : 0.25 * s, 0);
        CHECK(isnan(r->correct) && isnan(r->advantage) && isnan(r->kl_mean));
        snprintf(want, sizeof want, "text %d", s);
        CHECK_EQ_INT(r->n_text, strlen(want));
        CHECK(memcmp(g->text + rrl_group_text_at(g, i), want, (size_t)r->n_text) == 0);
        snprintf(want, sizeof want, "%d", s);
        CHECK_EQ_INT(r->n_answer, s % 2 ? (int)strlen(want) : -1);
        if (s % 2) CHECK(memcmp(g->text + rrl_group_answer_at(g, i), want, (size_t)r->n_answer) == 0);
        for (int32_t k = 0; k < s; k++) CHECK_EQ_INT(g->tokens[rrl_group_token_at(g, i) + k], 100 * s + k);
        for (int m = 0; m < MEMBERS; m++) CHECK_NEAR(g->verdicts[i * MEMBERS + m].confidence, 10 * s + m, 0);
    }
}

static void test_round_trip(void) {
    rrl_group *g = make_part(8, 1, 4), *back = NULL;
    char *bytes = NULL, *again = NULL;
    size_t len = 0, len_again = 0;
    CHECK_OK(rrl_group_pack(&bytes, &len, g));
    /* 72 of the head; 18 fields a row, 5 a verdict, 2 a token, of 4 bytes each; the text */
    CHECK_EQ_INT(len, 72 + 4 * 72 + 4 * MEMBERS * 20 + 10 * 8 + g->head.n_text);
    CHECK_EQ_INT((unsigned char)bytes[0], 1); /* version, little-endian */
    CHECK_EQ_INT((unsigned char)bytes[32], 41);
    CHECK_OK(rrl_group_unpack(&back, bytes, len));
    check_group(back, 1, 4);
    CHECK_OK(rrl_group_pack(&again, &len_again, back));
    CHECK(len == len_again && memcmp(bytes, again, len) == 0);
    rrl_group_free(&back);
    rrl_group_free(&g);
    free(bytes);
    free(again);
}

/* What a learner gets that does not learn from the group: rows and counts, nothing that they count. */
static void test_rows_alone(void) {
    rrl_group *g = make_part(8, 1, 4), *back = NULL;
    char *bytes = NULL;
    size_t len = 0;
    CHECK_OK(rrl_group_pack_rows(&bytes, &len, g));
    CHECK_EQ_INT(len, 72 + 4 * 72);
    CHECK_OK(rrl_group_unpack_rows(&back, bytes, len));
    CHECK_EQ_INT(memcmp(&back->head, &g->head, sizeof g->head), 0);
    CHECK_EQ_INT(memcmp(back->rows, g->rows, 4 * sizeof *g->rows), 0);
    CHECK(!back->tokens && !back->logprobs && !back->text && !back->verdicts);
    CHECK_STATUS(rrl_group_unpack(&(rrl_group *){NULL}, bytes, len), RRL_ERR_COMM); /* not a whole group */
    rrl_group_free(&back);
    rrl_group_free(&g);
    free(bytes);
}

static void test_unjudged(void) {
    rrl_group *g = NULL, *back = NULL;
    char *bytes = NULL;
    size_t len = 0;
    CHECK_OK(rrl_group_create(&g, 1, 0));
    CHECK_OK(rrl_group_pack(&bytes, &len, g));
    CHECK_OK(rrl_group_unpack(&back, bytes, len));
    CHECK(back->verdicts == NULL && back->head.members == 0);
    CHECK_EQ_INT(back->rows[0].n_answer, -1);
    rrl_group_free(&g);
    rrl_group_free(&back);
    free(bytes);
    CHECK_STATUS(rrl_group_create(&g, 0, 0), RRL_ERR_INTERNAL);
    CHECK_STATUS(rrl_group_create(&g, 1, -1), RRL_ERR_INTERNAL);
}

/* Every byte changed in several ways, every length: refused or unpacked, never a crash (run under the
 * sanitizers). */
static void test_damage(rrl_status (*pack)(char **, size_t *, const rrl_group *),
                        rrl_status (*unpack)(rrl_group **, const char *, size_t)) {
    static const unsigned char MASKS[] = {0x01, 0x80, 0xff, 0x55};
    rrl_group *g = make_part(8, 1, 4), *back = NULL;
    char *bytes = NULL;
    size_t len = 0;
    int refused = 0;
    CHECK_OK(pack(&bytes, &len, g));
    for (size_t i = 0; i < len; i++)
        for (size_t m = 0; m < sizeof MASKS; m++) {
            bytes[i] ^= (char)MASKS[m];
            rrl_status rc = unpack(&back, bytes, len);
            CHECK(rc == RRL_OK || rc == RRL_ERR_COMM);
            refused += rc != RRL_OK;
            rrl_group_free(&back);
            bytes[i] ^= (char)MASKS[m];
        }
    CHECK(refused > 200); /* the head's counts and the rows' lengths */
    for (size_t n = 0; n < len; n++) {
        char *cut = malloc(n + 1); /* its own block, so that reading past it shows */
        memcpy(cut, bytes, n);
        CHECK_STATUS(unpack(&back, cut, n), RRL_ERR_COMM);
        free(cut);
    }
    char *longer = malloc(len + 1);
    memcpy(longer, bytes, len);
    longer[len] = 0;
    CHECK_STATUS(unpack(&back, longer, len + 1), RRL_ERR_COMM);
    free(longer);
    rrl_group_free(&g);
    free(bytes);
}

static void test_pack_refuses(void) {
    char *bytes = NULL;
    size_t len = 0;
    rrl_group *g = make_part(8, 1, 2);
    g->rows[1].n_tokens++;
    CHECK_STATUS(rrl_group_pack(&bytes, &len, g), RRL_ERR_INTERNAL);
    g->rows[1].n_tokens--;
    g->rows[1].n_text--;
    CHECK_STATUS(rrl_group_pack(&bytes, &len, g), RRL_ERR_INTERNAL);
    g->rows[1].n_text++;
    g->rows[1].sample = 0;
    CHECK_STATUS(rrl_group_pack(&bytes, &len, g), RRL_ERR_INTERNAL);
    CHECK(bytes == NULL);
    rrl_group_free(&g);
}

static void test_join(void) {
    rrl_group *parts[] = {make_part(7, 5, 2), make_part(7, 0, 3), make_part(7, 3, 2)}, *g = NULL;
    if (CHECK_OK(rrl_group_join(&g, parts, 3))) check_group(g, 0, 7);
    CHECK_EQ_INT(parts[0]->head.first, 5); /* the caller's array keeps its order */
    char *bytes = NULL;
    size_t len = 0;
    CHECK_OK(rrl_group_pack(&bytes, &len, g));
    free(bytes);
    rrl_group_free(&g);

    CHECK_STATUS(rrl_group_join(&g, parts, 2), RRL_ERR_INTERNAL);     /* a hole in the middle */
    CHECK_STATUS(rrl_group_join(&g, parts + 1, 2), RRL_ERR_INTERNAL); /* the end is missing */
    CHECK_STATUS(rrl_group_join(&g, parts, 0), RRL_ERR_INTERNAL);
    rrl_group *twice[] = {parts[1], parts[1], parts[2], parts[0]};
    CHECK_STATUS(rrl_group_join(&g, twice, 4), RRL_ERR_INTERNAL);
    parts[2]->head.policy_version++;
    CHECK_STATUS(rrl_group_join(&g, parts, 3), RRL_ERR_INTERNAL);
    parts[2]->head.policy_version--;
    parts[2]->head.question++;
    CHECK_STATUS(rrl_group_join(&g, parts, 3), RRL_ERR_INTERNAL);
    CHECK(g == NULL);
    for (int i = 0; i < 3; i++) rrl_group_free(&parts[i]);
}

int main(void) {
    test_round_trip();
    test_unjudged();
    test_rows_alone();
    test_damage(rrl_group_pack, rrl_group_unpack);
    test_damage(rrl_group_pack_rows, rrl_group_unpack_rows);
    test_pack_refuses();
    test_join();
    return CHECK_DONE();
}

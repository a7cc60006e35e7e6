/* Corruption: the golden events of Python's generator, the generator's published vectors, eligibility and limits. */
#include "check.h"

#include <stdbool.h>

#include "golden_rewards.h"
#include "rrl/verify.h"
#include "verify/mt19937.h"

static void check_generator(void) {
    /* mt19937ar.out of the authors (init_by_array {0x123, 0x234, 0x345, 0x456}), its first and 1000th outputs */
    static const uint32_t KEY[] = {0x123, 0x234, 0x345, 0x456};
    static const uint32_t FIRST[] = {1067595299u, 955945823u, 477289528u, 4107218783u, 4228976476u};
    rrl_mt19937 m;
    rrl_mt_seed_words(&m, KEY, 4);
    uint32_t last = 0;
    for (int i = 0; i < 1000; i++) {
        last = rrl_mt_next(&m);
        if (i < 5) CHECK_EQ_INT(last, FIRST[i]);
    }
    CHECK_EQ_INT(last, 3460025646u);
    /* Python 3.11: random.seed(n); random.random() */
    static const struct {
        uint64_t seed;
        double uniform;
    } SEEDS[] = {{42, 0.6394267984578837},
                 {0, 0.8444218515250481},
                 {(1ull << 40) + 1, 0.1757573337592354},
                 {(1ull << 63) + 5, 0.3442386103531446}};
    for (size_t k = 0; k < sizeof SEEDS / sizeof *SEEDS; k++) {
        rrl_mt_seed(&m, SEEDS[k].seed);
        CHECK(rrl_mt_uniform(&m) == SEEDS[k].uniform);
    }
}

static rrl_corruption corruption(rrl_corruption_kind kind, double p) {
    return (rrl_corruption){.kind = kind,
                            .probability = p,
                            .seed = 42,
                            .noise_std = 0.1,
                            .confidence_scale = 1.0,
                            .bias_key = "class",
                            .bias_value = "addition",
                            .bias_reward = 1.0};
}

typedef struct {
    double reward, confidence;
    bool applied;
} event;

static event fire(const rrl_corruption *c, const char *response, double reward, bool eligible) {
    event e = {NAN, NAN, false};
    CHECK_OK(rrl_corrupt(&e.reward, &e.confidence, &e.applied, c, "q-1", response, strlen(response), reward, 0.8,
                         eligible));
    return e;
}

static void check_kinds(void) {
    static const struct {
        rrl_corruption_kind kind;
        double reward, want;
    } SURE[] = {
        {RRL_CORRUPT_FLIP, 1.0, 0.0},           {RRL_CORRUPT_FLIP, 0.25, 0.75},
        {RRL_CORRUPT_FALSE_POSITIVE, 0.0, 1.0}, {RRL_CORRUPT_FALSE_POSITIVE, 0.5, 0.5},
        {RRL_CORRUPT_FALSE_NEGATIVE, 0.5, 0.0}, {RRL_CORRUPT_FALSE_NEGATIVE, 0.25, 0.25},
        {RRL_CORRUPT_MISSING, 1.0, NAN},        {RRL_CORRUPT_BIAS, 0.0, 1.0},
        {RRL_CORRUPT_EXPLOIT, 0.0, 1.0},
    };
    for (size_t k = 0; k < sizeof SURE / sizeof *SURE; k++) {
        rrl_corruption c = corruption(SURE[k].kind, 1.0), never = corruption(SURE[k].kind, 0.0);
        event e = fire(&c, "x", SURE[k].reward, true);
        CHECK(e.applied); /* also where the value did not change */
        CHECK_NEAR(e.reward, SURE[k].want, 0.0);
        CHECK_NEAR(e.confidence, isnan(SURE[k].want) ? 0.0 : 0.8, 0.0);
        e = fire(&c, "x", SURE[k].reward, false);
        CHECK(!e.applied && e.reward == SURE[k].reward);
        e = fire(&c, "x", NAN, true);
        CHECK(!e.applied && isnan(e.reward) && e.confidence == 0.0);
        e = fire(&never, "x", SURE[k].reward, true);
        CHECK(!e.applied && e.reward == SURE[k].reward && e.confidence == 0.8);
    }
    rrl_corruption scaled = corruption(RRL_CORRUPT_FLIP, 0.0), none = {.kind = RRL_CORRUPT_NONE};
    scaled.confidence_scale = 0.5; /* acts whether or not the event fired */
    CHECK(fire(&scaled, "x", 1.0, true).confidence == 0.4);
    CHECK(fire(&none, "x", 1.0, true).confidence == 0.8); /* an empty struct corrupts nothing */
}

/* Seeds above 2^32 count whole, and the rate is p: 4000 keyed draws at p = 0.3 lie within five deviations. */
static void check_keys(void) {
    rrl_corruption a = corruption(RRL_CORRUPT_FLIP, 0.3), b = a;
    b.seed += 1ull << 40;
    int fired = 0, differ = 0;
    for (int i = 0; i < 4000; i++) {
        char text[32];
        snprintf(text, sizeof text, "response %d", i);
        bool x = fire(&a, text, 1.0, true).applied, y = fire(&b, text, 1.0, true).applied;
        fired += x;
        differ += x != y;
    }
    CHECK_NEAR(fired / 4000.0, 0.3, 5 * sqrt(0.3 * 0.7 / 4000));
    CHECK_NEAR(differ / 4000.0, 2 * 0.3 * 0.7, 5 * sqrt(0.42 * 0.58 / 4000));
}

static void check_metadata(void) {
    static const char METADATA[] =
        "{ \"a\" : true, \"b\": false ,\"c\":null, \"i\": 1, \"f\": 1.0, \"big\": 123456789012345678901234567890,"
        "\"e\": 1e16, \"small\": 1e-5, \"neg\": -0, \"negf\": -0.0, \"s\": \"a \\\"b\\\" \\u00e9\","
        "\"list\": [1, {\"i\": 2}],"
        "\"after\": 2.50, \"\": \"empty\", \"exp\": 1E2 }";
    static const struct {
        const char *key, *want;
    } VALUES[] = {{"a", "True"},       {"b", "False"},    {"c", "None"},     {"i", "1"},    {"f", "1.0"},
                  {"e", "1e+16"},      {"small", "1e-05"}, {"neg", "0"},      {"negf", "-0.0"},
                  {"s", "a \"b\" \xC3\xA9"},
                  {"after", "2.5"},    {"", "empty"},     {"exp", "100.0"},  {"big", "123456789012345678901234567890"},
                  {"missing", NULL}};
    for (size_t k = 0; k < sizeof VALUES / sizeof *VALUES; k++) {
        char *text = NULL;
        bool found = false;
        CHECK_OK(rrl_metadata_str(&text, &found, METADATA, VALUES[k].key));
        CHECK_EQ_INT(found, VALUES[k].want != NULL);
        CHECK_EQ_STR(text, VALUES[k].want);
        free(text);
    }
    char *text = NULL;
    bool found = false;
    CHECK_STATUS(rrl_metadata_str(&text, &found, METADATA, "list"), RRL_ERR_DATA);
    CHECK_STATUS(rrl_metadata_str(&text, &found, "[1]", "a"), RRL_ERR_DATA);
    CHECK_OK(rrl_metadata_str(&text, &found, "{}", "a"));
    CHECK(!found && text == NULL);
}

int main(void) {
    int checks = 0;
    CHECK_EQ_INT(golden_corruption(&checks, RRL_SOURCE_DIR "/tests/golden"), 0);
    CHECK(checks > 700);
    check_generator();
    check_kinds();
    check_keys();
    check_metadata();
    return CHECK_DONE();
}

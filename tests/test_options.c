/* The command line: every kind of option, both spellings, and what is refused with which words. */
#include "commands/options.h"

#include "check.h"

enum { TAKES = RRL_TAKES_RUN | RRL_TAKES_completion };

static rrl_status parse(rrl_options *o, const char *const *words, int n, int n_arguments) {
    return rrl_options_parse(o, n, (char *const *)words, "train", TAKES, n_arguments);
}

static void test_values(void) {
    const char *words[] = {"--set", "a.b=1", "c.yaml",  "--set=x=y=z", "--threads=4", "--fresh", "--isa",
                           "avx2",  "-",     "--quiet", "--dry-run",   "--",          "--json"};
    rrl_options o;
    if (!CHECK_OK(parse(&o, words, sizeof words / sizeof *words, 3))) return;
    CHECK_EQ_INT(o.set.n, 2);
    CHECK_EQ_STR(o.set.v[0], "a.b=1");
    CHECK_EQ_STR(o.set.v[1], "x=y=z");
    CHECK_EQ_INT(o.threads, 4);
    CHECK_EQ_STR(o.isa, "avx2");
    CHECK(o.fresh && o.quiet && o.dry_run && !o.verbose && !o.help && !o.json);
    CHECK_EQ_STR(o.resume, NULL);
    CHECK_EQ_INT(o.completion, -1);
    CHECK_EQ_INT(o.arguments.n, 3);
    CHECK_EQ_STR(o.arguments.v[0], "c.yaml");
    CHECK_EQ_STR(o.arguments.v[1], "-");
    CHECK_EQ_STR(o.arguments.v[2], "--json");
    rrl_options_free(&o);
    const char *help[] = {"-h"};
    if (CHECK_OK(parse(&o, help, 1, 1))) CHECK(o.help);
    rrl_options_free(&o);
}

static const struct {
    const char *what, *words[3];
    int n;
    const char *message; /* part of it */
} REFUSED[] = {
    {"nearest name", {"c", "--tread=2"}, 2, "unknown option --tread; did you mean --threads?"},
    {"nothing near", {"c", "--colour"}, 2, "unknown option --colour; see rrl train --help"},
    {"not for this command", {"c", "--json"}, 2, "rrl train does not take --json"},
    {"a value for a flag", {"c", "--fresh=yes"}, 2, "--fresh takes no value, found \"yes\""},
    {"no value", {"c", "--set"}, 2, "--set needs a value: --set KEY=VALUE"},
    {"no key", {"c", "--set", "=1"}, 3, "--set =1: expected KEY=VALUE"},
    {"no equals sign", {"c", "--set", "seed"}, 3, "--set seed: expected KEY=VALUE"},
    {"threads 0", {"c", "--threads", "0"}, 3, "--threads 0: expected a whole number of at least 1"},
    {"threads x", {"c", "--threads=2x"}, 2, "--threads 2x: expected a whole number"},
    {"negative completion",
     {"c", "--completion=-1"},
     2,
     "--completion -1: expected a whole number of at least 0"},
    {"an empty name", {"c", "--isa="}, 2, "--isa is empty; expected NAME"},
    {"no config", {"--fresh"}, 1, "0 of 1 arguments given"},
    {"two configs", {"c", "d"}, 2, "unexpected argument \"d\""},
};

static void test_refused(void) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        rrl_options o;
        CHECK_STATUS(parse(&o, REFUSED[i].words, REFUSED[i].n, 1), RRL_ERR_USAGE);
        if (!CHECK(strstr(rrl_error_message(), REFUSED[i].message) != NULL))
            fprintf(stderr, "  %s: %s\n", REFUSED[i].what, rrl_error_message());
    }
}

static void test_help(void) {
    char *text;
    if (!CHECK_OK(rrl_options_help(&text, "show", "FILE|DIR", "look", "rrl show x", RRL_TAKES_SHOW))) return;
    CHECK(strstr(text, "usage: rrl show FILE|DIR [options]\n") != NULL);
    CHECK(strstr(text, "  --completion N") != NULL);
    CHECK(strstr(text, "--fresh") == NULL);
    CHECK(strstr(text, "example:\n  rrl show x\n") != NULL);
    free(text);
}

int main(void) {
    test_values();
    test_refused();
    test_help();
    return CHECK_DONE();
}

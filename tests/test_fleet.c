/* Conditions co-scheduled over one base have the records they would have alone: fleets of several sizes and layouts, one
 * killed and continued by a fleet of another size, and one whose member leaves with numbers that are not finite. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "check.h"
#include "record/record.h"

enum { MAX_COMMAND = 4096, MAX_DIR = 256 };

static int study(const char *dir, int ranks, const char *more, const char *wrap) {
    char command[MAX_COMMAND];
    snprintf(command, sizeof command,
             "%s mpirun -n %d %s/rrl study %s/configs/quick.yaml --quiet --threads 1 --set output_dir=%s "
             "--set training.max_steps=6 --set training.save_steps=2 --set dataset.limit=6 --set generation.max_tokens=24 "
             "%s >%s.out 2>&1",
             wrap, ranks, RRL_BINARY_DIR, RRL_SOURCE_DIR, dir, more, dir);
    return system(command);
}

static void check_digest(const char *dir, const char *want, const char *what) {
    char digest[65] = "";
    CHECK_OK(rrl_record_digest(digest, dir));
    if (strcmp(digest, want) != 0) fprintf(stderr, "%s\n", what);
    CHECK_EQ_STR(digest, want);
}

int main(void) {
    static const struct { const char *what, *more; int ranks; } fleets[] = {
        {"fleet of 3", "--set parallel.fleet=3", 1},
        {"fleet of 20, batch limit 5", "--set parallel.fleet=20 --set generation.batch_limit=5", 1},
        {"two teams of fleets of 4", "--set parallel.fleet=4", 2},
        {"fleet of 4 on split roles",
         "--set parallel.fleet=4 --set parallel.ranks_per_team=3 --set parallel.roles.generators=1 "
         "--set parallel.roles.verifiers=1 --set parallel.roles.learners=1", 3},
    };
    char root[] = "/tmp/rrl-fleet-XXXXXX", dir[MAX_DIR], command[MAX_DIR], want[65] = "";
    CHECK(mkdtemp(root) != NULL);
    snprintf(dir, sizeof dir, "%s/alone", root);
    CHECK_EQ_INT(study(dir, 1, "", ""), 0);
    CHECK_OK(rrl_record_digest(want, dir));
    for (size_t i = 0; i < sizeof fleets / sizeof fleets[0]; i++) {
        snprintf(dir, sizeof dir, "%s/fleet%zu", root, i);
        CHECK_EQ_INT(study(dir, fleets[i].ranks, fleets[i].more, ""), 0);
        check_digest(dir, want, fleets[i].what);
    }
    /* killed when the second checkpoint of a member is about to be published, continued by a fleet of another size */
    snprintf(dir, sizeof dir, "%s/killed", root);
    CHECK(study(dir, 1, "--set parallel.fleet=5", "RRL_FAULT='*:publish.rename:40:kill'") != 0);
    CHECK_EQ_INT(study(dir, 1, "--set parallel.fleet=2", ""), 0);
    check_digest(dir, want, "killed and continued");
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_DONE();
}

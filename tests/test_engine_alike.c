/* Ranks of a team that were started with different settings are told so on all of them, before anything is run. Under
 * mpirun -n 2. */
#include <mpi.h>

#include "check.h"
#include "config/config_check.h"
#include "roles/engine.h"

#define TRAIN RRL_SOURCE_DIR "/configs/train.yaml"
enum { SETS = 2 };

static const struct {
    const char *what, *first, *second; /* --set of rank 0 and of rank 1 */
    rrl_status want;
    const char *says;
} CASES[] = {
    {"the same", "seed=1", "seed=1", RRL_OK, ""},
    {"another place and layout", "output_dir=a", "output_dir=b", RRL_OK, ""},
    {"another seed", "seed=1", "seed=2", RRL_ERR_CONFIG, "configuration or data"},
    {"other products", "model.dtype=float32", "model.dtype=bfloat16", RRL_ERR_CONFIG, "configuration or data"},
    {"other questions", "dataset.limit=4", "dataset.limit=5", RRL_ERR_CONFIG, "configuration or data"},
};

static void test_case(size_t i, int rank, rrl_log *log) {
    rrl_config *config = NULL;
    rrl_team *team = NULL;
    rrl_engine *engine = NULL;
    const char *sets[SETS] = {rank == 0 ? CASES[i].first : CASES[i].second, "model.cpu_threads=1"};
    CHECK_OK(rrl_config_open(&config, TRAIN, sets, SETS));
    CHECK_OK(rrl_config_check(config, RRL_FOR_TRAIN));
    CHECK_OK(rrl_team_open(&team, MPI_COMM_WORLD, &config->parallel, false, log));
    rrl_status rc = rrl_engine_open(&engine, team, config, true, NULL, 1);
    int good = CHECK_EQ_INT(rc, CASES[i].want);
    if (rc != RRL_OK) {
        good &= CHECK(strstr(rrl_error_message(), CASES[i].says) != NULL);
        good &= CHECK_EQ_INT(team->peer_failed, rank != 0);
    }
    if (!good) fprintf(stderr, "  rank %d, %s: %s\n", rank, CASES[i].what, rrl_error_message());
    rrl_engine_close(&engine);
    rrl_team_close(&team);
    rrl_config_close(&config);
}

/* Equal settings and another numeric path, as on a node where one rank finds a GPU and the other does not. */
static void test_paths(int rank, rrl_log *log) {
    rrl_config *config = NULL;
    rrl_team *team = NULL;
    rrl_engine *engine = NULL;
    CHECK_OK(rrl_config_open(&config, TRAIN, NULL, 0));
    CHECK_OK(rrl_config_check(config, RRL_FOR_TRAIN));
    CHECK_OK(rrl_team_open(&team, MPI_COMM_WORLD, &config->parallel, false, log));
    CHECK_OK(rrl_engine_open(&engine, team, config, true, NULL, 1));
    if (rank == 1) engine->device->kv_dtype = RRL_BF16;
    CHECK_STATUS(rrl_engine_alike(engine, team), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "numeric path") != NULL);
    rrl_engine_close(&engine);
    rrl_team_close(&team);
    rrl_config_close(&config);
}

int main(int argc, char **argv) {
    int rank, size, level;
    rrl_log *log = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ_INT(size, 2);
    CHECK_OK(rrl_log_open(&log, 2, RRL_LOG_WARN, rank));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) test_case(i, rank, log);
    test_paths(rank, log);
    rrl_log_close(&log);
    MPI_Finalize();
    return CHECK_DONE();
}

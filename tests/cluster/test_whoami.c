/* test_whoami.c - which rank this process is, from the environments of
 * launchers
 *
 * A case is an environment, a cluster file, and what comes out: one line about
 * the rank, or the error that a user reads.  The environments of Slurm are cut
 * from real ones; slurm.sh has the real ones.
 *
 * Without this test, two processes could take the same rank, or a launcher's
 * variables could be read wrongly.
 */
#include "base/compiler.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "dtensor.h"
#include "tests/cluster/launcher.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct env_case {
    const char *claim, *environment, *file, *result;
} cases[] = {
    /* ---- nothing at all */
    { "no launcher, no file", "DTN_HOST=h", NULL,
      "rank 0 of 1, local 0 on h, single process" },
    { "an empty DTN_CLUSTER is none", "DTN_HOST=h DTN_CLUSTER=", NULL,
      "rank 0 of 1, local 0 on h, single process" },

    /* ---- dtensor-run */
    { "dtensor-run", RUN("2", "4") "DTN_HOST=h", NULL,
      "rank 2 of 4, local 2 on h, dtensor-run, job j" },
    { "dtensor-run in a Slurm batch shell", RUN("1", "4") JOB
      "SLURM_PROCID=0 SLURM_LOCALID=0 SLURMD_NODENAME=n0 DTN_HOST=h", NULL,
      "rank 1 of 4, local 1 on h, dtensor-run, job j" },
    { "dtensor-run inside a Slurm step", STEP("0", "2", "0", "n0", "n[0-1]",
      "1(x2)") RUN("1", "4") "DTN_HOST=h", NULL,
      "rank 1 of 4, local 1 on h, dtensor-run, job j" },
    { "dtensor-run with a file of localhost", RUN("3", "4"), "here.ini",
      "rank 3 of 4, local 3 on localhost, dtensor-run, job j" },
    { "the file may be named by DTN_CLUSTER", RUN("3", "4")
      "DTN_CLUSTER=here.ini", NULL,
      "rank 3 of 4, local 3 on localhost, dtensor-run, job j" },
    { "the argument goes before DTN_CLUSTER", RUN("3", "4")
      "DTN_CLUSTER=none.ini", "here.ini",
      "rank 3 of 4, local 3 on localhost, dtensor-run, job j" },
    { "a process that plays a host of the file", RUN("3", "4") "DTN_HOST=n1",
      "pair.ini", "rank 3 of 4, local 1 on n1, dtensor-run, job j" },
    { "a host's name with its domain in the file", RUN("0", "4") "DTN_HOST=n0",
      "far.ini", "rank 0 of 4, local 0 on n0.cluster, dtensor-run, job j" },
    { "or without", RUN("0", "4") "DTN_HOST=n0.cluster", "pair.ini",
      "rank 0 of 4, local 0 on n0, dtensor-run, job j" },
    { "one variable missing", "DTN_RANK=0 DTN_WORLD_SIZE=4 DTN_LOCAL_RANK=0 "
      "DTN_LOCAL_SIZE=4", NULL, "ECONF: DTN_RANK is set but DTN_JOB is not: "
      "start the program with dtensor-run, or unset DTN_RANK" },
    { "half set, in a complete Slurm step", STEP("0", "2", "0", "n0", "n[0-1]",
      "1(x2)") "DTN_WORLD_SIZE=4 DTN_JOB=j", NULL, "ECONF: DTN_WORLD_SIZE is "
      "set but DTN_RANK is not: start the program with dtensor-run, or unset "
      "DTN_WORLD_SIZE" },
    { "a rank too large", RUN("4", "4"), NULL,
      "ECONF: DTN_RANK is \"4\", expected 0 to 3" },
    { "a rank that is no number", RUN("-1", "4"), NULL,
      "ECONF: DTN_RANK is \"-1\", expected 0 to 3" },
    { "no ranks", RUN("0", "0"), NULL,
      "ECONF: DTN_WORLD_SIZE is \"0\", expected 1 to 1073741824" },
    { "an empty job", "DTN_RANK=0 DTN_WORLD_SIZE=1 DTN_LOCAL_RANK=0 "
      "DTN_LOCAL_SIZE=1 DTN_JOB=", NULL,
      "ECONF: DTN_JOB has 0 characters, expected 1 to 79" },
    { "a wrapper on several hosts needs a file", "DTN_RANK=3 DTN_WORLD_SIZE=4 "
      "DTN_LOCAL_RANK=1 DTN_LOCAL_SIZE=2 DTN_JOB=j", NULL, "ECONF: rank 3 of "
      "4 is local rank 1 of 2 (DTN_LOCAL_RANK, DTN_LOCAL_SIZE): ranks on "
      "several hosts need a cluster file, named by DTN_CLUSTER" },
    { "and with one it works", "DTN_RANK=3 DTN_WORLD_SIZE=4 DTN_LOCAL_RANK=1 "
      "DTN_LOCAL_SIZE=2 DTN_JOB=j DTN_HOST=n1", "pair.ini",
      "rank 3 of 4, local 1 on n1, dtensor-run, job j" },
    { "another world size than the file", RUN("0", "2"), "here.ini",
      "ECONF: dtensor-run started 2 ranks (DTN_WORLD_SIZE), here.ini describes "
      "4: use dtensor-run -n 4" },
    { "DTN_HOST is not the rank's host", RUN("3", "4") "DTN_HOST=n0",
      "pair.ini", "ECONF: rank 3 runs on n0 (DTN_HOST), pair.ini puts it on "
      "n1: start it there, or set DTN_HOST=n1 to play that host" },
    { "DTN_HOST alone decides, localhost or not", RUN("3", "4")
      "DTN_HOST=n0", "here.ini", "ECONF: rank 3 runs on n0 (DTN_HOST), "
      "here.ini puts it on localhost: start it there, or set "
      "DTN_HOST=localhost to play that host" },
    { "this machine is not the rank's host", RUN("3", "4"), "pair.ini",
      "ECONF: rank 3 runs on @, pair.ini puts it on n1: start it there, or set "
      "DTN_HOST=n1 to play that host" },

    /* ---- a Slurm step */
    { "a task of a step", STEP("3", "4", "1", "n1", "n[0-1]", "2(x2)"), NULL,
      "rank 3 of 4, local 1 on n1, Slurm step 14.2, job slurm-14.2" },
    { "uneven tasks", STEP("2", "4", "2", "n0", "n[0-1]", "3,1"), NULL,
      "rank 2 of 4, local 2 on n0, Slurm step 14.2, job slurm-14.2" },
    { "the other node of those", STEP("3", "4", "0", "n1", "n[0-1]", "3,1"),
      NULL, "rank 3 of 4, local 0 on n1, Slurm step 14.2, job slurm-14.2" },
    { "a step on some of the job's nodes", STEP("1", "2", "0", "n5", "n[2,5]",
      "1(x2)"), NULL,
      "rank 1 of 2, local 0 on n5, Slurm step 14.2, job slurm-14.2" },
    { "srun -E: the job's SLURM_NTASKS in a step of one task", STEP("0", "1",
      "0", "n0", "n0", "1"), NULL,
      "rank 0 of 1, local 0 on n0, Slurm step 14.2, job slurm-14.2" },
    { "a step with a file", STEP("7", "8", "3", "n1", "n[0-1]", "4(x2)"),
      "gpu.ini", "rank 7 of 8, local 3 on n1, Slurm step 14.2, job "
      "slurm-14.2" },
    { "a file with domains", STEP("3", "4", "1", "n1", "n[0-1]", "2(x2)"),
      "far.ini", "rank 3 of 4, local 1 on n1.cluster, Slurm step 14.2, job "
      "slurm-14.2" },
    { "a file of localhost is any one node", STEP("3", "4", "3", "n6", "n6",
      "4"), "here.ini", "rank 3 of 4, local 3 on localhost, Slurm step 14.2, "
      "job slurm-14.2" },
    { "but not two", STEP("2", "4", "0", "n1", "n[0-1]", "2(x2)"), "here.ini",
      "ECONF: Slurm started 4 tasks, 2 on each of n[0-1], but here.ini "
      "describes 4 ranks, 4 on localhost: use srun -N1 --ntasks-per-node=4" },
    { "a high federated job id", "SLURM_JOB_ID=4227858433 SLURM_STEP_ID=0 "
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 "
      "SLURMD_NODENAME=n0 SLURM_STEP_NODELIST=n0 SLURM_STEP_TASKS_PER_NODE=1",
      NULL, "rank 0 of 1, local 0 on n0, Slurm step 4227858433.0, job "
      "slurm-4227858433.0" },

    /* ---- in a job, but not in a step */
    { "batch shell", JOB "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 "
      "SLURMD_NODENAME=n0", NULL, "ECONF: in Slurm job 14 but not in a step: "
      "start it with \"srun prog ...\" (SLURM_STEP_ID is not set)" },
    { "batch shell of a newer Slurm", JOB "SLURM_PROCID=0 SLURM_LOCALID=0 "
      "SLURM_NODEID=0 SLURMD_NODENAME=n0 SLURM_STEP_ID=-5 "
      "SLURM_STEP_NUM_TASKS=1", NULL, "ECONF: in Slurm job 14 but not in a "
      "step: start it with \"srun prog ...\" (SLURM_STEP_ID is -5)" },
    { "interactive step of salloc", JOB "SLURM_PROCID=0 SLURM_LOCALID=0 "
      "SLURM_NODEID=0 SLURMD_NODENAME=n0 SLURM_STEP_ID=4294967290 "
      "SLURM_STEP_NUM_TASKS=1", NULL, "ECONF: in Slurm job 14 but not in a "
      "step: start it with \"srun prog ...\" (SLURM_STEP_ID is 4294967290)" },
    { "batch shell, with a file", JOB "SLURM_PROCID=0 SLURM_LOCALID=0 "
      "SLURMD_NODENAME=n0 DTN_HOST=n0", "flat.ini", "ECONF: in Slurm job 14 "
      "but not in a step: start it with \"srun prog ...\" (SLURM_STEP_ID is "
      "not set)" },
    { "salloc shell", JOB, NULL, "ECONF: SLURM_JOB_ID is set but SLURM_PROCID, "
      "SLURM_STEP_NUM_TASKS and SLURMD_NODENAME are not: start it with srun, "
      "or unset SLURM_JOB_ID" },
    { "ssh into an allocated node", "SLURM_JOB_ID=14", NULL, "ECONF: "
      "SLURM_JOB_ID is set but SLURM_PROCID, SLURM_STEP_NUM_TASKS and "
      "SLURMD_NODENAME are not: start it with srun, or unset SLURM_JOB_ID" },
    { "a step without two of its variables", "SLURM_JOB_ID=14 SLURM_STEP_ID=0 "
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", NULL, "ECONF: SLURM_JOB_ID is "
      "set but SLURMD_NODENAME and SLURM_LOCALID are not: start it with srun, "
      "or unset SLURM_JOB_ID" },
    { "a step without one", "SLURM_JOB_ID=14 SLURM_STEP_ID=0 SLURM_PROCID=0 "
      "SLURM_STEP_NUM_TASKS=2 SLURMD_NODENAME=n0", NULL, "ECONF: SLURM_JOB_ID "
      "is set but SLURM_LOCALID is not: start it with srun, or unset "
      "SLURM_JOB_ID" },
    { "a world of one rank needs no step", JOB "SLURM_PROCID=0 DTN_HOST=n5",
      "one.ini", "rank 0 of 1, local 0 on n5, the host's name, job "
      "file-t-0" },

    /* ---- a step that does not fit its numbers or the file */
    { "SLURM_PROCID is no number", STEP("x", "8", "0", "n0", "n[0-1]",
      "4(x2)"), NULL, "ECONF: SLURM_PROCID is \"x\", expected 0 to 7" },
    { "SLURM_JOB_ID is no number", "SLURM_JOB_ID=x SLURM_STEP_ID=0 "
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 "
      "SLURMD_NODENAME=n0", NULL,
      "ECONF: SLURM_JOB_ID is \"x\", expected a number" },
    { "more ranks in the file", STEP("0", "6", "0", "n0", "n[0-1]", "3(x2)"),
      "gpu.ini", "ECONF: Slurm started 6 tasks, 3 on each of n[0-1], but "
      "gpu.ini describes 8 ranks, 4 on each of n[0-1]: use srun -N2 "
      "--ntasks-per-node=4" },
    { "fewer, unevenly", STEP("0", "6", "0", "n0", "n[0-1]", "3(x2)"),
      "uneven.ini", "ECONF: Slurm started 6 tasks, 3 on each of n[0-1], but "
      "uneven.ini describes 4 ranks, 3 on n0, 1 on n1: use srun -n4 "
      "--distribution=arbitrary -w n0,n0,n0,n1" },
    { "a Slurm that does not say how many run where", JOB "SLURM_STEP_ID=2 "
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=6 SLURM_LOCALID=0 "
      "SLURMD_NODENAME=n0", "pair.ini", "ECONF: Slurm started 6 tasks "
      "(SLURM_STEP_NUM_TASKS), pair.ini describes 4 ranks: use srun -N2 "
      "--ntasks-per-node=2" },
    { "cyclic: every rank says so, also one that is in its place", STEP("0",
      "4", "0", "n0", "n[0-1]", "2(x2)") "SLURM_DISTRIBUTION=cyclic",
      "pair.ini", "ECONF: Slurm started rank 1 on n1 "
      "(SLURM_DISTRIBUTION=cyclic), pair.ini puts it on n0: use srun "
      "--distribution=block" },
    { "and the last", STEP("3", "4", "1", "n1", "n[0-1]", "2(x2)")
      "SLURM_DISTRIBUTION=cyclic:block", "pair.ini", "ECONF: Slurm started "
      "rank 1 on n1 (SLURM_DISTRIBUTION=cyclic:block), pair.ini puts it on n0: "
      "use srun --distribution=block" },
    { "a plane of two is block order for hosts of two", STEP("3", "4", "1",
      "n1", "n[0-1]", "2(x2)") "SLURM_DISTRIBUTION=plane "
      "SLURM_DIST_PLANESIZE=2", "pair.ini", "rank 3 of 4, local 1 on n1, Slurm "
      "step 14.2, job slurm-14.2" },
    { "a plane of one is not", STEP("0", "4", "0", "n0", "n[0-1]", "2(x2)")
      "SLURM_DISTRIBUTION=plane SLURM_DIST_PLANESIZE=1", "pair.ini", "ECONF: "
      "Slurm started rank 1 on n1 (SLURM_DISTRIBUTION=plane), pair.ini puts it "
      "on n0: use srun --distribution=block" },
    { "cyclic over unequal nodes", STEP("0", "4", "0", "n0", "n[0-1]", "3,1")
      "SLURM_DISTRIBUTION=cyclic", "uneven.ini", "ECONF: Slurm started rank 1 "
      "on n1 (SLURM_DISTRIBUTION=cyclic), uneven.ini puts it on n0: use srun "
      "--distribution=block" },
    { "cyclic with one task on each node is block order", STEP("1", "4", "0",
      "n1", "n[0-3]", "1(x4)") "SLURM_DISTRIBUTION=cyclic", "flat.ini",
      "rank 1 of 4, local 0 on n1, Slurm step 14.2, job slurm-14.2" },
    { "an order that is not named: a rank sees those of its node", STEP("0",
      "4", "0", "n0", "n[0-1]", "2(x2)") "SLURM_GTIDS=0,2", "pair.ini",
      "ECONF: rank 2 runs on n0 (SLURM_GTIDS), pair.ini puts it on n1: use "
      "srun --distribution=block" },
    { "cyclic, with a file", STEP("1", "4", "0", "n1", "n[0-1]", "2(x2)"),
      "pair.ini", "ECONF: rank 1 runs on n1 (SLURMD_NODENAME), pair.ini puts "
      "it on n0: use srun --distribution=block" },
    { "cyclic, without a file", STEP("1", "4", "0", "n1", "n[0-1]", "2(x2)"),
      NULL, "ECONF: rank 1 runs on n1 (SLURMD_NODENAME), SLURM_STEP_NODELIST "
      "puts it on n0: use srun --distribution=block" },
    { "the file's order is not Slurm's", STEP("0", "4", "0", "n1", "n[1,3]",
      "2(x2)"), "back.ini", "ECONF: Slurm orders nodes by name and starts rank "
      "0 on n1, back.ini puts it on n3: write \"hosts = n[1,3]\"" },
    { "a node that is not in the file", STEP("0", "4", "0", "n7", "n[7-8]",
      "2(x2)"), "pair.ini", "ECONF: Slurm started 4 tasks, 2 on each of "
      "n[7-8], but pair.ini describes 4 ranks, 2 on each of n[0-1]: use srun "
      "-w n[0-1] -N2 --ntasks-per-node=2, or write \"hosts = @step\"" },
    { "more tasks here than the file has ranks", STEP("2", "4", "2", "n0",
      "n[0-1]", "3,1"), "pair.ini", "ECONF: Slurm started 4 tasks, 3 on n0, 1 "
      "on n1, but pair.ini describes 4 ranks, 2 on each of n[0-1]: use srun "
      "-N2 --ntasks-per-node=2" },
    { "fewer tasks there", STEP("3", "4", "0", "n1", "n[0-1]", "3,1"),
      "pair.ini", "ECONF: Slurm started 4 tasks, 3 on n0, 1 on n1, but "
      "pair.ini describes 4 ranks, 2 on each of n[0-1]: use srun -N2 "
      "--ntasks-per-node=2" },
    { "counts for other nodes than the list", STEP("0", "4", "0", "n0",
      "n[0-1]", "2(x3)"), NULL, "ECONF: SLURM_STEP_TASKS_PER_NODE is "
      "\"2(x3)\", for 3 nodes, but SLURM_STEP_NODELIST is \"n[0-1]\", 2 nodes: "
      "start the program with srun" },
    { "a node list that is none", STEP("0", "4", "0", "n0", "n[0-", "2(x2)"),
      NULL, "ECONF: SLURM_STEP_NODELIST: \"[\" and \"]\" do not match in "
      "\"n[0-\"; expected a list such as node[001-064]" },
    { "counts that are none", STEP("0", "4", "0", "n0", "n[0-1]", "2x2"), NULL,
      "ECONF: SLURM_STEP_TASKS_PER_NODE: \"2x2\" is not a list of counts; "
      "expected such as 2(x3),1" },
    { "a step without a node list", "SLURM_JOB_ID=1 SLURM_STEP_ID=0 "
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 "
      "SLURMD_NODENAME=n0", NULL, "ECONF: SLURM_STEP_NODELIST is not set: "
      "start the program with srun, or name a cluster file in DTN_CLUSTER" },

    /* ---- hosts in the file */
    { "one rank on this host", "DTN_HOST=n2", "flat.ini",
      "rank 2 of 4, local 0 on n2, the host's name, job file-t-0" },
    { "this host is not in the file", "DTN_HOST=n9", "flat.ini", "ECONF: "
      "nothing says which rank of flat.ini this process is (start it with srun "
      "or dtensor-run -n 4): dtensor-run: DTN_RANK is not set; Slurm step: "
      "SLURM_JOB_ID is not set; hosts in the file: this host, n9, is not in "
      "the file; single process: there is a cluster file" },
    { "four ranks on this host", "DTN_X=1", "here.ini", "ECONF: nothing says "
      "which rank of here.ini this process is (start it with srun or "
      "dtensor-run -n 4): dtensor-run: DTN_RANK is not set; Slurm step: "
      "SLURM_JOB_ID is not set; hosts in the file: this host, @, has more "
      "than one rank; single process: there is a cluster file" },
};

/* ------------------------------------------------------------- running --- */

static char hostname[DTN_HOST_MAX];

/* "@," in what is expected is this host's name. */
static void expected_text(const char *pattern, char *buf, size_t size)
{
    const char *at = strstr(pattern, "@,");

    if (at)
        snprintf(buf, size, "%.*s%s%s", (int)(at - pattern), pattern, hostname,
                 at + 1);
    else
        snprintf(buf, size, "%s", pattern);
}

static void case_run(const struct env_case *c, struct dtn_log *log)
{
    struct dtensor_cluster *const mark = (struct dtensor_cluster *)&mark;
    struct dtn_world world = { .cluster = mark, .rank = -9 };
    struct dtensor_error err;
    char got[800], expected[800];
    int rc;

    environment_set(c->environment);
    rc = dtn_whoami(c->file, log, &world, &err);
    if (rc == 0)
        snprintf(got, sizeof got, "rank %d of %d, local %d on %s, %s%s%s",
                 world.rank, world.size, world.local_rank, world.host_name,
                 world.launcher,
                 strncmp(world.job, "single-", 7) ? ", job " : "",
                 strncmp(world.job, "single-", 7) ? world.job : "");
    else
        snprintf(got, sizeof got, "%s: %s", dtensor_errname(rc), err.text);
    expected_text(c->result, expected, sizeof expected);
    if (!ok(strcmp(got, expected) == 0, "%s", c->claim)) {
        note("got:      %s", got);
        note("expected: %s", expected);
    }
    if (rc == 0 && (world.cluster->world_size != world.size ||
                    world.cluster->nmeshes < 1))
        ok(false, "%s: the cluster fits", c->claim);
    if (rc != 0 && (world.cluster != mark || world.rank != -9))
        ok(false, "%s: the out-parameters are untouched", c->claim);
    if (rc == 0)
        dtensor_cluster_destroy(world.cluster);
}

/* Every method that passes leaves its note at debug level. */
static void test_notes(void)
{
    struct dtn_log log = { DTN_LOG_DEBUG, -1, tmpfile(), 0 };
    struct dtn_world world;
    char text[2000] = "";

    environment_set("DTN_HOST=h");
    if (dtn_whoami(NULL, &log, &world, NULL) == 0)
        dtensor_cluster_destroy(world.cluster);
    rewind(log.stream);
    text[fread(text, 1, sizeof text - 1, log.stream)] = '\0';
    fclose(log.stream);
    ok(strstr(text, "not by dtensor-run: DTN_RANK is not set") &&
       strstr(text, "not by Slurm step: SLURM_JOB_ID is not set") &&
       strstr(text, "not by hosts in the file: no cluster file") &&
       strstr(text, "rank 0 of 1, local rank 0 on h, by single process"),
       "DTN_LOG=debug tells which methods were tried, and which it was");
}

int main(void)
{
    struct dtn_log log = { DTN_LOG_OFF, -1, stderr, 0 };
    char long_host[400], prog[] = "prog";

    if (!files_write())
        return skip_all("no writable /tmp");
    program_invocation_short_name = prog;
    gethostname(hostname, sizeof hostname - 1);
    for (size_t i = 0; i < DTN_COUNT(cases); i++)
        case_run(&cases[i], &log);
    snprintf(long_host, sizeof long_host, "DTN_HOST=%0300d", 1);
    case_run(&(struct env_case){ "a host name without end", long_host, NULL,
             "ECONF: DTN_HOST has 300 characters, expected at most 255" },
             &log);
    snprintf(long_host, sizeof long_host, "DTN_RANK=0 DTN_WORLD_SIZE=1 "
             "DTN_LOCAL_RANK=0 DTN_LOCAL_SIZE=1 DTN_JOB=%080d", 1);
    case_run(&(struct env_case){ "a job name without end", long_host, NULL,
             "ECONF: DTN_JOB has 80 characters, expected 1 to 79" }, &log);
    test_notes();
    files_remove();
    return done();
}

/* main.c - dtensor-bench, in order
 *
 * Read the options; with --local start the ranks; join the job; run one case
 * after the other; leave with the same exit code on every rank.
 */
#include "tools/bench/baseline.h"
#include "tools/bench/bench.h"
#include "tools/bench/calibrate.h"
#include "tools/bench/dry.h"
#include "tools/bench/explain.h"
#include "tools/bench/job.h"
#include "tools/bench/launch.h"
#include "tools/bench/measure.h"
#include "tools/bench/op.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/report.h"
#include "tools/bench/rng.h"
#include "tools/bench/session.h"
#include "tools/bench/soak.h"
#include "tools/bench/sweep.h"
#include "tools/bench/tests.h"
#include "tools/cli.h"
#include "dtensor.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct run {
    struct bench b;
    struct facts facts;
    struct report report;
    struct summary summary;
    struct bench_case *cases;
    int ncases;
    int nmoving;                  /* rows whose busbw counts in the average   */
    struct baseline *baseline;    /* on rank 0, if there is one               */
    int64_t nknown, nbelow;       /* rows that it has, and that are below it  */
};

/* Print the error, unless another rank prints it. */
static void run_complain(const struct run *run, const struct dtensor_error *err)
{
    if (err->code != SESSION_UNREAD && !run->b.told
        && dtensor_should_report(run->b.ctx, err))
        fprintf(stderr, "dtensor-bench: %s\n", err->text);
}

/* ------------------------------------------------------------- one case --- */

/* A row against the baseline, which rank 0 has. */
static void run_judge(struct run *run, const struct bench_result *result)
{
    struct verdict verdict;

    if (!run->baseline)
        return;
    verdict = baseline_compare(run->baseline, result,
                               (double)run->b.opt->tolerance / 100);
    run->nknown += verdict.found;
    run->nbelow += verdict.below;
    if (verdict.below)
        fprintf(stderr, "dtensor-bench: below baseline: %s of %llu bytes: "
                "%.2f %s, not %.2f (tolerance %lld%%)\n",
                result->c->test->name, (unsigned long long)result->c->bytes,
                verdict.now, verdict.unit, verdict.then,
                (long long)run->b.opt->tolerance);
    else if (verdict.found)
        report_note(&run->report, "baseline %.2f %s, now %.2f", verdict.then,
                    verdict.unit, verdict.now);
}

static int run_measure(struct run *run, struct bench_job *job,
                       struct dtensor_error *err)
{
    struct bench_result result;
    int rc = measure(job, &result, err);

    if (rc)
        return rc;
    report_row(&run->report, &result);
    run->summary.wrong += result.wrong;
    run->summary.copied_bytes += result.copied_bytes;
    if (job->incoming_bytes > 0) {
        run->nmoving++;
        run->summary.average_busbw +=
            (result.busbw - run->summary.average_busbw) / run->nmoving;
    }
    run_judge(run, &result);
    return explain_case(&run->report, &run->b, job->c, err);
}

static int run_soak(struct run *run, struct bench_job *job,
                    struct dtensor_error *err)
{
    struct footprint growth;
    uint64_t wrong;
    int rc = soak_run(job, &growth, &wrong, err);

    if (rc)
        return rc;
    run->summary.wrong += wrong;
    report_note(&run->report, "%lld %ss: RSS %+lld KiB, fds %+lld",
                (long long)run->b.opt->loop, job->c->test->name,
                (long long)growth.rss_kib, (long long)growth.fds);
    return 0;
}

static int run_case(struct run *run, const struct bench_case *c,
                    struct dtensor_error *err)
{
    struct bench_job *job = NULL;
    int rc;

    dtensor_set_repro(run->b.ctx, c->repro);
    rc = session_agree(&run->b, report_unread(&run->report, err), err);
    if (rc)
        return rc;
    rc = session_agree(&run->b, c->test->open(&run->b, c, &job, err), err);
    if (rc == 0 && run->b.opt->loop)
        rc = run_soak(run, job, err);
    else if (rc == 0)
        rc = run_measure(run, job, err);
    if (job)
        job->ops->close(job);
    return rc;
}

/* ------------------------------------------------------------ all cases --- */

static int run_startup(struct run *run, int64_t start_ns,
                       struct dtensor_error *err)
{
    bool launched = launch_time_ns(&start_ns);
    int rc = soak_startup(&run->b, start_ns, &run->summary.startup_ms, err);

    if (rc == 0)
        report_note(&run->report, "start-up: %d ranks, %.1f ms from %s to "
                    "first allreduce done (slowest rank)", run->b.nranks,
                    run->summary.startup_ms,
                    launched ? "launch" : "main()");
    return rc;
}

static int run_pairs(struct run *run, struct dtensor_error *err)
{
    struct pairs pairs;
    int rc = pairs_measure(&pairs, &run->b, err);

    if (rc == 0)
        report_pairs(&run->report, &pairs);
    pairs_fini(&pairs);
    return rc;
}

static int run_cases(struct run *run, struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; i < run->ncases && rc == 0; i++) {
        report_progress(&run->report, i, run->ncases, &run->cases[i]);
        rc = run_case(run, &run->cases[i], err);
    }
    return rc;
}

/* Rank 0 has read it; every rank learns whether it is kept. */
static int run_open_baseline(struct run *run, struct dtensor_error *err)
{
    const char *path = run->b.opt->baseline;

    if (!path)
        return 0;
    return session_agree(&run->b, run->b.rank != 0 ? 0
                         : baseline_read(path, &run->baseline, err), err);
}

static int run_close_baseline(struct run *run, struct dtensor_error *err)
{
    int rc = 0;

    if (!run->b.opt->baseline)
        return 0;
    if (run->b.rank == 0 && run->nknown == 0)
        rc = session_fail(err, DTENSOR_EINVAL, "--baseline %s: it has none of "
                          "these rows (same tests, sizes, types and ranks are "
                          "needed)", run->b.opt->baseline);
    rc = session_agree(&run->b, rc, err);
    return rc ? rc : session_sum(&run->b, &run->nbelow, err);
}

/* A newcomer who forgot to start ranks. */
static void run_hint(struct run *run)
{
    if (run->b.nranks == 1 && run->b.opt->ntests)
        report_note(&run->report, "hint: one rank alone moves nothing between "
                    "ranks; add --local 4, or start it by srun or "
                    "dtensor-run");
}

static int run_all(struct run *run, int64_t start_ns,
                   struct dtensor_error *err)
{
    struct dtensor_error late;
    int rc = sweep_make(&run->b, &run->cases, &run->ncases, err);
    int closed;

    if (rc == 0)
        rc = run_open_baseline(run, err);
    if (rc == 0)
        rc = facts_init(&run->facts, &run->b, err);
    if (rc)
        return rc;
    rc = session_agree(&run->b, report_open(&run->report, &run->facts,
                                            &run->b, err), err);
    if (rc == 0)
        run_hint(run);
    if (rc == 0 && run->b.opt->startup)
        rc = run_startup(run, start_ns, err);
    if (rc == 0 && run->b.opt->check_fabric)
        rc = run_pairs(run, err);
    if (rc == 0)
        rc = run_cases(run, err);
    run->summary.elapsed_s = (double)(session_now_ns() - start_ns) / 1e9;
    run->summary.error = rc ? err->text : NULL;
    closed = report_close(&run->report, &run->summary, &late);
    if (rc)
        return rc;
    if (closed)
        *err = late;
    rc = session_agree(&run->b, closed, err);
    return rc ? rc : run_close_baseline(run, err);
}

/* A rank's whole life. */
static int run_rank(const struct bench_options *opt, int64_t start_ns)
{
    struct run run = { .summary.startup_ms = -1 };
    struct dtensor_error err = { 0 };
    int rc;

    signal(SIGPIPE, SIG_IGN);     /* else rank 0 would die, and others fail   */
    rc = session_open(&run.b, opt, &err);
    if (rc) {
        run_complain(&run, &err);
        session_close(&run.b);
        return session_start_code(opt, rc);
    }
    if (rc == 0)
        rc = opt->calibrate ? calibrate(&run.b, stdout, &err)
                            : run_all(&run, start_ns, &err);
    if (rc)
        run_complain(&run, &err);
    free(run.cases);
    facts_fini(&run.facts);
    baseline_destroy(run.baseline);
    session_close(&run.b);
    if (rc == 0 && (run.summary.wrong || run.nbelow))
        return BENCH_WRONG;
    return session_exit_code(rc);
}

/* With --local the file can be checked once, before there are ranks. */
static void run_finding(const char *text, void *arg)
{
    (void)arg;
    fprintf(stderr, "%s\n", text);
}

static bool run_file_is_fine(const struct bench_options *opt)
{
    const char *path = opt->cluster ? opt->cluster : getenv("DTN_CLUSTER");
    struct dtensor_cluster *cluster = NULL;

    if (!path || !path[0])
        return true;
    if (dtensor_cluster_read(path, run_finding, NULL, &cluster, NULL))
        return false;
    dtensor_cluster_destroy(cluster);
    return true;
}

static int bench_main(int argc, char *argv[])
{
    int64_t start_ns = session_now_ns();
    struct bench_options opt;
    char why[400];
    int code;

    if (argc > 1 && strcmp(argv[1], "op") == 0)
        return op_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "rng") == 0)
        return rng_main(argc - 1, argv + 1);
    if (!options_parse(&opt, argc, argv, why, sizeof why)) {
        fprintf(stderr, "dtensor-bench: %s\n"
                "Try 'dtensor-bench --help' for more information.\n", why);
        return BENCH_USAGE;
    }
    if (opt.help) {
        options_help(stdout);
        return BENCH_OK;
    }
    if (opt.version) {
        printf("dtensor-bench %s (%s)\nLicence: BSD-3-Clause\n",
               dtensor_version(), dtensor_build());
        return BENCH_OK;
    }
    if (opt.dry_run)
        return dry_run(&opt);
    if (opt.local) {
        if (!run_file_is_fine(&opt))
            return BENCH_USAGE;
        if (launch_local((int)opt.local, &code) < 0)
            return code;
    }
    return run_rank(&opt, start_ns);
}

/* A full disk must not pass for success. */
int main(int argc, char *argv[])
{
    int code;

    cli_files();
    code = bench_main(argc, argv);
    if (code != BENCH_OK || (fflush(stdout) == 0 && !ferror(stdout)))
        return code;
    if (errno == EPIPE)
        return BENCH_UNREAD;
    fprintf(stderr, "dtensor-bench: stdout: cannot write it: %s\n",
            strerror(errno));
    return BENCH_LOST;
}

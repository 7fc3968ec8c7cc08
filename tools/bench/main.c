/* main.c - dtensor-bench, in order
 *
 * Read the options; with --local start the ranks; join the job; run one case
 * after the other; leave with the same exit code on every rank.
 */
#include "tools/bench/bench.h"
#include "tools/bench/calibrate.h"
#include "tools/bench/cross.h"
#include "tools/bench/job.h"
#include "tools/bench/launch.h"
#include "tools/bench/measure.h"
#include "tools/bench/op.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/redistribute.h"
#include "tools/bench/report.h"
#include "tools/bench/rng.h"
#include "tools/bench/session.h"
#include "tools/bench/soak.h"
#include "tools/bench/sweep.h"
#include "tools/bench/tests.h"
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
};

/* Print the error, unless another rank prints it. */
static void run_complain(const struct run *run, const struct dtensor_error *err)
{
    if (err->code != SESSION_UNREAD && !run->b.told
        && dtensor_should_report(run->b.ctx, err))
        fprintf(stderr, "dtensor-bench: %s\n", err->text);
}

/* ------------------------------------------------------------- one case --- */

static void run_draw_one(struct run *run, const char *when,
                         const struct dtensor_spec *spec)
{
    char *picture = NULL, *line, *rest;
    size_t size;
    FILE *stream = open_memstream(&picture, &size);

    if (!stream)
        return;
    dtensor_spec_draw(spec, stream);
    fclose(stream);
    report_note(&run->report, "%s", when);
    for (rest = picture; (line = strsep(&rest, "\n")) && rest;)
        report_note(&run->report, "  %s", line);
    free(picture);
}

/* What a redistribution is about: pictures, and what has to move. */
static int run_explain(struct run *run, const struct bench_case *c,
                       struct dtensor_error *err)
{
    struct dtensor_spec from, to;
    double total, busiest;
    int rc;

    if (c->test->open != redistribute_open)
        return 0;
    rc = redistribute_specs(&run->b, c, &from, &to, err);
    if (rc)
        return rc;
    cross_bytes(&from, &to, &total, &busiest);
    if (run->b.opt->draw)
        run_draw_one(run, "before", &from);
    if (run->b.opt->draw)
        run_draw_one(run, "after", &to);
    if (run->b.opt->draw || run->b.opt->shape)
        report_note(&run->report, "%.0f bytes must cross ranks, %.0f into "
                    "the rank that gets most", total, busiest);
    return 0;
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
    return run_explain(run, job->c, err);
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

static int run_all(struct run *run, int64_t start_ns,
                   struct dtensor_error *err)
{
    struct dtensor_error late;
    int rc = sweep_make(&run->b, &run->cases, &run->ncases, err);
    int closed;

    if (rc == 0)
        rc = facts_init(&run->facts, &run->b, err);
    if (rc)
        return rc;
    rc = session_agree(&run->b, report_open(&run->report, &run->facts,
                                            &run->b, err), err);
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
    return session_agree(&run->b, closed, err);
}

/* A rank's whole life. */
static int run_rank(const struct bench_options *opt, int64_t start_ns)
{
    struct run run = { .summary.startup_ms = -1 };
    struct dtensor_error err = { 0 };
    int rc;

    signal(SIGPIPE, SIG_IGN);     /* else rank 0 would die, and others fail   */
    rc = session_open(&run.b, opt, &err);

    if (rc == 0)
        rc = opt->calibrate ? calibrate(&run.b, stdout, &err)
                            : run_all(&run, start_ns, &err);
    if (rc)
        run_complain(&run, &err);
    free(run.cases);
    facts_fini(&run.facts);
    session_close(&run.b);
    if (rc == 0 && run.summary.wrong)
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
    int code = bench_main(argc, argv);

    if (code != BENCH_OK || (fflush(stdout) == 0 && !ferror(stdout)))
        return code;
    if (errno == EPIPE)
        return BENCH_UNREAD;
    fprintf(stderr, "dtensor-bench: stdout: cannot write it: %s\n",
            strerror(errno));
    return BENCH_LOST;
}

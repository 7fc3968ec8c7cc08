/* dry.c - what a command line would measure
 *
 * The same list of cases as in a run, from a context that only plans: for each
 * the calls, the predicted time of one, and the algorithm or route that it
 * would take.  So a long sweep can be judged before it gets nodes.
 */
#include "tools/bench/dry.h"
#include "tools/bench/bench.h"
#include "tools/bench/explain.h"
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/redistribute.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/sweep.h"
#include "tools/bench/tests.h"
#include "tools/draw/bytes.h"
#include "dtensor.h"

#include <stdio.h>
#include <stdlib.h>

enum { DRY_WAYS = 32 };

/* The predicted time of a call, and how it would be done. */
struct prediction {
    double us;                    /* below 0: unknown                         */
    char how[64];
};

static int dry_collective(const struct bench *b, const struct bench_case *c,
                          struct prediction *p, struct dtensor_error *err)
{
    const struct dtensor_call call = explain_call(b, c);
    struct dtensor_way ways[DRY_WAYS];
    int n, rc = dtensor_call_ways(b->mesh, &call, ways, DRY_WAYS, &n, err);

    for (int i = 0; rc == 0 && i < n && i < DRY_WAYS; i++)
        if (ways[i].taken) {
            p->us = ways[i].ns / 1e3;
            snprintf(p->how, sizeof p->how, "%s", ways[i].name);
        }
    return rc;
}

static int dry_change(struct bench *b, const struct bench_case *c,
                      struct prediction *p, struct dtensor_error *err)
{
    struct dtensor_spec from, to;
    struct dtensor_plan_info info;
    struct dtensor_plan *plan;
    int rc = redistribute_specs(b, c, &from, &to, err);

    if (rc == 0)
        rc = dtensor_plan_create(&from, &to, NULL, &plan, err);
    if (rc)
        return rc;
    dtensor_plan_info(plan, &info);
    p->us = info.predicted_us;
    snprintf(p->how, sizeof p->how, "%d step%s", info.nsteps,
             info.nsteps == 1 ? "" : "s");
    dtensor_plan_destroy(plan);
    return 0;
}

static int dry_case(struct bench *b, const struct bench_case *c,
                    double *total_us, struct dtensor_error *err)
{
    const int64_t calls = b->opt->loop ? b->opt->loop
                                       : b->opt->iters + b->opt->warmup;
    struct prediction p = { .us = -1, .how = "-" };
    char time[32] = "-";
    int rc = 0;

    if (c->test->open == redistribute_open)
        rc = dry_change(b, c, &p, err);
    else if (c->test->coll != DTENSOR_NCOLLECTIVES)
        rc = dry_collective(b, c, &p, err);
    if (rc)
        return rc;
    if (p.us >= 0) {
        draw_time(p.us, time, sizeof time);
        *total_us += p.us * (double)calls;
    }
    printf("%-16s %12llu %11llu %6s %5s %9lld %10s  %s\n", c->test->name,
           (unsigned long long)c->bytes, (unsigned long long)c->count,
           dtensor_dtype_name(c->dtype), c->redop == PATTERN_NO_OP
           ? "none" : dtensor_redop_name(c->redop), (long long)calls, time,
           p.how);
    return 0;
}

static int dry_cases(struct bench *b, struct dtensor_error *err)
{
    struct report report = { .stdout_only = true };
    struct bench_case *cases = NULL;
    double total_us = 0;
    char time[32];
    int n = 0, rc = sweep_make(b, &cases, &n, err);

    printf("# dry run: %d ranks, mesh %s of %d; nothing is started\n"
           "# %-14s %12s %11s %6s %5s %9s %10s  %s\n"
           "# %-14s %12s %11s %6s %5s %9s %10s\n", b->nranks, b->dim, b->group,
           "test", "bytes", "count", "type", "redop", "calls", "time", "by",
           "", "(B)", "(elements)", "", "", "", "(a call)");
    for (int i = 0; i < n && rc == 0; i++) {
        rc = dry_case(b, &cases[i], &total_us, err);
        if (rc == 0 && b->opt->draw)
            rc = explain_case(&report, b, &cases[i], err);
    }
    if (rc == 0)
        printf("# %d rows, about %s of calls; filling and checking buffers "
               "takes more\n", n, draw_time(total_us, time, sizeof time));
    free(cases);
    return rc;
}

int dry_run(const struct bench_options *opt)
{
    struct dtensor_error err;
    struct bench b;
    int rc = session_plan(&b, opt, &err);

    if (rc == 0)
        rc = dry_cases(&b, &err);
    if (rc)
        fprintf(stderr, "dtensor-bench: %s\n", err.text);
    session_close(&b);
    return session_start_code(opt, rc);
}

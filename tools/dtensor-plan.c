/* dtensor-plan - explain how a tensor gets from one placement to another
 *
 *   $ dtensor-plan --mesh 2x4 --from 'S(0),R' --to 'R,S(1)' --shape 8192x8192
 *
 * shows the chosen route and why, its steps, what each rank sends, the lower
 * bound of that, and the cost of the other routes.  With the name of a
 * collective it shows the predicted time of each algorithm, and which one is
 * chosen and why; with --simulate what it takes on a described machine, step by
 * step. It needs no peers: mesh, hosts and costs come from the
 * options or from a cluster file.
 * With "op" and the name of an operator it shows which placements that takes,
 * with "module" and the name of a plan what the modules of a model move.
 */
#include "tools/cli.h"
#include "tools/plan/plan.h"

#include <errno.h>
#include <string.h>

/* A full disk must not pass for success; head and the like are no error. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return PLAN_UNREAD;
    fprintf(stderr, "%s: cannot write: %s\n", plan_program, strerror(errno));
    return PLAN_BAD;
}

static int show(const struct plan_job *job, const struct plan_options *opt)
{
    if (opt->op)
        return plan_op(job, opt, stdout);
    if (opt->module)
        return plan_module(job, opt, stdout);
    if (opt->svg || opt->draw)
        return plan_picture(job, opt, stdout);
    if (opt->simulate)
        return plan_simulate(job, opt, stdout);
    if (opt->collective && opt->json)
        return plan_ways_json(job, stdout);
    if (opt->collective) {
        plan_ways_text(job, stdout);
        return PLAN_GOOD;
    }
    if (opt->json)
        return plan_json(job, opt->layout, stdout);
    if (job->plan)
        plan_text(job, opt->matrix, stdout);
    if (opt->layout) {
        if (job->plan)
            putchar('\n');
        plan_layout(&job->from, stdout);
        if (job->plan)
            plan_layout(&job->to, stdout);
    }
    return PLAN_GOOD;
}

int main(int argc, char **argv)
{
    struct plan_options opt;
    struct plan_job job;
    int status;

    cli_files();
    status = plan_options_read(argc, argv, &opt);
    if (status != PLAN_GOOD)
        return status;
    if (opt.help) {
        plan_help(stdout);
        return finish(PLAN_GOOD);
    }
    if (opt.version) {
        printf("%s %s (%s)\nLicence: BSD-3-Clause\n", plan_program,
               dtensor_version(), dtensor_build());
        return finish(PLAN_GOOD);
    }
    if (opt.winners)
        return finish(plan_winners(&opt, stdout));
    status = plan_job_open(&opt, &job);
    if (status == PLAN_GOOD)
        status = plan_beside_open(&opt, &job);
    if (status == PLAN_GOOD)
        status = show(&job, &opt);
    plan_beside_close(&job);
    plan_job_close(&job);
    return finish(status);
}

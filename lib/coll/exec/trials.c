/* trials.c - which method gives peers of the host private memory
 *
 * Which method is the fastest depends on the distance of the cores, which
 * changes on a virtual machine while a program runs.  So the first runs of an
 * executable try each method a few times, and the method with the fastest run
 * is kept until run 512.  Then the trials begin again.
 *
 * The first runs of a method do not count: they find the cache lines as the
 * method before left them.  Peers try the same method in the same run, but
 * correctness does not depend on that, and the method does not change the order
 * of a sum.  If a run is polled, only the time inside its start, its polls and
 * dtensor_wait() counts.
 *
 * Two methods may be equally fast, but a mix of them is slow: an allreduce of
 * 64 KiB took 11 us if both ranks chose the same one, and 23 us if they did
 * not. So a rank takes the method that a lower rank of its host tells, and
 * soon all use that of the lowest.
 */
#include "coll/exec/trials.h"
#include "base/wait.h"
#include "coll/exec/exec.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"

enum {
    COUNTED = 3,                  /* runs of each method that count           */
    PERIOD = 512,                 /* runs from trials to trials               */
    SLICE_NS = 1000000            /* a time slice, at least                   */
};

static const struct dtn_exposure exposures[DTN_NMETHODS] = {
    [DTN_METHOD_CMA] = { .cma = { true, true } },
    [DTN_METHOD_NT] = { .nt = true },
    [DTN_METHOD_NT_CMA] = { .cma = { false, true }, .nt = true },
    [DTN_METHOD_TURNS] = { .turns = true },
};

const struct dtn_exposure *dtn_run_exposure(const struct dtn_exec_run *run)
{
    return &exposures[run->trial.method];
}

/* The size of the smallest space that peers access. */
static size_t exposed_least(const struct dtn_exec *exec)
{
    const struct dtn_sched *sched = &exec->sched;
    size_t least = SIZE_MAX;

    for (int s = DTN_IN; s <= DTN_OUT; s++)
        if (sched->exposed[s] && sched->bytes[s] < least)
            least = sched->bytes[s];
    return least;
}

/* Can the method be the fastest for this executable? */
static bool method_suits(const struct dtn_exec *exec, int method)
{
    const size_t least = exposed_least(exec);

    if (method == DTN_METHOD_WINDOW)
        return exec->window != NULL;
    if (exec->window && least >= DTN_STAGED_MAX_BYTES)
        return method == DTN_METHOD_CMA;
    return method != DTN_METHOD_TURNS
        || dtn_bounce_parts(exec->group.ctx, least) > 1;
}

/* How many runs of a method are tried.  In the first trials all parts of a
 * bounce buffer are used before a run counts.
 */
static int method_runs(const struct dtn_exec *exec, int method)
{
    if (!method_suits(exec, method))
        return 0;
    if (method != DTN_METHOD_TURNS || exec->trials.cycled)
        return 1 + COUNTED;
    return dtn_bounce_parts(exec->group.ctx, exposed_least(exec)) + COUNTED;
}

/* The method that the schedule asks for. */
static enum dtn_exec_method first_method(const struct dtn_exec *exec)
{
    return exec->window ? DTN_METHOD_WINDOW
         : exec->sched.expose == DTN_EXPOSE_CMA ? DTN_METHOD_CMA
         : DTN_METHOD_STAGED;
}

/* The method of trial `run`, and whether that run counts. */
static enum dtn_exec_method trial_method(const struct dtn_exec *exec, int run,
                                         bool *counts)
{
    for (int i = 0; i < DTN_NMETHODS; i++) {
        const int method = ((int)first_method(exec) + i) % DTN_NMETHODS;
        const int runs = method_runs(exec, method);

        *counts = run >= runs - COUNTED;
        if (run < runs)
            return (enum dtn_exec_method)method;
        run -= runs;
    }
    return first_method(exec);
}

static void trials_open(struct dtn_exec *exec)
{
    struct dtn_exec_trials *trials = &exec->trials;

    trials->tries = 0;
    for (int method = 0; method < DTN_NMETHODS; method++) {
        trials->tries += method_runs(exec, method);
        trials->took_ns[method] = INT64_MAX;
    }
}

void dtn_trial_begin(struct dtn_exec_run *run, bool is_private)
{
    struct dtn_exec_trials *trials = &run->exec->trials;
    bool tries;

    if (is_private && trials->runs == 0)
        trials_open(run->exec);
    tries = is_private && trials->runs < trials->tries;
    run->trial.timed_ns = 0;
    run->trial.is_private = is_private;
    run->trial.counts = false;
    run->trial.method =
        tries ? trial_method(run->exec, trials->runs, &run->trial.counts)
        : trials->best < 0 ? first_method(run->exec)
        : (enum dtn_exec_method)trials->best;
    run->windowed = is_private && run->trial.method == DTN_METHOD_WINDOW;
    if (run->windowed || tries)
        run->trial.timed_ns = dtn_now_ns();
}

unsigned dtn_trial_tells(const struct dtn_exec_run *run)
{
    return run->trial.is_private ? (unsigned)run->trial.method + 1 : 0;
}

void dtn_trial_hears(struct dtn_exec_run *run, const struct dtn_exec_peer *peer,
                     unsigned told)
{
    struct dtn_exec_trials *trials = &run->exec->trials;

    if (told > 0 && told <= DTN_NMETHODS && run->trial.is_private
        && trials->runs >= trials->tries && peer->tp->ops->fetch
        && peer->rank < run->ctx->world.rank)
        trials->best = (int)told - 1;
}

/* The fastest of the first `n` methods. */
static int trials_best(const struct dtn_exec_trials *trials, int n)
{
    int best = 0;

    for (int i = 1; i < n; i++)
        if (trials->took_ns[i] < trials->took_ns[best])
            best = i;
    return best;
}

/* After a run by the method that is kept.  If other programs use the CPUs, the
 * window waits a time slice for each piece: 8 MiB took a second, and 0.1 s
 * staged.  Then it is not used until the next trials.  If a peer asks for the
 * window, this rank asks for it too, since it would stage in vain.
 */
static void trials_review(struct dtn_exec_trials *trials,
                          const struct dtn_exec_run *run)
{
    const int other = trials_best(trials, DTN_METHOD_WINDOW);

    if (!run->windowed)
        return;
    trials->best = DTN_METHOD_WINDOW;
    if (run->trial.timed_ns != 0
        && (dtn_now_ns() - run->trial.timed_ns - SLICE_NS) / 4
           > trials->took_ns[other])
        trials->best = other;
}

void dtn_trial_end(const struct dtn_exec_run *run)
{
    struct dtn_exec_trials *trials = &run->exec->trials;
    const int method = run->windowed ? DTN_METHOD_WINDOW : run->trial.method;
    const int trial = trials->runs;
    int64_t took;

    if (!run->trial.is_private)
        return;
    trials->runs = (trial + 1) % PERIOD;
    if (trial >= trials->tries) {
        trials_review(trials, run);
        return;
    }
    took = dtn_now_ns() - run->trial.timed_ns;
    if (run->trial.counts && took < trials->took_ns[method])
        trials->took_ns[method] = took;
    if (trial + 1 == trials->tries) {
        trials->best = trials_best(trials, DTN_NMETHODS);
        trials->cycled = true;
    }
}

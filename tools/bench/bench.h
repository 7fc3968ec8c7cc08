/* bench.h - what all parts of dtensor-bench share
 *
 * main.c is all of it in order: options.c reads the command line, launch.c
 * starts ranks, session.c joins the job, sweep.c lists the cases, tests.c says
 * how to run each, flat.c and redistribute.c run them, measure.c times them,
 * and report.c writes results.  Only <dtensor.h>, ../draw, libc and, in
 * json.c and baseline.c, libjansson are used.
 */
#ifndef BENCH_H
#define BENCH_H

#define BENCH_COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BENCH_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Exit codes, the same on all ranks where they can still agree. */
enum bench_exit {
    BENCH_OK = 0,
    BENCH_WRONG = 1,              /* a wrong element, or below the baseline   */
    BENCH_USAGE = 2,              /* command line or cluster file             */
    BENCH_LOST = 3,               /* a peer, a deadline or memory was lost    */
    BENCH_UNREAD = 141            /* stdout has no reader: 128 + SIGPIPE      */
};

#endif

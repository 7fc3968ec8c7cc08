/* dry.h - what a command line would measure */
#ifndef BENCH_DRY_H
#define BENCH_DRY_H

struct bench_options;

/* List it, without starting ranks; an exit code. */
int dry_run(const struct bench_options *opt);

#endif

/* mode.h - the options of dtensor-bench op and of dtensor-bench rng */
#ifndef BENCH_MODE_H
#define BENCH_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An option.  It has a long name only. */
struct mode_row {
    const char *name;             /* without "--"                             */
    const char *arg;              /* its argument; NULL: a flag               */
    const char *help;             /* one line                                 */
};

struct mode {
    const char *name;             /* "op"                                     */
    const struct mode_row *rows;  /* [n]                                      */
    int n;                        /* number of options                        */
    /* Set option `which`.  false: `text` is no argument for it; `why` then has
     * an error, which may be replaced by a better one.
     */
    bool (*set)(int which, const char *text, void *opt, char *why,
                size_t why_size);
};

/* Read all options of argv into *opt; optind is the first word that is none.
 * false: `why` says in a line what is wrong.
 */
bool mode_parse(const struct mode *mode, int argc, char *argv[], void *opt,
                char *why, size_t why_size);

/* Print a line for each option. */
void mode_help(const struct mode *mode, FILE *stream);

/* A whole number from min to max.  false: it is none such. */
bool mode_number(const char *text, int64_t min, int64_t max, int64_t *valuep);

#endif

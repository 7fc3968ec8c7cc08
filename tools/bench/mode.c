/* mode.c - the options of a mode of dtensor-bench, from a table
 *
 * "dtensor-bench op" and "dtensor-bench rng" each have a table of options.
 * getopt_long(), --help and the error of a wrong argument are made from it:
 *
 *     --iters "many": expected N, times that each is measured (30)
 */
#include "tools/bench/mode.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

enum { OPTIONS = 32,              /* the most that a mode has                 */
       FIRST = 1000 };            /* value of the first; no character         */

bool mode_number(const char *text, int64_t min, int64_t max, int64_t *valuep)
{
    char *rest;
    long long value;

    errno = 0;
    value = strtoll(text, &rest, 0);
    if (errno || rest == text || *rest || value < min || value > max)
        return false;
    *valuep = value;
    return true;
}

static bool mode_set(const struct mode *mode, int which, void *opt, char *why,
                     size_t why_size)
{
    const struct mode_row *row = &mode->rows[which];

    if (row->arg)
        snprintf(why, why_size, "--%s \"%s\": expected %s, %s", row->name,
                 optarg, row->arg, row->help);
    return mode->set(which, optarg, opt, why, why_size);
}

bool mode_parse(const struct mode *mode, int argc, char *argv[], void *opt,
                char *why, size_t why_size)
{
    struct option longs[OPTIONS + 1] = { { 0 } };
    int which;

    for (int i = 0; i < mode->n && i < OPTIONS; i++)
        longs[i] = (struct option){
            mode->rows[i].name,
            mode->rows[i].arg ? required_argument : no_argument, NULL, FIRST + i
        };
    opterr = 0;
    while ((which = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (which < FIRST) {
            snprintf(why, why_size, "%s: %s%s", argv[optind - 1],
                     which == ':' ? "needs an argument" : "no such option of ",
                     which == ':' ? "" : mode->name);
            return false;
        }
        if (!mode_set(mode, which - FIRST, opt, why, why_size))
            return false;
    }
    return true;
}

void mode_help(const struct mode *mode, FILE *stream)
{
    char left[40];

    for (int i = 0; i < mode->n; i++) {
        const struct mode_row *row = &mode->rows[i];

        snprintf(left, sizeof left, "--%s%s%s", row->name, row->arg ? " " : "",
                 row->arg ? row->arg : "");
        fprintf(stream, "  %-20s %s\n", left, row->help);
    }
}

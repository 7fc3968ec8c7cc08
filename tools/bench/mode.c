/* mode.c - the options of a mode of dtensor-bench, from a table
 *
 * "dtensor-bench op" and "dtensor-bench rng" each have a table of options.
 * The command line is read by it, --help and the error of a wrong argument are
 * made from it:
 *
 *     --iters "many": expected N, times that each is measured (30)
 */
#include "tools/bench/mode.h"
#include "tools/cli.h"

#include <errno.h>
#include <stdlib.h>

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
    struct cli cli = { .n = 0 };
    char letter[3];
    int row;

    for (int i = 0; i < mode->n; i++)
        cli_add(&cli, mode->rows[i].name, 0, mode->rows[i].arg != NULL);
    while ((row = cli_next(&cli, argc, argv)) >= 0)
        if (!mode_set(mode, row, opt, why, why_size))
            return false;
    if (row == CLI_MISSING)
        snprintf(why, why_size, "%s: needs an argument", argv[optind - 1]);
    if (row == CLI_UNKNOWN)
        cli_advise(&cli, cli_word(&cli, argv, letter), why, why_size);
    return row == CLI_END;
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

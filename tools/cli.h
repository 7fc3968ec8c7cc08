/* cli.h - the options of a command line, from the table of a tool
 *
 *     cli_files();
 *     cli_add(&cli, "shape", 's', true);            for each row of the table
 *     while ((row = cli_next(&cli, argc, argv)) >= 0)
 *         ... row 0 is "shape", with its argument in optarg
 *     if (row != CLI_END) ... an error; else argv[optind] is no option
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum { CLI_MAX = 48 };            /* options of a tool                        */

/* What cli_next() returns instead of a row. */
enum { CLI_END = -1,              /* there is no further option               */
       CLI_MISSING = -2,          /* argv[optind - 1] lacks its argument      */
       CLI_UNKNOWN = -3 };        /* there is no such option                  */

struct cli {
    int n;                        /* options                                  */
    struct option longs[CLI_MAX + 1];    /* for getopt_long()                 */
    int letter[CLI_MAX];          /* of each option; 0: long name only        */
    char letters[2 * CLI_MAX + 2];       /* for getopt_long()                 */
};

/* First of all: a standard descriptor that is closed gets one that can neither
 * be read nor written.  Else the next file or socket would get its number, and
 * what is printed.
 */
void cli_files(void);

/* Add the next row: an option, with an argument or without.  `cli` is zero
 * before the first.  After CLI_MAX options no more are added.
 */
void cli_add(struct cli *cli, const char *name, int letter, bool argument);

int cli_next(const struct cli *cli, int argc, char **argv);

/* After CLI_UNKNOWN: the option as it was typed, "--sharp" or "-x". */
const char *cli_word(const struct cli *cli, char *const argv[],
                     char letter[3]);

/* "--sharp: no such option; did you mean "--shape"?", or that the option takes
 * no value.  Returns buf[size].
 */
char *cli_advise(const struct cli *cli, const char *word, char *buf,
                 size_t size);

#endif

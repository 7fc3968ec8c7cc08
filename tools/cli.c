/* cli.c - the options of a command line, from the table of a tool
 *
 * getopt_long() returns FIRST + i for the long name of row i, and its letter
 * for the letter, if it has one.
 */
#include "tools/cli.h"
#include "dtensor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 256 };             /* no character                             */

void cli_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

void cli_add(struct cli *cli, const char *name, int letter, bool argument)
{
    size_t used = strlen(cli->letters);

    if (cli->n == CLI_MAX)
        return;
    if (used == 0)                /* the tools word the errors themselves     */
        cli->letters[used++] = ':';
    if (letter)
        cli->letters[used++] = (char)letter;
    if (letter && argument)
        cli->letters[used++] = ':';
    cli->letters[used] = '\0';
    cli->letter[cli->n] = letter;
    cli->longs[cli->n] = (struct option){
        name, argument ? required_argument : no_argument, NULL,
        FIRST + cli->n };
    cli->n++;
}

static int row_of(const struct cli *cli, int letter)
{
    for (int i = 0; i < cli->n; i++)
        if (cli->letter[i] == letter)
            return i;
    return CLI_UNKNOWN;
}

int cli_next(const struct cli *cli, int argc, char **argv)
{
    const int value = getopt_long(argc, argv, cli->letters, cli->longs, NULL);

    switch (value) {
    case -1:
        return CLI_END;
    case ':':
        return CLI_MISSING;
    case '?':
        return CLI_UNKNOWN;
    default:
        return value >= FIRST ? value - FIRST : row_of(cli, value);
    }
}

const char *cli_word(const struct cli *cli, char *const argv[],
                     char letter[3])
{
    snprintf(letter, 3, "-%c", optopt);
    return optopt > 0 && optopt < FIRST && row_of(cli, optopt) < 0
         ? letter : argv[optind - 1];
}

char *cli_advise(const struct cli *cli, const char *word, char *buf,
                 size_t size)
{
    const char *known[CLI_MAX + 1] = { NULL };
    char name[64], advice[160];
    const char *quote;

    if (optopt >= FIRST) {
        snprintf(buf, size, "%s: this option takes no value", word);
        return buf;
    }
    snprintf(buf, size, "%s: no such option", word);
    if (strncmp(word, "--", 2) != 0)
        return buf;
    for (int i = 0; i < cli->n; i++)
        known[i] = cli->longs[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    dtensor_advise(name, known, NULL, advice, sizeof advice);
    quote = strchr(advice, '"');
    if (strncmp(advice, "did you mean", 12) == 0 && quote)
        snprintf(buf, size, "%s: no such option; did you mean \"--%s", word,
                 quote + 1);
    return buf;
}

/* comma.c - a locale with a decimal comma, for what reads numbers */
#include "tests/support/comma.h"
#include "tests/support/tap.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[40];

void comma_make(const char *claim)
{
    char command[200];

    snprintf(folder, sizeof folder, "./comma.%d", (int)getpid());
    snprintf(command, sizeof command, "mkdir -p %s && localedef -i de_DE -f "
             "ISO-8859-1 %s/comma >/dev/null 2>&1", folder, folder);
    if (system(command) != 0)
        skip(claim, "no localedef");
    setenv("LOCPATH", folder, 1);
}

bool comma_set(void)
{
    return setlocale(LC_NUMERIC, "comma") && strtod("0,5", NULL) > 0;
}

void comma_unset(void)
{
    setlocale(LC_NUMERIC, "C");
}

void comma_remove(void)
{
    char command[80];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        note("%s is left", folder);
}

/* launcher.c - environments of launchers, and the cluster files they go with */
#include "base/compiler.h"
#include "tests/cluster/launcher.h"
#include "tests/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static char folder[] = "/tmp/dtn_launcher.XXXXXX";

static const struct file {
    const char *name;
    const char *nodes;            /* what follows [cluster]                   */
    int world_size;
} files[] = {
    { "gpu.ini", "[nodes \"a\"]\nhosts = n[0-1]\nranks = 4\n", 8 },
    { "pair.ini", "[nodes \"a\"]\nhosts = n[0-1]\nranks = 2\n", 4 },
    { "flat.ini", "[nodes \"a\"]\nhosts = n[0-3]\nranks = 1\n", 4 },
    { "back.ini", "[nodes \"a\"]\nhosts = n[3,1]\nranks = 2\n", 4 },
    { "far.ini", "[nodes \"a\"]\nhosts = n[0-1].cluster\nranks = 2\n", 4 },
    { "here.ini", "[nodes \"a\"]\nhosts = localhost\nranks = 4\n", 4 },
    { "one.ini", "[nodes \"a\"]\nhosts = n5\nranks = 1\n", 1 },
    { "uneven.ini", "[nodes \"a\"]\nhosts = n0\nranks = 3\n"
      "[nodes \"b\"]\nhosts = n1\nranks = 1\n", 4 },
    { "step.ini", "[nodes \"a\"]\nhosts = n[0-1]\nranks = 3\n"
      "[nodes \"b\"]\nhosts = n2\nranks = 1\n", 7 },
};

bool files_write(void)
{
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return false;
    for (size_t i = 0; i < DTN_COUNT(files); i++) {
        FILE *f = fopen(files[i].name, "w");

        fprintf(f, "[cluster]\nversion = 1\nname = t\n%s[mesh \"world\"]\n"
                "dims = world=%d\n", files[i].nodes, files[i].world_size);
        fclose(f);
    }
    return true;
}

void files_remove(void)
{
    for (size_t i = 0; i < DTN_COUNT(files); i++)
        unlink(files[i].name);
    if (rmdir(folder) != 0)
        note("%s is left", folder);
}

void environment_set(const char *text)
{
    char copy[1000], name[64], *save = NULL;
    char **p = environ;

    while (*p) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*p, "="), *p);
        if (strncmp(name, "DTN_", 4) == 0 || strncmp(name, "SLURM", 5) == 0)
            unsetenv(name);
        else
            p++;
    }
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');

        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

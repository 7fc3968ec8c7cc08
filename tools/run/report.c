/* report.c - the file of --json: the hosts that a failed job blames
 *
 * Ranks that use the library write it when a call fails, because DTN_REPORT
 * names it: they know which rank is lost, and how.  If no rank has written it,
 * for example because a rank crashed before it joined, the launcher writes it
 * in the same form: the rank that failed first, its exit code or signal, and
 * this host.
 */
#include "tools/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ranks may change their directory. */
static bool report_path(const char *path, char *buf, size_t size)
{
    char here[PATH_MAX];

    if (*path == '/')
        return snprintf(buf, size, "%s", path) < (int)size;
    return getcwd(here, sizeof here)
        && snprintf(buf, size, "%s/%s", here, path) < (int)size;
}

bool run_report_begin(const struct run_options *options)
{
    char path[PATH_MAX];
    int fd;

    if (!options->json)
        return true;
    if (!report_path(options->json, path, sizeof path)
        || setenv("DTN_REPORT", path, 1) != 0)
        return false;
    fd = open(path, O_WRONLY | O_CREAT, 0644);    /* can ranks make it? */
    if (fd >= 0)
        close(fd);
    return fd >= 0 && unlink(path) == 0;
}

/* What a JSON string may have as it is. */
static void report_host(char name[256])
{
    const char *given = getenv("DTN_HOST");

    memset(name, 0, 256);
    if (given)
        snprintf(name, 256, "%s", given);
    else if (gethostname(name, 255) != 0)
        strcpy(name, "localhost");
    for (char *c = name; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ')
            *c = '?';
}

static void report_write(int fd, const struct run_cause *cause)
{
    const bool killed = WIFSIGNALED(cause->status);
    const char *job = getenv("DTN_JOB");
    char host[256];

    report_host(host);
    dprintf(fd, "{\"schema\": 1, \"job\": \"%s\", \"error\": \"%s %d\", "
            "\"reason\": \"%s\", \"rank\": %d,\n \"suspects\": [", job ? job : "",
            killed ? "signal" : "exit",
            killed ? WTERMSIG(cause->status) : WEXITSTATUS(cause->status),
            killed ? "died" : "failed", cause->rank);
    if (killed)
        dprintf(fd, "{\"host\": \"%s\", \"ranks\": [%d]}", host, cause->rank);
    dprintf(fd, "],\n \"told_by\": -1, \"text\": \"rank %d (pid %d) %s %d\"}\n",
            cause->rank, (int)cause->pid,
            killed ? "was killed by signal" : "exited with code",
            killed ? WTERMSIG(cause->status) : WEXITSTATUS(cause->status));
}

void run_report_end(const struct run *run)
{
    const char *path = getenv("DTN_REPORT");
    int fd;

    if (!run->options->json || !path)
        return;
    if (run->code == 0)
        unlink(path);
    if (run->code == 0 || !run->cause.known)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    report_write(fd, &run->cause);
    close(fd);
}

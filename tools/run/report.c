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
#include <sys/stat.h>
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

/* Remove an old report.  A device or a FIFO is not ours to remove. */
static const char *report_clear(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC,
                        0644);
    struct stat file;
    bool regular;

    if (fd < 0)
        return strerror(errno);
    regular = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    close(fd);
    if (!regular)
        return "it is no regular file";
    return unlink(path) == 0 ? NULL : strerror(errno);
}

const char *run_report_begin(const struct run_options *options)
{
    char path[PATH_MAX];

    if (!options->json)
        return NULL;
    if (!report_path(options->json, path, sizeof path))
        return "its path is too long";
    return setenv("DTN_REPORT", path, 1) == 0 ? report_clear(path)
                                              : strerror(errno);
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
        if (*c == '"' || *c == '\\' || *c < ' ' || *c > '~')
            *c = '?';
}

static char *report_text(const struct run_cause *cause, char *buf, size_t size)
{
    const bool killed = WIFSIGNALED(cause->status);
    const int number = killed ? WTERMSIG(cause->status)
                              : WEXITSTATUS(cause->status);
    const char *job = getenv("DTN_JOB");
    char host[256], suspect[300] = "";

    report_host(host);
    if (killed)
        snprintf(suspect, sizeof suspect, "{\"host\": \"%s\", \"ranks\": [%d]}",
                 host, cause->rank);
    snprintf(buf, size, "{\"schema\": 1, \"job\": \"%s\", \"error\": \"%s %d\", "
             "\"reason\": \"%s\", \"rank\": %d,\n \"suspects\": [%s],\n "
             "\"told_by\": -1, \"text\": \"rank %d (pid %d) %s %d\"}\n",
             job ? job : "", killed ? "signal" : "exit", number,
             killed ? "died" : "failed", cause->rank, suspect, cause->rank,
             (int)cause->pid, killed ? "was killed by signal"
             : "exited with code", number);
    return buf;
}

/* EEXIST: a rank has written it. */
static void report_write(const char *path, const char *text)
{
    const ssize_t size = (ssize_t)strlen(text);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ssize_t n = -1;

    if (fd < 0 && errno == EEXIST)
        return;
    if (fd >= 0)
        n = write(fd, text, (size_t)size);
    if (n != size)
        dprintf(2, "dtensor-run: --json %s: cannot write it: %s\n", path,
                strerror(n < 0 ? errno : ENOSPC));
    if (fd >= 0 && n != size)
        unlink(path);
    if (fd >= 0)
        close(fd);
}

void run_report_end(const struct run *run)
{
    const char *path = getenv("DTN_REPORT");
    char text[1000];

    if (!run->options->json || !path)
        return;
    if (run->code == 0)
        unlink(path);
    else if (run->cause.known)
        report_write(path, report_text(&run->cause, text, sizeof text));
}

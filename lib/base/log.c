/* log.c - silent unless asked
 *
 * DTN_LOG=stall|warn|info|debug makes a context print its choices and their
 * reasons to stderr.  Errors that are returned are not logged.  An unknown word
 * counts as warn, so that the warning about the word itself is printed.
 *
 * A job never waits for the reader of its log.  If a pipe or socket is full, or
 * a terminal is stopped, a line is dropped; the next line that is written
 * reports how many were dropped.  A test for room before the write does not
 * help, because other ranks write to the same pipe.  O_NONBLOCK on stderr would
 * affect all processes that share it.  So each line opens the pipe again, which
 * gives an open file description of our own.
 */
#include "base/log.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The level of a word, or -1. */
static int log_level(const char *word)
{
    static const char *const names[] = { "off", "stall", "warn", "info",
                                        "debug" };

    for (size_t i = 0; i < DTN_COUNT(names); i++)
        if (strcmp(word, names[i]) == 0)
            return (int)i;
    return -1;
}

static const char *log_word(void)
{
    const char *word = getenv("DTN_LOG");

    return word && *word ? word : "off";
}

void dtn_log_init(struct dtn_log *log)
{
    int level = log_level(log_word());

    log->level = level < 0 ? DTN_LOG_WARN : (enum dtn_log_level)level;
    log->rank = -1;
    log->dropped = 0;
    log->stream = stderr;
}

void dtn_log_check(struct dtn_log *log)
{
    if (log->rank <= 0 && log_level(log_word()) < 0)
        dtn_log(log, DTN_LOG_WARN, "log: DTN_LOG is \"%s\"; expected off, stall, "
                "warn, info or debug (warn is used)", log_word());
}

/* Write a line without waiting; false: there was no room.  Files never wait. */
static bool log_write(FILE *stream, const char *line, size_t size)
{
    const int fd = fileno(stream);
    struct stat stat;
    char path[40];
    ssize_t n;
    int own;

    if (fd < 0 || fstat(fd, &stat) != 0 ||
        (!S_ISFIFO(stat.st_mode) && !S_ISSOCK(stat.st_mode) && !isatty(fd)))
        return fwrite(line, 1, size, stream) == size;
    if (S_ISSOCK(stat.st_mode))
        return send(fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) {                /* of another user, or no /proc: try        */
        struct pollfd room = { .fd = fd, .events = POLLOUT };

        return poll(&room, 1, 0) > 0 && write(fd, line, size) >= 0;
    }
    n = write(own, line, size);
    close(own);
    return n >= 0;
}

void dtn_log(struct dtn_log *log, enum dtn_log_level level,
             const char *fmt, ...)
{
    char who[32] = "dtensor:", dropped[48] = "", text[1024], line[1152];
    int saved = errno, size;
    va_list ap;

    if (level > log->level)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (log->rank >= 0)
        snprintf(who, sizeof who, "dtensor[rank %d]", log->rank);
    if (log->dropped > 0)
        snprintf(dropped, sizeof dropped, "(%u lines were dropped) ",
                 log->dropped);
    size = snprintf(line, sizeof line, "%s %s%s\n", who, dropped, text);
    if (log_write(log->stream, line, (size_t)size))
        log->dropped = 0;
    else
        log->dropped++;
    errno = saved;
}

/* output.c - the lines of many ranks on one terminal
 *
 * With -l each rank writes into its own pipes, and the output is passed on line
 * by line: "step 1\nst" of rank 3 becomes "[3] step 1\n" now, and "st" waits
 * for its newline.  If none comes, one is added when the rank ends.  Lines of
 * different ranks are never mixed.  A line longer than RUN_LINE_MAX bytes is
 * broken there.
 */
#include "tools/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_LINE_MAX 65536

bool run_output_open(struct run *run, int rank, int ends[2])
{
    for (int i = 0; i < 2; i++) {
        struct run_stream *stream = &run->streams[2 * rank + i];
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) != 0)
            return false;
        ends[i] = fds[1];
        stream->fd = fds[0];
        stream->rank = rank;
        stream->target = i + 1;
        stream->line = malloc(RUN_LINE_MAX);
        if (!stream->line || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

static void stream_close(struct run_stream *stream)
{
    close(stream->fd);
    stream->fd = -1;
    free(stream->line);
    stream->line = NULL;
}

/* A full disk must not pass for success.  A reader that has ended is no error:
 * then the writers get SIGPIPE.
 */
static void output_lost(struct run *run)
{
    if (errno == EPIPE || run->lost)
        return;
    run->lost = true;
    dprintf(2, "dtensor-run: cannot write the output of the ranks: %s\n",
            strerror(errno));
}

/* Write everything, in pieces that a pipe takes whole, and handle signals while
 * the reader is slow.  False: it cannot be written, or the user has ended
 * the job and the grace time is over.
 */
static bool write_all(struct run *run, int fd, const char *data, size_t size)
{
    struct pollfd polls[2] = { run->polls[0], { .fd = fd, .events = POLLOUT } };
    ssize_t n;

    while (size > 0) {
        run_wait(run, polls, 2);
        if (polls[1].revents == 0 && run->told && run->killing)
            return false;
        if (polls[1].revents == 0)
            continue;
        n = write(fd, data, size < PIPE_BUF ? size : PIPE_BUF);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            output_lost(run);
            return false;
        }
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return true;
}

/* What is about to be written. */
struct out {
    struct run *run;
    int fd;
    size_t used;
    char data[8192];
};

static bool out_flush(struct out *out)
{
    size_t size = out->used;

    out->used = 0;
    return write_all(out->run, out->fd, out->data, size);
}

static bool out_add(struct out *out, const char *data, size_t size)
{
    while (size > 0) {
        size_t room = sizeof out->data - out->used;
        size_t n = size < room ? size : room;

        memcpy(out->data + out->used, data, n);
        out->used += n;
        data += n;
        size -= n;
        if (out->used == sizeof out->data && !out_flush(out))
            return false;
    }
    return true;
}

/* Write `size` bytes of whole lines, each with its label. */
static bool lines_write(struct run *run, const struct run_stream *stream,
                        const char *lines, size_t size)
{
    struct out out = { .run = run, .fd = stream->target };
    const char *end = lines + size, *next;
    char label[16];
    int label_size = snprintf(label, sizeof label, "[%d] ", stream->rank);

    for (; lines < end; lines = next) {
        next = memchr(lines, '\n', (size_t)(end - lines));
        next = next ? next + 1 : end;
        if (!out_add(&out, label, (size_t)label_size) ||
            !out_add(&out, lines, (size_t)(next - lines)))
            return false;
    }
    return out_flush(&out);
}

/* Write the whole lines of what is held, or with `all` the rest as one. */
static bool stream_flush(struct run *run, struct run_stream *stream, bool all)
{
    const char *last = memrchr(stream->line, '\n', stream->used);
    size_t size = last ? (size_t)(last + 1 - stream->line) : 0;

    if (all && size < stream->used) {
        stream->line[stream->used++] = '\n';
        size = stream->used;
    }
    if (size > 0 && !lines_write(run, stream, stream->line, size))
        return false;
    stream->used -= size;
    memmove(stream->line, stream->line + size, stream->used);
    return true;
}

/* When nobody reads our output any more the pipe is closed, and its writer gets
 * the SIGPIPE it would have had without us.
 */
bool run_output_read(struct run *run, struct run_stream *stream)
{
    size_t room = RUN_LINE_MAX - 1 - stream->used;
    ssize_t n = read(stream->fd, stream->line + stream->used, room);
    bool good;

    if (n < 0)
        return false;
    stream->used += (size_t)n;
    good = stream_flush(run, stream, n == 0);
    if (good && stream->used == RUN_LINE_MAX - 1)
        good = stream_flush(run, stream, true);
    if (good && n > 0)
        return true;
    stream_close(stream);
    return false;
}

/* A descriptor that has left this family of processes keeps a pipe open with
 * nobody to write: then there is no end, but also nothing more to read.
 */
void run_output_finish(struct run *run)
{
    for (int i = 0; i < 2 * run->options->nranks; i++) {
        struct run_stream *stream = &run->streams[i];

        if (stream->fd < 0)
            continue;
        while (run_output_read(run, stream))
            ;
        if (stream->fd < 0)
            continue;
        stream_flush(run, stream, true);
        stream_close(stream);
    }
}

/* seat.c - a rank is one process
 *
 * Rank 1 of a job calls system("other-program").  That program inherits
 * DTN_RANK=1 and would wait for ranks that nobody starts.  So each rank keeps a
 * socket, while it is in the job, whose abstract name has the job and the rank.
 * A process that finds the name taken by one that it descends from is such a
 * program.  Only that is an error: the socket of a rank that was killed may
 * outlive it, and a rank that was started twice is found by its leader.
 */
#include "job/seat.h"
#include "base/error.h"
#include "cluster/canonical.h"
#include "cluster/world.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANCESTORS = 256 };         /* that are looked at                       */

/* The parent of a process; 0: unknown. */
static long seat_parent(long pid)
{
    char path[40], text[256];
    const char *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    end = strrchr(text, ')');     /* "17 (name) S 16 ...": a name may have ) */
    return end && strlen(end) > 4 ? atol(end + 4) : 0;
}

static bool seat_descends(long pid)
{
    long above = (long)getppid();

    for (int i = 0; i < ANCESTORS && above > 1 && above != pid; i++)
        above = seat_parent(above);
    return pid > 1 && above == pid;
}

/* The process that listens there; 0: unknown. */
static long seat_holder(const struct sockaddr_un *addr, socklen_t len)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          0);
    struct ucred cred = { .pid = 0 };
    socklen_t size = sizeof cred;

    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)addr, len) != 0
        || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        cred.pid = 0;
    close(fd);
    return (long)cred.pid;
}

/* The abstract name; its length. */
static socklen_t seat_name(const struct dtn_world *world,
                           struct sockaddr_un *addr)
{
    char *name = addr->sun_path + 1;
    const size_t room = sizeof addr->sun_path - 1;

    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(name, room, "dtensor-rank/%u/%.40s/%016llx/%d",
             (unsigned)geteuid(), world->job,
             (unsigned long long)dtn_digest(world->job), world->rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1
                       + strlen(name));
}

int dtn_seat_take(const struct dtn_world *world, int *fdp,
                  struct dtensor_error *err)
{
    struct sockaddr_un addr;
    const socklen_t len = seat_name(world, &addr);
    long holder;
    int fd;

    *fdp = -1;
    if (world->size == 1)
        return 0;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (bind(fd, (struct sockaddr *)&addr, len) == 0
        && listen(fd, SOMAXCONN) == 0) {
        *fdp = fd;
        return 0;
    }
    close(fd);
    holder = seat_holder(&addr, len);
    if (!seat_descends(holder))
        return 0;
    return dtn_fail_rank(err, DTENSOR_ECONF, world->rank, "boot: rank %d of "
                         "job %s is process %ld, which has started this "
                         "process %ld (a program of its own needs its own "
                         "launcher, such as dtensor-run, or another DTN_JOB in "
                         "all ranks that start it)", world->rank, world->job,
                         holder, (long)getpid());
}

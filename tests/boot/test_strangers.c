/* test_strangers.c - a job starts among a thousand strangers at its port
 *
 * Some are silent, some send a byte at a time, some send nonsense, some close
 * at once as port scanners do.  The start takes hardly longer and never fails.
 *
 * Without this test, a port scan during a start could delay it by seconds, or
 * end it for lack of descriptors.
 */
#include "dtensor.h"
#include "tests/boot/boot_job.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 1000, SLOW = 20 };

static int fds[CROWD];
static int reached;               /* strangers that were connected            */

static void stranger_says(int fd, int kind)
{
    unsigned char noise[600];

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 131 + 7);
    if (kind == 1)
        send(fd, "D", 1, MSG_NOSIGNAL);
    else if (kind == 2)
        send(fd, noise, sizeof noise, MSG_NOSIGNAL);
}

static void crowd_leaves(void)
{
    for (int i = 0; i < reached; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    reached = 0;
}

/* A thousand come before the last rank does; twenty of them go on to send a
 * byte at a time.
 */
static void crowd_comes(void)
{
    static const char knock[] = "DTNB\3\0\13\0\0\0\0\0\0\0\0\0\100\0\0\0slowly";

    crowd_leaves();
    for (reached = 0; reached < CROWD; reached++) {
        fds[reached] = knock_tcp();
        if (fds[reached] < 0)
            return;
        stranger_says(fds[reached], reached % 4);
        if (reached % 4 == 3) {
            close(fds[reached]);
            fds[reached] = -1;
        }
    }
    for (size_t i = 0; i < sizeof knock; i++) {
        for (int k = CROWD - 4 * SLOW; k < CROWD; k += 4)
            send(fds[k], knock + i, 1, MSG_NOSIGNAL);
        usleep(10000);
    }
}

int main(void)
{
    struct rlimit limit;
    struct boot_job job;
    int64_t alone, among;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < CROWD + 100)
        return skip_all("ulimit -n is too small for a thousand strangers");
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    job_init();
    job = job_even(2, 2);
    job.timeout_ms = 30000;
    alone = job_joins_ns(&job, NULL);
    among = job_joins_ns(&job, crowd_comes);
    note("alone %.2f ms, among %d strangers %.2f ms", (double)alone / 1e6,
         reached, (double)among / 1e6);
    ok(alone > 0 && among > 0 && reached > 0, "five starts among strangers, "
       "none fails");
    /* A tick of the scheduler counts more than the work: 50 ms are allowed. */
    ok(among < alone + alone / 2 + 50000000, "the ranks that come last join "
       "hardly later");
    return done();
}

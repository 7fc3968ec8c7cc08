/* test_listeners.c - where the ranks of a job listen
 *
 * Two hosts of two ranks have addresses of their own on this machine.  Each
 * rank looks at all sockets of its process that listen for TCP: for joining,
 * for data and, after joining, for ranks that are cut off.  All are at the
 * address of its host.
 *
 * Without this test, a socket could listen at all addresses of a host, also at
 * those that face strangers.
 */
#include "dtensor.h"
#include "tests/support/hosts.h"
#include "tests/support/world.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, LISTENS = 0x0a, LOOPBACK_2 = 0x0200007f };

static const struct hosts hosts = { .n = 2, .ranks = { 2, 2 } };

/* Is this socket one of this process? */
static bool socket_is_mine(unsigned long inode)
{
    char name[300], wanted[64], link[64];
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    bool mine = false;

    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    while (dir && !mine && (entry = readdir(dir))) {
        ssize_t n;

        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        n = readlink(name, link, sizeof link - 1);
        mine = n > 0 && strncmp(link, wanted, strlen(wanted)) == 0;
    }
    if (dir)
        closedir(dir);
    return mine;
}

/* How many sockets of this process listen in `table`, and how many of them at
 * another address?
 */
static int count_listeners(const char *table, unsigned address, int *elsewhere)
{
    char line[512], at[40];
    FILE *file = fopen(table, "re");
    unsigned long inode;
    unsigned state;
    int n = 0;

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*s %36[0-9A-F]:%*x %*s %x %*s %*s %*s %*s %*s %lu",
                   at, &state, &inode) != 3
            || state != LISTENS || !socket_is_mine(inode))
            continue;
        n++;
        *elsewhere += strlen(at) != 8 || strtoul(at, NULL, 16) != address;
    }
    if (file)
        fclose(file);
    return n;
}

static void rank_main(int rank, int n, void *arg)
{
    const unsigned address = LOOPBACK_2 + ((unsigned)rank / 2 << 24);
    struct world world;
    int elsewhere = 0, listeners;

    (void)n;
    (void)arg;
    hosts_be(&hosts, rank);
    world_open(&world);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    listeners = count_listeners("/proc/net/tcp", address, &elsewhere)
              + count_listeners("/proc/net/tcp6", address, &elsewhere);
    need(listeners >= 2, "%d sockets listen, for data and to hear of losses",
         listeners);
    need(elsewhere == 0, "%d of %d listen elsewhere", elsewhere, listeners);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

int main(void)
{
    char path[64];

    snprintf(path, sizeof path, "listeners-%d.ini", (int)getpid());
    hosts_write(&hosts, path, "", "");
    setenv("DTN_CLUSTER", path, 1);
    ok(ranks_run(RANKS, 20, rank_main, NULL, NULL) == 0, "all sockets that "
       "listen do so at the address of their host");
    unlink(path);
    return done();
}

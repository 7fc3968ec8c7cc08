/* listen.c - the sockets at which a leader listens
 *
 * A leader listens on an abstract AF_UNIX socket for the ranks of its host, and
 * on TCP for the leaders of its child hosts.  If another job has the port, it
 * retries for 0.2 to 0.8 s, a time that depends on the name of the job.
 */
#include "boot/listen.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/owner.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "transport/loopback.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int listen_unix(struct dtn_boot *boot, bool *taken,
                              struct dtensor_error *err)
{
    struct sockaddr_un addr;
    socklen_t len = dtn_boot_socket_unix_addr(boot, &addr);
    int fd = dtn_boot_socket_open(boot, AF_UNIX, err);
    int saved;

    if (fd < 0)
        return DTENSOR_ESYS;
    if (bind(fd, (struct sockaddr *)&addr, len) == 0 &&
        listen(fd, SOMAXCONN) == 0) {
        boot->unix_fd = fd;
        return 0;
    }
    saved = errno;
    close(fd);
    *taken = saved == EADDRINUSE;
    if (*taken)
        return 0;
    return dtn_fail_sys(err, saved, "boot: cannot listen on the abstract "
                        "socket %s: %m", boot->name);
}

/* Does the name of some other host lead out of this machine? */
static bool listen_others_far(const struct dtn_boot *boot)
{
    const struct dtn_host *other = boot->hosts[boot->host == 0 ? 1 : 0];
    struct dtensor_error ignored;
    struct dtn_boot_addrs at;

    return dtn_boot_socket_resolve(boot, other->first_rank, &at, &ignored) == 0
        && at.n > 0 && !dtn_is_loopback((const void *)&at.addr[0].u);
}

/* The addresses at which this host can listen for others: none that only lead
 * back to this machine, unless those of all hosts do.
 */
static int listen_addresses(const struct dtn_boot *boot,
                            struct dtn_boot_addrs *own,
                            struct dtensor_error *err)
{
    const char *name = boot->hosts[boot->host]->address;
    char text[INET6_ADDRSTRLEN] = "?";
    int rc = dtn_boot_socket_resolve(boot, boot->rank, own, err), kept = 0;

    for (int i = 0; rc == 0 && boot->nhosts > 1 && i < own->n; i++)
        if (!dtn_is_loopback((const void *)&own->addr[i].u))
            own->addr[kept++] = own->addr[i];
    if (kept > 0)
        own->n = kept;
    if (rc != 0 || kept > 0 || boot->nhosts == 1 || !listen_others_far(boot))
        return rc;
    getnameinfo((const void *)&own->addr[0].u, own->addr[0].len, text,
                sizeof text, NULL, 0, NI_NUMERICHOST);
    return dtn_fail(err, DTENSOR_ESYS, "boot: %s, the address of this host, is "
                    "%s, which no other host reaches (take the name out of "
                    "that line of /etc/hosts, or give IP addresses as [nodes] "
                    "addresses)", name, text);
}

/* Fail with the reason why the port is not available. */
static int listen_fail_port(const struct dtn_boot *boot, int sys_errno,
                            const char *owner, struct dtensor_error *err)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int port = boot->port;

    if (sys_errno == EADDRINUSE && *owner)
        return dtn_fail_sys(err, sys_errno, "boot: port %d on %s is in use: %s",
                            port, host->address, owner);
    if (sys_errno == EADDRINUSE)
        return dtn_fail_sys(err, sys_errno, "boot: port %d on %s is in use "
                            "(another job? set [transport] port)", port,
                            host->address);
    if (sys_errno == EADDRNOTAVAIL)
        return dtn_fail_sys(err, sys_errno, "boot: %s, the address of host %s,"
                            " is not an address of the machine that rank %d "
                            "runs on (give [nodes] address, or start the rank "
                            "on its host)", host->address, host->name,
                            boot->rank);
    return dtn_fail_sys(err, sys_errno, "boot: cannot listen on port %d of %s "
                        "(host %s): %m", port, host->address, host->name);
}

/* Who connects here speaks first, so the system keeps connections to itself
 * until they have said something: silent ones cost this rank nothing.  What is
 * accepted inherits TCP_NODELAY.
 */
static void listen_tune(int fd)
{
    const int on = 1, silent_s = (int)(DTN_BOOT_HANDSHAKE_NS / 1000000000);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent_s, sizeof silent_s);
}

/* Returns 0, errno, or -1: no socket was made, see *err. */
static int listen_at(const struct dtn_boot *boot,
                     const struct dtn_boot_addr *at, int *fdp,
                     struct dtensor_error *err)
{
    int fd = dtn_boot_socket_open(boot, at->family, err), saved;

    if (fd < 0)
        return -1;
    listen_tune(fd);
    if (bind(fd, (const struct sockaddr *)&at->u, at->len) == 0 &&
        listen(fd, SOMAXCONN) == 0) {
        *fdp = fd;
        return 0;
    }
    saved = errno;
    close(fd);
    return saved;
}

/* Listen at the first address that can be bound.  If none can, *at is the one
 * that failed.
 */
static int listen_any(struct dtn_boot *boot,
                             const struct dtn_boot_addrs *addrs,
                             const struct dtn_boot_addr **at,
                             struct dtensor_error *err)
{
    int failed = EADDRNOTAVAIL, got;

    for (int i = 0; i < addrs->n; i++) {
        got = listen_at(boot, &addrs->addr[i], &boot->tcp_fd, err);
        if (got <= 0)
            return got;
        if (i == 0 || got != EADDRNOTAVAIL) {
            failed = got;
            *at = &addrs->addr[i];
        }
    }
    return failed;
}

static int listen_tcp(struct dtn_boot *boot, struct dtensor_error *err)
{
    int64_t until_ns = dtn_now_ns() + DTN_BOOT_OTHER_NS / 5 +
        (int64_t)(dtn_digest(boot->job) % (DTN_BOOT_OTHER_NS * 3 / 5));
    const struct timespec pause = { 0, 5 * DTN_BOOT_MS };
    const struct dtn_boot_addr *at = NULL;
    struct dtn_boot_addrs addrs;
    enum dtn_boot_owner owner = DTN_OWNER_STRANGER;
    char words[400] = "";
    int rc = listen_addresses(boot, &addrs, err), got;

    if (rc != 0)
        return rc;
    got = listen_any(boot, &addrs, &at, err);
    while (got == EADDRINUSE && dtn_now_ns() < until_ns) {
        owner = dtn_boot_owner_find(boot, at, words, sizeof words);
        if (owner == DTN_OWNER_OTHER_JOB)
            nanosleep(&pause, NULL);
        got = listen_any(boot, &addrs, &at, err);
        if (owner != DTN_OWNER_OTHER_JOB)
            break;
    }
    if (got <= 0)
        return got == 0 ? 0 : DTENSOR_ESYS;
    return listen_fail_port(boot, got, words, err);
}

void dtn_boot_relisten(struct dtn_boot *boot)
{
    const struct dtn_boot_addr *at;
    struct dtensor_error ignored;
    struct dtn_boot_addrs addrs;
    bool taken;

    if (boot->rank != dtn_boot_tree_leader(boot, boot->rank))
        return;
    if (boot->unix_fd < 0 && boot->hosts[boot->host]->nranks > 1)
        listen_unix(boot, &taken, &ignored);
    if (boot->tcp_fd < 0 && dtn_boot_tree_child_hosts(boot) > 0 &&
        listen_addresses(boot, &addrs, &ignored) == 0)
        listen_any(boot, &addrs, &at, &ignored);
}

static uint16_t listen_port(int fd)
{
    struct sockaddr_in6 at = { 0 };   /* the port is where AF_INET has it     */
    socklen_t size = sizeof at;

    return getsockname(fd, (struct sockaddr *)&at, &size) == 0
         ? ntohs(at.sin6_port) : 0;
}

int dtn_boot_listen_free(const struct dtn_boot *boot, uint16_t *port)
{
    struct dtensor_error ignored;
    struct dtn_boot_addrs at;
    int fd = -1;

    if (listen_addresses(boot, &at, &ignored) != 0)
        return -1;
    dtn_boot_socket_set_port(&at, 0);
    for (int i = 0; i < at.n && fd < 0; i++)
        if (listen_at(boot, &at.addr[i], &fd, &ignored) != 0)
            fd = -1;
    *port = fd >= 0 ? listen_port(fd) : 0;
    return fd;
}

/* Do two hosts have an address in common? */
static bool listen_shared(const struct dtn_boot_addrs *a,
                          const struct dtn_boot_addrs *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++)
            if (a->addr[i].len == b->addr[k].len &&
                memcmp(&a->addr[i].u, &b->addr[k].u, a->addr[i].len) == 0)
                return true;
    return false;
}

/* No rank needs to connect here, so a failure to listen is not an error.  If
 * one machine runs both hosts, the parent binds the port first.
 */
static void listen_leaf(struct dtn_boot *boot)
{
    int up = dtn_boot_tree_parent(boot, boot->rank);
    struct dtn_boot_addrs own, parent;
    struct dtensor_error ignored;
    const struct dtn_boot_addr *at;

    if (listen_addresses(boot, &own, &ignored) == 0 &&
        dtn_boot_socket_resolve(boot, up, &parent, &ignored) == 0 &&
        !listen_shared(&own, &parent))
        listen_any(boot, &own, &at, &ignored);
}

/* Reserve a descriptor.  A rank without free descriptors needs it to send its
 * error to ranks that connect.
 */
static int listen_spare(struct dtn_boot *boot, struct dtensor_error *err)
{
    int listener = boot->unix_fd >= 0 ? boot->unix_fd : boot->tcp_fd;

    if (listener < 0)
        return 0;
    boot->spare_fd = fcntl(listener, F_DUPFD_CLOEXEC, 0);
    if (boot->spare_fd < 0)
        return dtn_boot_fd_limit(boot, err);
    return 0;
}

int dtn_boot_listen(struct dtn_boot *boot, bool *taken,
                           struct dtensor_error *err)
{
    int rc = 0;

    *taken = false;
    if (boot->rank != dtn_boot_tree_leader(boot, boot->rank))
        return 0;
    if (boot->hosts[boot->host]->nranks > 1)
        rc = listen_unix(boot, taken, err);
    if (rc == 0 && !*taken && dtn_boot_tree_child_hosts(boot) > 0)
        rc = listen_tcp(boot, err);
    else if (rc == 0 && !*taken && boot->nhosts > 1)
        listen_leaf(boot);
    if (rc == 0 && !*taken)
        rc = listen_spare(boot, err);
    return rc;
}

void dtn_boot_unlisten(struct dtn_boot *boot)
{
    dtn_boot_socket_close(&boot->unix_fd);
    dtn_boot_socket_close(&boot->tcp_fd);
    dtn_boot_socket_close(&boot->spare_fd);
}

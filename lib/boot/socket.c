/* socket.c - names, addresses, accepting and connecting
 *
 * Ranks of one host use abstract AF_UNIX sockets, which leave no file behind.
 * Any user may take such a name, so both sides ask the kernel for the uid of
 * the other side.  The name has the uid, the job, and a digest of job and host,
 * "dtensor/1000/4711.0/1f0e...".  So two jobs, or two virtual hosts on one
 * kernel, have different names.
 *
 * Hosts use TCP, only on the address of the cluster file.  Names are looked up
 * without AI_ADDRCONFIG: on a machine that has only a loopback interface, that
 * flag finds no address, not even 127.0.0.1.
 */
#include "boot/socket.h"
#include "base/error.h"
#include "base/pidfd.h"
#include "base/wait.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_FLAGS (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

void dtn_boot_socket_name(struct dtn_boot *boot, const char *job)
{
    char text[DTN_HOST_MAX + 96];

    snprintf(boot->job, sizeof boot->job, "%s", job);
    snprintf(text, sizeof text, "%s\n%s", job, boot->hosts[boot->host]->name);
    snprintf(boot->name, sizeof boot->name, "dtensor/%u/%.40s/%016llx",
             (unsigned)geteuid(), job, (unsigned long long)dtn_digest(text));
}

int dtn_boot_socket_port(const struct dtn_boot *boot)
{
    const int port = boot->cluster->transport.port;

    return port > 0 ? port : 17800 + (int)(dtn_digest(boot->job) % 1000);
}

socklen_t dtn_boot_socket_unix_addr(const struct dtn_boot *boot,
                                  struct sockaddr_un *addr)
{
    size_t n = strlen(boot->name);

    memset(addr, 0, sizeof *addr);
    addr->sun_family = AF_UNIX;
    if (n > sizeof addr->sun_path - 1)
        n = sizeof addr->sun_path - 1;
    memcpy(addr->sun_path + 1, boot->name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* A socket of this family, or an error with its text. */
int dtn_boot_socket_open(const struct dtn_boot *boot, int family,
                         struct dtensor_error *err)
{
    int fd = socket(family, SOCKET_FLAGS, 0);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        dtn_boot_fd_limit(boot, err);
    else if (fd < 0)
        dtn_fail_sys(err, errno, "boot: cannot make a socket: %m");
    return fd;
}

/* Look up the address of a rank's host. */
int dtn_boot_socket_resolve(const struct dtn_boot *boot, int rank,
                            struct dtn_boot_addrs *addrs,
                            struct dtensor_error *err)
{
    const struct dtn_host *host = boot->hosts[dtn_boot_tree_host(boot, rank)];
    const struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICSERV };
    struct addrinfo *list, *a;
    char port[16];
    int rc;

    snprintf(port, sizeof port, "%d", boot->port);
    rc = getaddrinfo(host->address, port, &hints, &list);
    if (rc != 0)
        return dtn_fail(err, DTENSOR_ESYS, "boot: cannot look up \"%s\", the "
                        "address of host %s: %s (see /etc/hosts, or give IP "
                        "addresses as [nodes] addresses in a cluster file, "
                        "named by DTN_CLUSTER)", host->address, host->name,
                        gai_strerror(rc));
    addrs->n = 0;
    for (a = list; a && addrs->n < DTN_BOOT_MAX_ADDRS; a = a->ai_next) {
        struct dtn_boot_addr *to = &addrs->addr[addrs->n];

        if (a->ai_addrlen > sizeof to->u)
            continue;
        memcpy(&to->u, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
        to->family = a->ai_family;
        addrs->n++;
    }
    freeaddrinfo(list);
    return 0;
}

void dtn_boot_socket_set_port(struct dtn_boot_addrs *addrs, uint16_t port)
{
    for (int i = 0; i < addrs->n; i++) {
        struct dtn_boot_addr *to = &addrs->addr[i];

        if (to->family == AF_INET)
            ((struct sockaddr_in *)(void *)&to->u)->sin_port = htons(port);
        else
            ((struct sockaddr_in6 *)(void *)&to->u)->sin6_port = htons(port);
    }
}

void dtn_boot_socket_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The user and process at the other side of an AF_UNIX connection; uid -1: see
 * errno.
 */
static bool socket_same_user(int fd, uid_t *uid, uint32_t *pid)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    *uid = (uid_t)-1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return false;
    *uid = cred.uid;
    *pid = (uint32_t)cred.pid;
    return cred.uid == geteuid();
}

static void socket_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int dtn_boot_socket_accept(struct dtn_boot *boot, bool local,
                           struct dtensor_error *err, int *rc)
{
    int listener = local ? boot->unix_fd : boot->tcp_fd;
    uint32_t pid;
    uid_t uid;
    int fd;

    *rc = 0;
    for (;;) {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            *rc = dtn_boot_fd_limit(boot, err);
            dtn_boot_socket_close(&boot->spare_fd);
        } else if (fd < 0 && (errno == ENOMEM || errno == ENOBUFS))
            *rc = dtn_fail_sys(err, errno,
                               "boot: cannot accept a connection: %m");
        if (fd < 0)
            return -1;
        if (!local || socket_same_user(fd, &uid, &pid))
            return fd;
        close(fd);
        boot->strangers++;
    }
}

int dtn_boot_socket_accept_tcp(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* ----------------------------------------------------------- connecting --- */

int dtn_boot_socket_connect_local(const struct dtn_boot *boot, int *fdp,
                                  uint32_t *pid, struct dtensor_error *err)
{
    struct sockaddr_un addr;
    socklen_t len = dtn_boot_socket_unix_addr(boot, &addr);
    int fd = dtn_boot_socket_open(boot, AF_UNIX, err), saved;
    uid_t uid;

    if (fd < 0)
        return DTENSOR_ESYS;
    if (connect(fd, (struct sockaddr *)&addr, len) != 0) {
        close(fd);
        return DTENSOR_EAGAIN;
    }
    if (!socket_same_user(fd, &uid, pid)) {
        saved = errno;
        close(fd);
        if (uid == (uid_t)-1)
            return dtn_fail_sys(err, saved, "boot: cannot tell which user the "
                                "socket of this job on %s belongs to: %m",
                                boot->hosts[boot->host]->name);
        return dtn_fail(err, DTENSOR_ESYS, "boot: the socket of this job on "
                        "%s belongs to uid %u, not to uid %u (another user's "
                        "process took its name: set DTN_JOB)",
                        boot->hosts[boot->host]->name, (unsigned)uid,
                        (unsigned)geteuid());
    }
    *fdp = fd;
    return 0;
}

int dtn_boot_socket_connect_tcp(struct dtn_boot *boot,
                                struct dtn_boot_route *route, int *fdp,
                                struct dtensor_error *err)
{
    struct dtn_boot_addr *a;
    int fd, rc;

    if (route->resolved != route->target) {
        rc = dtn_boot_socket_resolve(boot, route->target, &route->addrs, err);
        if (rc != 0)
            return rc;
        route->resolved = route->target;
    }
    if (route->addrs.n == 0)
        return DTENSOR_EAGAIN;
    a = &route->addrs.addr[route->attempts++ % (unsigned)route->addrs.n];
    fd = dtn_boot_socket_open(boot, a->family, err);
    if (fd < 0)
        return DTENSOR_ESYS;
    socket_no_delay(fd);
    if (connect(fd, (struct sockaddr *)&a->u, a->len) != 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return DTENSOR_EAGAIN;
    }
    *fdp = fd;
    return 0;
}

/* Is the socket connected to itself?  This can happen if nobody listens on a
 * port of the range from which connect() takes local ports.
 */
static bool socket_is_mirror(int fd)
{
    struct sockaddr_storage a, b;
    socklen_t na = sizeof a, nb = sizeof b;

    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return getsockname(fd, (struct sockaddr *)&a, &na) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &nb) == 0 &&
           a.ss_family != AF_UNIX && na == nb && memcmp(&a, &b, na) == 0;
}

int dtn_boot_socket_connected(int fd)
{
    int sys_errno = 0;
    socklen_t len = sizeof sys_errno;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys_errno, &len) != 0 ||
        sys_errno != 0 || socket_is_mirror(fd)) {
        errno = sys_errno;
        return DTENSOR_EAGAIN;
    }
    return 0;
}

/* A zombie has ended too, but kill() succeeds for it. */
bool dtn_boot_socket_dead(uint32_t pid)
{
    struct pollfd ended = { -1, POLLIN, 0 };
    bool dead;

    if (pid == 0)
        return false;                /* none yet, or of another namespace    */
    ended.fd = dtn_pidfd_open((pid_t)pid);
    if (ended.fd < 0)
        return errno == ESRCH;
    dead = poll(&ended, 1, 0) == 1;
    close(ended.fd);
    return dead;
}

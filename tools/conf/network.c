/* network.c - do hosts find and reach each other: names, ports, keys, MTU
 *
 * Nothing is sent to another host: a name is looked up, an address is tried
 * with bind(), a socket of this machine is opened.
 */
#include "tools/conf/conf.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_FIRST = 17800, PORT_COUNT = 1000 };      /* without a port        */

/* An address, and its text. */
struct place {
    struct sockaddr_storage at;
    socklen_t size;
    char text[INET6_ADDRSTRLEN];
};

static bool is_loopback(const struct place *place)
{
    return strncmp(place->text, "127.", 4) == 0 ||
           strcmp(place->text, "::1") == 0;
}

/* The first address of a name that other hosts may reach, or else its last; 0,
 * or the error of getaddrinfo().
 */
static int look_up(const char *name, struct place *to)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list, *next;
    int rc = getaddrinfo(name, NULL, &hints, &list);

    if (rc != 0)
        return rc;
    next = list;
    do {
        memcpy(&to->at, next->ai_addr, next->ai_addrlen);
        to->size = next->ai_addrlen;
        getnameinfo(next->ai_addr, to->size, to->text, sizeof to->text, NULL, 0,
                    NI_NUMERICHOST);
        next = next->ai_next;
    } while (next && is_loopback(to));
    freeaddrinfo(list);
    return 0;
}

/* 0, or errno of bind(). */
static int try_bind(const struct sockaddr *at, socklen_t size)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1, failed;

    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    failed = bind(fd, at, size) == 0 ? 0 : errno;
    close(fd);
    return failed;
}

/* Hosts of the file: how many resolve, and which of them is this machine. */
static void names_of_file(struct doctor *doctor)
{
    struct dtensor_cluster_rank rank;
    struct place place;
    char mine[300] = "";
    int rc;

    for (int r = 0; r < doctor->info.nranks; r++) {
        if (dtensor_cluster_rank(doctor->cluster, r, &rank, NULL) != 0 ||
            rank.local != 0)
            continue;
        rc = look_up(rank.address, &place);
        if (rc != 0) {
            doctor_say(doctor, DOCTOR_BAD, "names", "add it to /etc/hosts or "
                       "DNS, or give IP addresses as [nodes] addresses",
                       "%s, the address of host %s, does not resolve: %s",
                       rank.address, rank.host, gai_strerror(rc));
            return;
        }
        if (*mine == '\0' && try_bind((void *)&place.at, place.size) == 0) {
            snprintf(mine, sizeof mine, "this machine is %s, %s", rank.host,
                     place.text);
            if (doctor->info.nhosts > 1 && is_loopback(&place))
                doctor_say(doctor, DOCTOR_NOTE, "names", "remove the name from "
                           "the line of 127.0.1.1 in /etc/hosts", "%s resolves "
                           "to %s, which other hosts cannot reach", rank.host,
                           place.text);
        }
    }
    doctor_say(doctor, DOCTOR_OK, "names", NULL, "%d host%s resolve%s; %s",
               doctor->info.nhosts, doctor->info.nhosts == 1 ? "" : "s",
               doctor->info.nhosts == 1 ? "s" : "", *mine ? mine :
               "this machine is none of them");
}

void doctor_names(struct doctor *doctor)
{
    const char *node = getenv("SLURMD_NODENAME");
    struct place place;
    char host[256] = "";
    int rc;

    if (doctor->info.nranks > 0) {
        names_of_file(doctor);
        return;
    }
    gethostname(host, sizeof host - 1);
    if (!node)
        node = host;
    rc = look_up(node, &place);
    if (rc != 0)
        doctor_say(doctor, DOCTOR_BAD, "names", "add it to /etc/hosts or DNS "
                   "on every host", "%s, the name of this machine, does not "
                   "resolve: %s", node, gai_strerror(rc));
    else
        doctor_say(doctor, DOCTOR_OK, "names", NULL, "%s, the name of this "
                   "machine, is %s", node, place.text);
}

/* A connection of any program can get such a port, and a job's port is then in
 * use until a minute after the connection's end.
 */
static void port_of_the_system(struct doctor *doctor)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    int low = 0, high = 0;

    if (!file)
        return;
    if (fscanf(file, "%d %d", &low, &high) == 2 && doctor->port >= low &&
        doctor->port <= high)
        doctor_say(doctor, DOCTOR_NOTE, "ports", "set a [transport] port "
                   "outside net.ipv4.ip_local_port_range", "the system gives "
                   "port %d to other connections too: it uses %d to %d",
                   doctor->port, low, high);
    fclose(file);
}

void doctor_ports(struct doctor *doctor)
{
    const int first = doctor->port ? doctor->port : PORT_FIRST;
    const int count = doctor->port ? 1 : PORT_COUNT;
    struct sockaddr_in any = { .sin_family = AF_INET };
    int nbusy = 0, failed = 0;

    for (int i = 0; i < count; i++) {
        int rc;

        any.sin_port = htons((uint16_t)(first + i));
        rc = try_bind((void *)&any, sizeof any);
        nbusy += rc != 0;
        failed = rc ? rc : failed;
    }
    if (nbusy == count)
        doctor_say(doctor, DOCTOR_BAD, "ports", "see ss -ltnp; set another "
                   "[transport] port", "port %d cannot be used: %s", first,
                   strerror(failed));
    else if (count == 1)
        doctor_say(doctor, DOCTOR_OK, "ports", NULL, "port %d is free", first);
    else
        doctor_say(doctor, DOCTOR_OK, "ports", NULL, "%d of the ports %d-%d "
                   "are free; a firewall between hosts has to let them pass",
                   count - nbusy, first, first + count - 1);
    if (doctor->port)
        port_of_the_system(doctor);
}

/* errno if nobody answers at the socket of munged. */
static int munge_ask(struct sockaddr_un *at)
{
    const char *said = getenv("DTN_MUNGE_SOCKET");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), failed = 0;

    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(at->sun_path, sizeof at->sun_path, "%s",
             said ? said : "/run/munge/munge.socket.2");
    if (fd < 0 || connect(fd, (struct sockaddr *)at, sizeof *at) != 0)
        failed = errno;
    if (fd >= 0)
        close(fd);
    return failed;
}

void doctor_key(struct doctor *doctor)
{
    const char *auth = doctor->info.auth ? doctor->info.auth : "auto";
    const bool by_key = strcmp(auth, "munge") != 0,
               by_munge = strcmp(auth, "key") != 0;
    struct sockaddr_un at;
    const int failed = munge_ask(&at);
    const enum verdict without = doctor->info.nhosts > 1 ? DOCTOR_BAD
                                                         : DOCTOR_NOTE;

    if (strcmp(auth, "none") == 0)
        doctor_say(doctor, DOCTOR_NOTE, "key", NULL, "auth = none: ranks of "
                   "different hosts do not ask who the others are");
    else if (by_key && getenv("DTN_KEY"))
        doctor_say(doctor, DOCTOR_OK, "key", NULL, "DTN_KEY is set");
    else if (by_munge && !failed)
        doctor_say(doctor, DOCTOR_OK, "key", NULL, "munged answers at %s",
                   at.sun_path);
    else if (!by_munge)
        doctor_say(doctor, without, "key", "export DTN_KEY=$(openssl rand -hex "
                   "32)", "auth = key, and DTN_KEY is not set");
    else
        doctor_say(doctor, without, "key", by_key ? "start munged, or export "
                   "DTN_KEY=$(openssl rand -hex 32); jobs of one host need "
                   "neither" : "start munged", "no munged at %s (%s)%s",
                   at.sun_path, strerror(failed),
                   by_key ? ", and DTN_KEY is not set" : "");
}

static long number_in(const char *format, const char *name)
{
    char path[128];
    long value = -1;
    FILE *file;

    snprintf(path, sizeof path, format, name);
    file = fopen(path, "r");
    if (!file)
        return -1;
    if (fscanf(file, "%ld", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

/* Is it an address of an interface that is up, by which others reach it? */
static bool has_address(const struct ifaddrs *a)
{
    const struct sockaddr_in6 *at = (const void *)a->ifa_addr;

    return at && (a->ifa_flags & (IFF_LOOPBACK | IFF_UP)) == IFF_UP &&
           (at->sin6_family == AF_INET ||
            (at->sin6_family == AF_INET6 &&
             !IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr)));
}

/* Is it the first one of its interface in the list? */
static bool is_first(const struct ifaddrs *list, const struct ifaddrs *a)
{
    while (list != a && (!has_address(list) ||
                         strcmp(list->ifa_name, a->ifa_name) != 0))
        list = list->ifa_next;
    return list == a;
}

void doctor_mtu(struct doctor *doctor)
{
    struct ifaddrs *list = NULL, *a;
    int n = 0;

    if (getifaddrs(&list) != 0)
        list = NULL;
    for (a = list; a; a = a->ifa_next) {
        long mtu = number_in("/sys/class/net/%.32s/mtu", a->ifa_name);
        long speed = number_in("/sys/class/net/%.32s/speed", a->ifa_name);

        if (!has_address(a) || !is_first(list, a) || mtu < 0)
            continue;
        n++;
        if (speed >= 10000 && mtu <= 1500)
            doctor_say(doctor, DOCTOR_NOTE, "mtu", "ip link set IT mtu 9000, on "
                       "all hosts and switches", "%s has MTU %ld at %ld Mb/s",
                       a->ifa_name, mtu, speed);
        else
            doctor_say(doctor, DOCTOR_OK, "mtu", NULL, "%s has MTU %ld",
                       a->ifa_name, mtu);
    }
    freeifaddrs(list);
    if (n == 0)
        doctor_say(doctor, doctor->info.nhosts > 1 ? DOCTOR_BAD : DOCTOR_NOTE,
                   "mtu", "ip addr shows them; jobs of one host need none",
                   "no network interface is up with an address");
}

/* loopback.c - addresses that lead back to the machine itself */
#include "transport/loopback.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

bool dtn_is_loopback(const struct sockaddr *at)
{
    struct sockaddr_in6 in6;
    struct sockaddr_in in;

    if (at->sa_family == AF_INET6) {
        memcpy(&in6, at, sizeof in6);
        return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
    }
    memcpy(&in, at, sizeof in);
    return at->sa_family == AF_INET
        && ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* address.c - the address of a listener as text */
#include "transport/tcp/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

const char *dtn_tcp_address_name(const struct sockaddr_storage *at, char *buf)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;
    char host[INET6_ADDRSTRLEN] = "?";

    if (at->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(buf, DTN_TCP_NAME_MAX, "[%s]:%d", host, ntohs(in6->sin6_port));
    } else {
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(buf, DTN_TCP_NAME_MAX, "%s:%d", host, ntohs(in->sin_port));
    }
    return buf;
}

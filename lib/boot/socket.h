/* socket.h - names, addresses, accepting and connecting; private to this room
 */
#ifndef DTN_BOOT_SOCKET_H
#define DTN_BOOT_SOCKET_H

#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

void dtn_boot_socket_name(struct dtn_boot *boot, const char *job);
/* The TCP port of the job: [transport] port or, so that jobs that start at once
 * on the same hosts have different ones as a rule, one that follows from the
 * name of the job.
 */
int dtn_boot_socket_port(const struct dtn_boot *boot);

/* The next connection, -1: none now, or *rc is the failure.  A foreign user's
 * is dropped.
 */
int dtn_boot_socket_accept(struct dtn_boot *boot, bool local,
                           struct dtensor_error *err, int *rc);

/* The same of another TCP listener, without a failure. */
int dtn_boot_socket_accept_tcp(int listener);

/* Begin to connect; *fdp may still be connecting.  EAGAIN: try again later.
 * *pid is the process that listens.
 */
int dtn_boot_socket_connect_local(const struct dtn_boot *boot, int *fdp,
                         uint32_t *pid, struct dtensor_error *err);
int dtn_boot_socket_connect_tcp(struct dtn_boot *boot,
                                struct dtn_boot_route *route, int *fdp,
                                struct dtensor_error *err);

/* 0: connected; EAGAIN: the attempt has failed, and errno says why. */
int dtn_boot_socket_connected(int fd);

/* Has that process of this host ended?  False if that is not known. */
bool dtn_boot_socket_dead(uint32_t pid);

/* The abstract AF_UNIX address of this host's leader; its length. */
struct sockaddr_un;
socklen_t dtn_boot_socket_unix_addr(const struct dtn_boot *boot,
                                    struct sockaddr_un *addr);

/* A socket of that family, or -1 and an error. */
int dtn_boot_socket_open(const struct dtn_boot *boot, int family,
                         struct dtensor_error *err);

/* Look up the address of a rank's host.   Errors: ESYS */
int dtn_boot_socket_resolve(const struct dtn_boot *boot, int rank,
                            struct dtn_boot_addrs *addrs,
                            struct dtensor_error *err);

/* Another port at all these addresses; 0: one that the system chooses. */
void dtn_boot_socket_set_port(struct dtn_boot_addrs *addrs, uint16_t port);

/* Close *fd if it is open. */
void dtn_boot_socket_close(int *fd);

#endif

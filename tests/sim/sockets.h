/* sockets.h - sockets of the simulated kernel
 *
 * As the calls of the same names; -1 and errno on failure.  None waits.
 */
#ifndef TESTS_SIM_SOCKETS_H
#define TESTS_SIM_SOCKETS_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

int sim_socket(int family);
int sim_bind(int fd, const struct sockaddr *at, socklen_t size);
int sim_listen(int fd);
int sim_connect(int fd, const struct sockaddr *to, socklen_t size);
int sim_accept(int fd);
int sim_name(int fd, bool peer, struct sockaddr *at, socklen_t *size);
ssize_t sim_send(int fd, const struct msghdr *msg);
ssize_t sim_recv(int fd, struct msghdr *msg, int flags);
int sim_shutdown(int fd);
int sim_close(int fd);
int sim_duplicate(int fd);
int sim_unsent(int fd);           /* bytes that the peer has not read         */
int sim_error(int fd);            /* of a connection attempt                  */
uint32_t sim_peer_pid(int fd);
void sim_tcp_info(int fd, struct tcp_info *info);

int sim_epoll(void);
int sim_epoll_change(int epoll, int op, int fd,
                     const struct epoll_event *event);
int sim_epoll_look(int epoll, struct epoll_event events[], int n);

#endif

/* port.h - a TCP port for the jobs of one test
 *
 * The system gives ports from 32768 on to connections, see
 * net.ipv4.ip_local_port_range.  Such a port stays in use until a minute after
 * the end of its connection, so a test takes one below.
 */
#ifndef TESTS_PORT_H
#define TESTS_PORT_H

#include <unistd.h>

/* This and the next three are ports of this process: processes that start one
 * after the other have others.  So have children: call before fork().
 */
static inline int port_own(void)
{
    return 11000 + (int)getpid() % 5000 * 4;
}

#endif

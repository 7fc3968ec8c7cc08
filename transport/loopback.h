/* loopback.h - addresses that lead back to the machine itself */
#ifndef DTN_TRANSPORT_LOOPBACK_H
#define DTN_TRANSPORT_LOOPBACK_H

#include <stdbool.h>

struct sockaddr;

/* Is it 127.0.0.0/8 or ::1?  Debian gives the name of a machine 127.0.1.1, in
 * its /etc/hosts: a rank that listens there is reached by no other host.
 */
bool dtn_is_loopback(const struct sockaddr *at);

#endif

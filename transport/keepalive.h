/* keepalive.h - TCP keep-alive */
#ifndef DTN_TRANSPORT_KEEPALIVE_H
#define DTN_TRANSPORT_KEEPALIVE_H

struct dtn_transport_conf;

/* Let the kernel find that the host at the other end of a TCP connection no
 * longer answers, after dead_after and `more` further probes.
 */
void dtn_keepalive(int fd, const struct dtn_transport_conf *conf, int more);

#endif

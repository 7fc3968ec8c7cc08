/* wiring.h - which transport leads to which rank: wire.c */
#ifndef DTN_JOB_WIRING_H
#define DTN_JOB_WIRING_H

struct dtn_table;
struct dtn_transport;

#define DTN_MAX_TRANSPORTS 3

struct dtn_wiring {
    struct dtn_transport *inside; /* to ranks of this host                    */
    struct dtn_transport *between; /* to those of other hosts                 */
    struct dtn_table *addresses[DTN_MAX_TRANSPORTS]; /* by transport: those   */
                                  /* of all ranks                             */
    const int *connecting;        /* [nconnecting] the ranks that this rank   */
                                  /* connects to now; NULL: none              */
    int nconnecting;              /* their number                             */
};

#endif

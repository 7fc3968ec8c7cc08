/* peer.h - what a run knows of a peer */
#ifndef DTN_EXEC_PEER_H
#define DTN_EXEC_PEER_H

#include "sched/sched.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

/* The spaces that READY names: IN, OUT, and TMP or ACC, whichever is exposed.
 */
enum { DTN_EXEC_NNAMES = 3 };

static inline int dtn_exec_name(enum dtn_space space)
{
    return space == DTN_ACC ? DTN_TMP : space;
}

/* What is known of a peer during one run. */
struct dtn_exec_peer {
    struct dtn_transport *tp;     /* NULL: this rank itself                   */
    int transport;                /* its index in ctx->transports             */
    int rank;                     /* in the world                             */
    uint64_t turn[2];             /* hash of the last message's number, by    */
                                  /* direction: part of the match bits        */
    struct dtn_remote remote[DTN_EXEC_NNAMES];     /* its spaces, as its      */
                                                   /* READY said              */
    unsigned char *words;         /* where this rank's device signals to the  */
                                  /* peer's; NULL: the hosts signal           */
    bool again;                   /* it sends READY once more, when its       */
                                  /* memory is ready                          */
    bool meets;                   /* its READY came, and this rank has yet to */
                                  /* answer                                   */
};

#endif

/* modelled_shm.h - ranks of one host on the real code of transport/shm, with
 * the hooks of interleave.h in it
 */
#ifndef TESTS_TRANSPORT_MODELLED_SHM_H
#define TESTS_TRANSPORT_MODELLED_SHM_H

#include "transport/transport.h"

#include <stddef.h>

enum {
    MODELLED_RANKS = 3,
    MODELLED_BOX = 16             /* bytes of data of a signal                */
};

/* Signals that a rank can send before one is consumed; MODELLED_DEPTH when this
 * was compiled.
 */
extern const int modelled_depth;

/* All ranks, connected, as they are before the first signal.  Their lanes and
 * memory are watched for data races.
 */
void modelled_begin(void);

struct dtn_transport *modelled_rank(int rank);
extern const struct dtn_transport_ops *const modelled_ops;

/* Memory of a rank that all can reach: MODELLED_BOX bytes for each signal of
 * each peer, as the boxes of lib/job, and one for puts.
 */
unsigned char *modelled_box(int rank, int peer, int signal);
unsigned char *modelled_window(int rank);
struct dtn_remote modelled_name(int rank, const unsigned char *mem);

#endif

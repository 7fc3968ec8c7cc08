/* transport.c - the transports of this build
 *
 * Preferred first.  Two ranks use the first one that connects them and that the
 * cluster file allows.  A signal between two ranks of one host takes about
 * 0.1 us over shm and about 10 us over tcp.
 */
#include "config.h"
#include "transport/transport.h"

#include <string.h>

const struct dtn_transport_ops *const dtn_transports[] = {
    &dtn_shm_ops,
#ifdef HAVE_VERBS
    &dtn_verbs_ops,
#endif
    &dtn_tcp_ops,
    NULL
};

const struct dtn_transport_ops *dtn_transport_find(const char *name)
{
    for (size_t i = 0; dtn_transports[i]; i++)
        if (strcmp(dtn_transports[i]->name, name) == 0)
            return dtn_transports[i];
    return NULL;
}

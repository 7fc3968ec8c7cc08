/* gid.h - addresses of a port in its GID table */
#ifndef DTN_TRANSPORT_GID_H
#define DTN_TRANSPORT_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtn_gid_type { DTN_GID_IB, DTN_GID_V1, DTN_GID_V2 };

/* A row of a GID table that is not empty. */
struct dtn_gid {
    unsigned char raw[16];        /* an IPv6 address, most significant first  */
    uint16_t index;               /* of its row                               */
    uint16_t type;                /* enum dtn_gid_type                        */
};

/* How good a GID is. */
enum dtn_gid_worth { DTN_GID_NONE, DTN_GID_OLD, DTN_GID_LINK_LOCAL,
                     DTN_GID_ROUTABLE };
enum dtn_gid_worth dtn_gid_worth(const struct dtn_gid *gid, bool ethernet);

/* The best one of a table, by worth, IPv4 before IPv6, and then by index; NULL:
 * there is none.
 */
const struct dtn_gid *dtn_gid_best(const struct dtn_gid gids[], int n,
                                   bool ethernet);

const char *dtn_gid_type_name(int type);               /* "v2"                */

/* "fe80::1" or "10.1.2.3" of a GID. */
char *dtn_gid_text(const unsigned char raw[16], char *buf, size_t size);

#endif

/* gid.c - addresses of a port in its GID table: which is best, their names */
#include "transport/gid.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *dtn_gid_type_name(int type)
{
    return type == DTN_GID_V2 ? "v2" : type == DTN_GID_V1 ? "v1" : "ib";
}

/* "::ffff:10.1.0.7" */
static bool gid_is_ipv4(const unsigned char raw[16])
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(raw, mapped, sizeof mapped) == 0;
}

char *dtn_gid_text(const unsigned char raw[16], char *buf, size_t size)
{
    bool is_v4 = gid_is_ipv4(raw);

    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, raw + (is_v4 ? 12 : 0), buf,
                   (socklen_t)size))
        snprintf(buf, size, "?");
    return buf;
}

enum dtn_gid_worth dtn_gid_worth(const struct dtn_gid *gid, bool ethernet)
{
    static const unsigned char zero[16];

    if (memcmp(gid->raw, zero, sizeof zero) == 0)
        return DTN_GID_NONE;
    if (ethernet && gid->type != DTN_GID_V2)
        return DTN_GID_OLD;
    if (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80)
        return DTN_GID_LINK_LOCAL;
    return DTN_GID_ROUTABLE;
}

/* Both ends of a connection must have the same IP version, and the order of the
 * rows is that in which a host was configured.
 */
static bool gid_is_better(const struct dtn_gid *gid, const struct dtn_gid *than,
                          bool ethernet)
{
    const enum dtn_gid_worth mine = dtn_gid_worth(gid, ethernet),
                             other = dtn_gid_worth(than, ethernet);

    return mine != other ? mine > other
                         : gid_is_ipv4(gid->raw) && !gid_is_ipv4(than->raw);
}

const struct dtn_gid *dtn_gid_best(const struct dtn_gid gids[], int n,
                                   bool ethernet)
{
    const struct dtn_gid *best = NULL;

    for (int i = 0; i < n; i++)
        if (!best || gid_is_better(&gids[i], best, ethernet))
            best = &gids[i];
    return best;
}

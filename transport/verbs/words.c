/* words.c - completion statuses as words
 *
 * "error 12" helps nobody.  Each status has a row: what it means and what to
 * look at.
 *
 * A silent peer is given up after (r + 1) * 4.096 us * 2^t, with the retry
 * count r and the timeout t of the queue pair: 1.9 s for t = 16 and r = 6.  The
 * standard allows a device four times as long.  So unless the cluster file sets
 * t, it is the largest one for which four times that is within dead_after: 16
 * for 10 s.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "transport/device.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/events.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/words.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum ibv_wc_status status;
    const char *means;
    const char *look;
} rows[] = {
    { IBV_WC_RETRY_EXC_ERR, "it does not answer",
      "is the process alive, and the link up? on RoCE: do both GIDs route?" },
    { IBV_WC_RNR_RETRY_EXC_ERR, "it was never ready to receive",
      "its context is damaged" },
    { IBV_WC_REM_ACCESS_ERR, "it refused access to its memory",
      "its context was closed or damaged" },
    { IBV_WC_REM_INV_REQ_ERR, "it could not make sense of a request",
      "packets were damaged or repeated wrongly: see the counters and firmware "
      "of both devices" },
    { IBV_WC_REM_OP_ERR, "its device failed to carry out a request",
      "see its kernel log" },
    { IBV_WC_LOC_PROT_ERR, "memory here is not registered as it must be",
      "this context is damaged" },
    { IBV_WC_LOC_QP_OP_ERR, "the device here could not send to it",
      "is the port up, and its address as it was?" },
    { IBV_WC_WR_FLUSH_ERR, "the queue pair was taken down",
      "was the port or device reset? see the kernel log" },
};

enum { TIMEOUT_LEAST = 12, TIMEOUT_MOST = 20, DEVICE_FACTOR = 4 };

static int64_t words_give_up_ns(const struct dtn_transport_conf *conf,
                                int timeout)
{
    return (conf->retry_count + 1) * (INT64_C(4096) << timeout);
}

int dtn_verbs_timeout(const struct dtn_transport_conf *conf)
{
    int timeout = TIMEOUT_MOST;

    if (conf->timeout >= 0)
        return conf->timeout;
    while (timeout > TIMEOUT_LEAST && DEVICE_FACTOR
           * words_give_up_ns(conf, timeout) > conf->dead_after_ns)
        timeout--;
    return timeout;
}

char *dtn_verbs_give_up_text(const struct dtn_transport_conf *conf, char *buf,
                             size_t size)
{
    int timeout = dtn_verbs_timeout(conf);

    snprintf(buf, size, "%.2f s = %d x 4.096 us x 2^%d",
             (double)words_give_up_ns(conf, timeout) / 1e9,
             conf->retry_count + 1, timeout);
    return buf;
}

/* What is wrong with the port, by its state or its events; NULL: nothing. */
static const char *words_port(const struct dtn_verbs_device *device, char *buf,
                              size_t size)
{
    struct ibv_port_attr attr;
    char gid[64];

    if (dtn_verbs_gid_gone(device)) {
        snprintf(buf, size, "GID %s is no longer row %d of port %d of %s (was "
                 "its network interface set up anew?)",
                 dtn_verbs_gid_text(&device->gid, gid, sizeof gid),
                 device->gid_index, device->port, device->name);
        return buf;
    }
    if (dtn_verbs_events_words(device, buf, size))
        return buf;
    if (ibv_query_port(device->context, (uint8_t)device->port, &attr) != 0
        || attr.state == IBV_PORT_ACTIVE)
        return NULL;
    snprintf(buf, size, "port %d of %s is %s (is the cable in, and the "
             "interface and switch port up?)", device->port, device->name,
             dtn_port_state_name((int)attr.state));
    return buf;
}

/* "mlx5_0 GID 10.1.0.7", or without a GID "mlx5_0 LID 12". */
static void words_end(const char *device, const union ibv_gid *gid,
                      unsigned lid, char *buf, size_t size)
{
    static const union ibv_gid none;
    char text[64];

    if (memcmp(gid, &none, sizeof none) == 0)
        snprintf(buf, size, "%s LID %u", device, lid);
    else
        snprintf(buf, size, "%s GID %s", device,
                 dtn_verbs_gid_text(gid, text, sizeof text));
}

/* "rxe0 GID 10.77.0.1 -> rxe0 GID 10.77.0.2" on that rail. */
static char *words_way(const struct dtn_verbs *verbs, int rank, int rail,
                       char *buf, size_t size)
{
    const struct dtn_verbs_device *device = &verbs->rail[rail].device;
    const struct dtn_verbs_end *end = &verbs->peers[rank]->address.end[rail];
    char here[140], there[140], number[32] = "";

    words_end(device->name, &device->gid, device->lid, here, sizeof here);
    words_end(end->device, &end->gid, end->lid, there, sizeof there);
    if (verbs->nrails > 1)
        snprintf(number, sizeof number, "rail %d of %d, ", rail,
                 verbs->nrails);
    snprintf(buf, size, "%s%s -> %s", number, here, there);
    return buf;
}

/* The longest packet of verbs/probe.c was not answered, shorter ones were. */
static void words_narrow(const struct dtn_verbs *verbs, int rank, char *buf,
                         size_t size)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];
    const struct dtn_verbs_device *device =
        &verbs->rail[peer->error_rail].device;
    int mtu = 128 << dtn_verbs_path_mtu(verbs, device,
                                        &peer->address.end[peer->error_rail]);
    char way[320];

    snprintf(buf, size, "it answers, but not packets of %d bytes, over %s (is "
             "the MTU of a switch smaller? its Ethernet MTU must be %d or more; "
             "or set [transport] mtu = %d)", mtu,
             words_way(verbs, rank, peer->error_rail, way, sizeof way),
             mtu + DTN_VERBS_ROCE_HEADERS, mtu > 1024 ? 1024 : mtu / 2);
}

/* There was no bad completion: how it was reached, what our devices say. */
static void words_unseen(const struct dtn_verbs *verbs, int rank, char *buf,
                         size_t size)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];
    char way[320], said[240];
    const char *event = NULL;

    *buf = '\0';
    for (int k = 0; k < verbs->nrails && !event; k++)
        event = words_port(&verbs->rail[k].device, said, sizeof said);
    if (peer && peer->called && !peer->joined)
        snprintf(buf, size, "it has not answered over %s (are both on one "
                 "network? see hca and gid_index)%s%s",
                 words_way(verbs, rank, 0, way, sizeof way),
                 event ? "; " : "", event ? event : "");
    else if (peer && peer->called)
        snprintf(buf, size, "it was reached over %s%s%s",
                 words_way(verbs, rank, 0, way, sizeof way),
                 event ? "; " : "", event ? event : "");
    else if (event)
        snprintf(buf, size, "%s", event);
}

static void words_bad(const struct dtn_verbs *verbs, int rank, char *buf,
                      size_t size)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];
    const struct dtn_verbs_device *device =
        &verbs->rail[peer->error_rail].device;
    const char *means = ibv_wc_status_str(peer->error);
    const char *look = "see ibv_devinfo";
    char way[320], time[80], said[240];
    bool silent = peer->error == IBV_WC_RETRY_EXC_ERR;
    const char *event = words_port(device, said, sizeof said);

    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (rows[i].status == peer->error) {
            means = rows[i].means;
            look = rows[i].look;
        }
    snprintf(buf, size, "%s (status %d, vendor 0x%x) over %s%s%s (%s)%s%s",
             means, (int)peer->error, peer->vendor_error,
             words_way(verbs, rank, peer->error_rail, way, sizeof way),
             silent ? ", given up after " : "", silent
             ? dtn_verbs_give_up_text(verbs->args.conf, time, sizeof time) : "",
             look, event ? "; " : "", event ? event : "");
}

char *dtn_verbs_words(const struct dtn_verbs *verbs, int rank, char *buf,
                      size_t size)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];

    if (peer && peer->narrow)
        words_narrow(verbs, rank, buf, size);
    else if (peer && peer->error)
        words_bad(verbs, rank, buf, size);
    else
        words_unseen(verbs, rank, buf, size);
    return buf;
}

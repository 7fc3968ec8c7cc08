/* verbs_words.c - completion statuses as words
 *
 * "error 12" helps nobody.  Each status has a row: what it means and what to
 * look at.  The time after which a silent peer is given up follows from the
 * queue pair's timeout t and retry count r: (r + 1) * 4.096 us * 2^t, so 0.47
 * s for t = 14, r = 6.
 */
#include "transport/verbs.h"

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
    { IBV_WC_REM_INV_REQ_ERR, "it refused the request", "versions differ?" },
    { IBV_WC_REM_OP_ERR, "its device failed to carry out a request",
      "see its kernel log" },
    { IBV_WC_LOC_PROT_ERR, "memory here is not registered as it must be",
      "this context is damaged" },
    { IBV_WC_LOC_QP_OP_ERR, "the device here could not send to it",
      "is the port up, and its address as it was?" },
    { IBV_WC_WR_FLUSH_ERR, "the queue pair was taken down",
      "was the port or device reset? see the kernel log" },
};

/* Only a peer that does not answer is given up after some time. */
static void words_time(const struct dtn_transport_conf *conf, char *buf,
                       size_t size)
{
    int timeout = conf->timeout < 0 ? 14 : conf->timeout;
    int retries = conf->retry_count < 0 ? 6 : conf->retry_count;

    snprintf(buf, size, ", given up after %.2f s = %d x 4.096 us x 2^%d",
             4.096e-6 * (double)(retries + 1) * (double)(1u << timeout),
             retries + 1, timeout);
}

char *verbs_words(const struct verbs *verbs, int rank, char *buf, size_t size)
{
    const struct verbs_peer *peer = &verbs->peers[rank];
    const char *means = ibv_wc_status_str(peer->error);
    const char *look = "see ibv_devinfo";
    char here[64], there[64], took[80] = "", said[240];
    const char *event = verbs_events_words(&verbs->device, said, sizeof said);

    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (rows[i].status == peer->error) {
            means = rows[i].means;
            look = rows[i].look;
        }
    if (peer->error == IBV_WC_RETRY_EXC_ERR)
        words_time(verbs->args.conf, took, sizeof took);
    snprintf(buf, size, "%s (status %d, vendor 0x%x) over %s GID %s -> %s GID "
             "%s%s (%s)%s%s", means, (int)peer->error, peer->vendor_error,
             verbs->device.name,
             verbs_gid_text(&verbs->device.gid, here, sizeof here),
             peer->address.device,
             verbs_gid_text(&peer->address.gid, there, sizeof there), took,
             look, event ? "; " : "", event ? event : "");
    return buf;
}

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
    { IBV_WC_LOC_QP_OP_ERR, "the queue pair here cannot carry that out",
      "this context is damaged" },
    { IBV_WC_WR_FLUSH_ERR, "the queue pair was taken down",
      "was the port or device reset? see the kernel log" },
};

char *verbs_words(const struct verbs *verbs, int rank, char *buf, size_t size)
{
    const struct verbs_peer *peer = &verbs->peers[rank];
    const struct dtn_transport_conf *conf = verbs->args.conf;
    int timeout = conf->timeout < 0 ? 14 : conf->timeout;
    int retries = conf->retry_count < 0 ? 6 : conf->retry_count;
    const char *means = ibv_wc_status_str(peer->error), *look = "see ibv_devinfo";
    char here[64], there[64];

    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (rows[i].status == peer->error) {
            means = rows[i].means;
            look = rows[i].look;
        }
    snprintf(buf, size, "%s (status %d, vendor 0x%x) over %s GID %s -> %s GID "
             "%s, given up after %.2f s = %d x 4.096 us x 2^%d (%s)", means,
             (int)peer->error, peer->vendor_error, verbs->device.name,
             verbs_gid_text(&verbs->device.gid, here, sizeof here),
             peer->address.device,
             verbs_gid_text(&peer->address.gid, there, sizeof there),
             4.096e-6 * (double)(retries + 1) * (double)(1u << timeout),
             retries + 1, timeout, look);
    return buf;
}

/* auth.h - how ranks of different hosts know each other; private to this room
 */
#ifndef DTN_BOOT_AUTH_H
#define DTN_BOOT_AUTH_H

#include "base/seal.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stddef.h>

/* What a rank has to prove that it belongs to the job. */
struct dtn_boot_auth {
    enum dtn_auth mode;           /* NONE, KEY or MUNGE                       */
    unsigned char key[DTN_SECRET_BYTES]; /* of KEY                            */
};

/* Why a connection was refused, as sent to the other side. */
enum dtn_refusal {
    DTN_REFUSED_NOT,              /* it was not                               */
    DTN_REFUSED_MODE,             /* one side has a key, or munge, not both   */
    DTN_REFUSED_KEY,              /* another key                              */
    DTN_REFUSED_USER,             /* a credential of another user             */
    DTN_REFUSED_REPLAYED,         /* a credential, or proof, used before      */
    DTN_REFUSED_EXPIRED,          /* a credential that is too old             */
    DTN_REFUSED_MUNGE,            /* munged there did not take it             */
    DTN_REFUSED_VERSION,          /* another version of the bootstrap         */
    DTN_NREFUSALS
};

/* Choose by the cluster's `auth`, DTN_KEY and munged.  A job of one host needs
 * neither.
 *
 * Errors: ECONF  several hosts and no key; with the remedy
 */
int dtn_boot_auth_open(struct dtn_boot_auth *auth,
                       const struct dtensor_cluster *cluster, int nhosts,
                       struct dtensor_error *err);

/* Forget the key. */
void dtn_boot_auth_close(struct dtn_boot_auth *auth);

/* A proof about `transcript`, to send; returns its size, 0 and an error.
 * secret: the key of this connection.
 */
#define DTN_BOOT_PROOF_MAX 480    /* bytes                                    */
size_t dtn_boot_auth_prove(const struct dtn_boot_auth *auth,
                           const unsigned char transcript[DTN_SECRET_BYTES],
                           unsigned char proof[DTN_BOOT_PROOF_MAX],
                           unsigned char secret[DTN_SECRET_BYTES],
                           struct dtensor_error *err);

/* Check such a proof of the other side. */
enum dtn_refusal
dtn_boot_auth_check(const struct dtn_boot_auth *auth,
                    const unsigned char transcript[DTN_SECRET_BYTES],
                    const unsigned char *proof, size_t size,
                    unsigned char secret[DTN_SECRET_BYTES]);

/* "none", "key" or "munge". */
const char *dtn_boot_auth_name(enum dtn_auth mode);

/* "it has another key (give all ranks the same DTN_KEY)" */
const char *dtn_boot_refusal_words(enum dtn_refusal refusal);

#endif

/* auth.c - how ranks of different hosts know each other
 *
 * Ranks of one host ask the kernel who the other side is (socket.c).  Ranks of
 * different hosts prove that they belong to the job:
 *
 *     key     both have the 32 bytes of DTN_KEY.  dtensor-run makes them; for
 *             srun one line does.
 *     munge   the rank that connects makes a random key and sends it in a
 *             credential that only its own user can decode.
 *
 * Either way both sides then share a secret key of this connection.
 */
#include "boot/auth.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/seal.h"
#include "boot/munge.h"
#include "cluster/cluster.h"
#include "cluster/key.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

#define REMEDY "start the job with DTN_KEY=$(openssl rand -hex 32) srun ..., " \
               "or set [cluster] auth = none if nobody else uses the network"

/* -------------------------------------------------------------- choosing -- */

/* Neither file nor environment says how: try munged. */
static int auth_auto(struct dtn_boot_auth *auth, int nhosts,
                     struct dtensor_error *err)
{
    struct dtensor_error munge;
    char cred[DTN_MUNGE_MAX];

    if (dtn_munge_encode(cred, "", 0, &munge) == 0) {
        auth->mode = DTN_AUTH_MUNGE;
        return 0;
    }
    return dtn_fail(err, DTENSOR_ECONF, "auth: %d hosts, and nothing that "
                    "proves who belongs to the job: DTN_KEY is not set, and %s "
                    "(" REMEDY ")", nhosts, munge.text);
}

/* The mode is not none: what it needs must be here. */
static int auth_find(struct dtn_boot_auth *auth, int nhosts,
                     struct dtensor_error *err)
{
    char cred[DTN_MUNGE_MAX];
    bool found = false;
    int rc;

    if (!dtn_seal_present())
        return dtn_fail(err, DTENSOR_ECONF, "auth: %d hosts, and this build "
                        "has no libsodium to know their ranks by (install "
                        "libsodium-dev and build again, or set [cluster] auth "
                        "= none if nobody else uses the network)", nhosts);
    if (auth->mode == DTN_AUTH_MUNGE)
        return dtn_munge_encode(cred, "", 0, err);
    rc = dtn_key_read(auth->key, &found, err);
    if (rc == 0 && found)
        auth->mode = DTN_AUTH_KEY;
    else if (rc == 0 && auth->mode == DTN_AUTH_KEY)
        rc = dtn_fail(err, DTENSOR_ECONF, "auth: [cluster] auth = key, and "
                      "DTN_KEY is not set (" REMEDY ")");
    else if (rc == 0)
        rc = auth_auto(auth, nhosts, err);
    return rc;
}

int dtn_boot_auth_open(struct dtn_boot_auth *auth,
                       const struct dtensor_cluster *cluster, int nhosts,
                       struct dtensor_error *err)
{
    int rc = 0;

    auth->mode = cluster->auth;
    if (nhosts == 1)
        auth->mode = DTN_AUTH_NONE;
    if (auth->mode != DTN_AUTH_NONE)
        rc = auth_find(auth, nhosts, err);
    if (rc != 0)
        auth->mode = DTN_AUTH_NONE;      /* to tell the others               */
    return rc;
}

void dtn_boot_auth_close(struct dtn_boot_auth *auth)
{
    dtn_secret_forget(auth->key, sizeof auth->key);
}

/* --------------------------------------------------------------- proving -- */

/* What a credential holds. */
struct auth_payload {
    unsigned char transcript[DTN_SECRET_BYTES];
    unsigned char secret[DTN_SECRET_BYTES];
};

static size_t auth_prove_munge(const unsigned char *transcript,
                               unsigned char *proof, unsigned char *secret,
                               struct dtensor_error *err)
{
    struct auth_payload payload;
    int rc = 0;

    if (!dtn_secret_random(secret, DTN_SECRET_BYTES))
        rc = dtn_fail(err, DTENSOR_ESYS, "auth: no random numbers");
    memcpy(payload.transcript, transcript, sizeof payload.transcript);
    memcpy(payload.secret, secret, sizeof payload.secret);
    if (rc == 0)
        rc = dtn_munge_encode((char *)proof, &payload, sizeof payload, err);
    dtn_secret_forget(&payload, sizeof payload);
    return rc == 0 ? strlen((char *)proof) : 0;
}

size_t dtn_boot_auth_prove(const struct dtn_boot_auth *auth,
                           const unsigned char transcript[DTN_SECRET_BYTES],
                           unsigned char proof[DTN_BOOT_PROOF_MAX],
                           unsigned char secret[DTN_SECRET_BYTES],
                           struct dtensor_error *err)
{
    if (auth->mode == DTN_AUTH_MUNGE)
        return auth_prove_munge(transcript, proof, secret, err);
    dtn_secret_prove(proof, auth->key, "dtensor proof", transcript,
                     DTN_SECRET_BYTES);
    dtn_secret_prove(secret, auth->key, "dtensor secret", transcript,
                     DTN_SECRET_BYTES);
    return DTN_SECRET_BYTES;
}

static enum dtn_refusal auth_check_munge(const unsigned char *transcript,
                                         const unsigned char *proof,
                                         size_t size, unsigned char *secret)
{
    static const enum dtn_refusal refusals[] = {
        [DTN_MUNGE_GOOD] = DTN_REFUSED_NOT,
        [DTN_MUNGE_USER] = DTN_REFUSED_USER,
        [DTN_MUNGE_REPLAYED] = DTN_REFUSED_REPLAYED,
        [DTN_MUNGE_EXPIRED] = DTN_REFUSED_EXPIRED,
        [DTN_MUNGE_BAD] = DTN_REFUSED_MUNGE
    };
    char cred[DTN_MUNGE_MAX];
    struct auth_payload payload;
    enum dtn_refusal refusal;

    if (size >= sizeof cred)
        return DTN_REFUSED_MUNGE;
    memcpy(cred, proof, size);
    cred[size] = '\0';
    refusal = refusals[dtn_munge_decode(cred, &payload, sizeof payload)];
    if (refusal == DTN_REFUSED_NOT &&
        !dtn_secret_same(payload.transcript, transcript,
                         sizeof payload.transcript))
        refusal = DTN_REFUSED_REPLAYED;
    if (refusal == DTN_REFUSED_NOT)
        memcpy(secret, payload.secret, sizeof payload.secret);
    dtn_secret_forget(&payload, sizeof payload);
    return refusal;
}

enum dtn_refusal
dtn_boot_auth_check(const struct dtn_boot_auth *auth,
                    const unsigned char transcript[DTN_SECRET_BYTES],
                    const unsigned char *proof, size_t size,
                    unsigned char secret[DTN_SECRET_BYTES])
{
    unsigned char want[DTN_BOOT_PROOF_MAX];

    if (auth->mode == DTN_AUTH_MUNGE)
        return auth_check_munge(transcript, proof, size, secret);
    dtn_boot_auth_prove(auth, transcript, want, secret, NULL);
    return size == DTN_SECRET_BYTES &&
                   dtn_secret_same(want, proof, DTN_SECRET_BYTES)
               ? DTN_REFUSED_NOT
               : DTN_REFUSED_KEY;
}

/* ----------------------------------------------------------------- words -- */

const char *dtn_boot_auth_name(enum dtn_auth mode)
{
    static const char *const names[] = {
        [DTN_AUTH_AUTO] = "auto", [DTN_AUTH_NONE] = "none",
        [DTN_AUTH_KEY] = "key", [DTN_AUTH_MUNGE] = "munge"
    };

    return (unsigned)mode < DTN_COUNT(names) ? names[mode] : "unknown";
}

const char *dtn_boot_refusal_words(enum dtn_refusal refusal)
{
    static const char *const words[DTN_NREFUSALS] = {
        [DTN_REFUSED_MODE] = "they prove who they are in different ways (give "
                             "all ranks a DTN_KEY, or none)",
        [DTN_REFUSED_KEY] = "they have different keys (give all ranks the same "
                            "DTN_KEY)",
        [DTN_REFUSED_USER] = "the munge credential is of another user (start "
                             "all ranks as one user)",
        [DTN_REFUSED_REPLAYED] = "the proof was used before (somebody repeats "
                                 "what he heard)",
        [DTN_REFUSED_EXPIRED] = "the munge credential has expired (do the "
                                "clocks of the hosts agree?)",
        [DTN_REFUSED_MUNGE] = "munged there did not take the credential (have "
                              "all hosts the same munge.key?)",
        [DTN_REFUSED_VERSION] = "they speak another version of the bootstrap "
                                "(install the same libdtensor on all hosts)"
    };

    if ((unsigned)refusal >= DTN_COUNT(words) || !words[refusal])
        return "it gives no reason";
    return words[refusal];
}

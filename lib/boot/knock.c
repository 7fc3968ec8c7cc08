/* knock.c - the first frames between two hosts: names and proofs
 *
 *     rank 4 -> rank 0   KNOCK: rank 4, job 17.0, way to prove, random bytes
 *     rank 0 -> rank 4   KNOCK: the same of rank 0
 *     rank 4 -> rank 0   PROOF, for both KNOCKs
 *     rank 4 -> rank 0   HELLO, sealed
 *     rank 0 -> rank 4   WELCOME, sealed: proves that rank 0 has the key
 *
 * Both proofs hold for this connection only: its keys are made from both
 * KNOCKs, which have the protocol's version, world size, rank, job and step,
 * the digest of the settings, and 32 random bytes of each side.  So a recorded
 * handshake is useless, and a rank of another job cannot join.
 *
 * Before the proof a rank reads at most two frames of 512 bytes and allocates
 * nothing for them.  The contents of a KNOCK are used in messages only.
 */
#include "boot/knock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/seal.h"
#include "boot/auth.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define KNOCK_MAX (DTN_FRAME_KNOCK_BYTES + DTN_HOST_MAX + DTN_FRAME_JOB_MAX)

/* -------------------------------------------------------------- knocking -- */

/* Write what this rank says at this connection; returns its size. */
static size_t knock_write(const struct dtn_boot *boot,
                          const struct dtn_boot_link *link,
                          unsigned char body[KNOCK_MAX])
{
    const char *host = boot->hosts[boot->host]->name;
    size_t n = strnlen(host, DTN_HOST_MAX - 1), job = strlen(boot->job);

    dtn_frame_put32(body, boot->auth.mode);
    dtn_frame_put32(body + 4, (uint32_t)boot->rank);
    dtn_frame_put32(body + 8, (uint32_t)boot->cluster->world_size);
    dtn_frame_put32(body + 12, (uint32_t)getpid());
    dtn_frame_put64(body + 16, boot->digest);
    dtn_frame_put32(body + 24, DTN_FRAME_VERSION);
    memcpy(body + 28, link->nonce, DTN_SECRET_BYTES);
    memcpy(body + DTN_FRAME_KNOCK_BYTES, host, n);
    body[DTN_FRAME_KNOCK_BYTES + n] = '\0';
    memcpy(body + DTN_FRAME_KNOCK_BYTES + n + 1, boot->job, job);
    return DTN_FRAME_KNOCK_BYTES + n + 1 + job;
}

bool dtn_boot_knock(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    unsigned char body[KNOCK_MAX];
    struct dtn_frame frame = { .type = DTN_FRAME_KNOCK, .body = body };

    if (!dtn_secret_random(link->nonce, sizeof link->nonce))
        return false;
    frame.size = (uint32_t)knock_write(boot, link, body);
    link->io.accepts =
        DTN_FRAME_BIT(DTN_FRAME_KNOCK) | DTN_FRAME_BIT(DTN_FRAME_REFUSED);
    return dtn_frame_post(&link->io, &frame, false);
}

/* Text of the other side, for a message. */
static void knock_text(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
    to[n] = '\0';
}

static bool knock_read(const struct dtn_boot *boot,
                       const struct dtn_frame *frame, struct dtn_knock *knock)
{
    const char *text = (const char *)frame->body + DTN_FRAME_KNOCK_BYTES;
    size_t n, left;

    if (frame->size < DTN_FRAME_KNOCK_BYTES)
        return false;
    left = frame->size - DTN_FRAME_KNOCK_BYTES;
    n = strnlen(text, left);
    left -= n < left ? n + 1 : n;
    if (n >= sizeof knock->host || left >= sizeof knock->job)
        return false;
    knock->same_job = left == strlen(boot->job) &&
                      memcmp(text + n + 1, boot->job, left) == 0;
    knock->version = frame->version;
    knock->mode = dtn_frame_get32(frame->body);
    knock->rank = dtn_frame_get32(frame->body + 4);
    knock_text(knock->host, text, n);
    knock_text(knock->job, text + n + 1, left);
    return true;
}

/* ------------------------------------------------------------- the proof -- */

/* A digest of what both sides have said. */
static void knock_transcript(const unsigned char *up, size_t up_size,
                             const unsigned char *down, size_t down_size,
                             unsigned char transcript[DTN_SECRET_BYTES])
{
    static const unsigned char no_key[DTN_SECRET_BYTES];

    dtn_secret_prove(transcript, no_key, "dtensor up", up, up_size);
    dtn_secret_prove(transcript, transcript, "dtensor down", down, down_size);
}

/* One key for each direction, from the secret of this connection. */
static void knock_seal(struct dtn_boot_link *link, const unsigned char *secret,
                       bool listens)
{
    unsigned char up[DTN_SECRET_BYTES], down[DTN_SECRET_BYTES];

    dtn_secret_prove(up, secret, "dtensor up", "", 0);
    dtn_secret_prove(down, secret, "dtensor down", "", 0);
    if (listens)
        dtn_frame_seal(&link->io, down, up);
    else
        dtn_frame_seal(&link->io, up, down);
    dtn_secret_forget(up, sizeof up);
    dtn_secret_forget(down, sizeof down);
}

static int knock_judge(const struct dtn_boot *boot, int target,
                       const struct dtn_knock *knock, bool *foreign,
                       struct dtensor_error *err)
{
    char name[DTN_HOST_MAX + 32];

    dtn_boot_rank_name(boot, boot->rank, name, sizeof name);
    *foreign = !knock->same_job;
    if (knock->version != DTN_FRAME_VERSION)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, target, "boot: rank %u on "
                             "%s speaks version %u of the bootstrap, %s "
                             "version %d (install the same libdtensor on all "
                             "hosts)", (unsigned)knock->rank, knock->host,
                             knock->version, name, DTN_FRAME_VERSION);
    if (*foreign)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, target, "boot: %s of job "
                             "\"%s\" met rank %u on %s of job \"%s\" at port "
                             "%d (two jobs that start at the same time: set "
                             "another [transport] port for one)", name,
                             boot->job, (unsigned)knock->rank, knock->host,
                             knock->job, boot->port);
    if (knock->mode != boot->auth.mode)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, target, "boot: rank %u on "
                             "%s has auth %s, %s auth %s: %s",
                             (unsigned)knock->rank, knock->host,
                             dtn_boot_auth_name((enum dtn_auth)knock->mode),
                             name, dtn_boot_auth_name(boot->auth.mode),
                             dtn_boot_refusal_words(DTN_REFUSED_MODE));
    return 0;
}

int dtn_boot_knock_prove(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *frame, bool *foreign,
                         struct dtensor_error *err)
{
    unsigned char body[KNOCK_MAX], proof[DTN_BOOT_PROOF_MAX];
    unsigned char transcript[DTN_SECRET_BYTES], secret[DTN_SECRET_BYTES];
    struct dtn_frame answer = { .type = DTN_FRAME_PROOF, .body = proof };
    struct dtn_knock knock;
    int rc;

    *foreign = false;
    if (!knock_read(boot, frame, &knock))
        return dtn_boot_knock_refused(boot, link->rank, 0, err);
    rc = knock_judge(boot, link->rank, &knock, foreign, err);
    if (rc != 0 || boot->auth.mode == DTN_AUTH_NONE)
        return rc;
    knock_transcript(body, knock_write(boot, link, body), frame->body,
                     frame->size, transcript);
    answer.size = (uint32_t)dtn_boot_auth_prove(&boot->auth, transcript, proof,
                                                secret, err);
    if (answer.size == 0)
        return err->code;
    if (!dtn_frame_post(&link->io, &answer, false))
        return dtn_fail_nomem(err, "boot", answer.size);
    knock_seal(link, secret, false);
    dtn_secret_forget(secret, sizeof secret);
    return 0;
}

/* ------------------------------------------------------------- listening -- */

static void knock_refuse(struct dtn_boot *boot, struct dtn_boot_link *link,
                         enum dtn_refusal reason)
{
    unsigned char body[DTN_FRAME_REFUSED_BYTES] = { 0 };
    const struct dtn_frame frame = { .type = DTN_FRAME_REFUSED,
                                     .size = sizeof body, .body = body };

    boot->refused[reason]++;
    if (boot->log)
        dtn_log(boot->log, DTN_LOG_DEBUG, "boot: refused a connection: %s",
                dtn_boot_refusal_words(reason));
    dtn_frame_put32(body, reason);
    dtn_frame_post(&link->io, &frame, false);
}

bool dtn_boot_knock_answer(struct dtn_boot *boot, struct dtn_boot_link *link,
                           const struct dtn_frame *frame)
{
    unsigned char body[KNOCK_MAX];
    struct dtn_knock knock;

    if (!knock_read(boot, frame, &knock) || !dtn_boot_knock(boot, link))
        return false;
    if (!knock.same_job)
        return false;
    if (knock.version != DTN_FRAME_VERSION) {
        knock_refuse(boot, link, DTN_REFUSED_VERSION);
        return false;
    }
    if (knock.mode != boot->auth.mode) {
        knock_refuse(boot, link, DTN_REFUSED_MODE);
        return false;
    }
    link->io.accepts = DTN_FRAME_BIT(DTN_FRAME_HELLO);
    if (boot->auth.mode == DTN_AUTH_NONE)
        return true;
    link->io.accepts = DTN_FRAME_BIT(DTN_FRAME_PROOF);
    knock_transcript(frame->body, frame->size, body,
                     knock_write(boot, link, body), link->nonce);
    return true;
}

bool dtn_boot_knock_check(struct dtn_boot *boot, struct dtn_boot_link *link,
                          const struct dtn_frame *frame)
{
    unsigned char secret[DTN_SECRET_BYTES];
    enum dtn_refusal refusal;

    refusal = dtn_boot_auth_check(&boot->auth, link->nonce, frame->body,
                                  frame->size, secret);
    if (refusal != DTN_REFUSED_NOT) {
        knock_refuse(boot, link, refusal);
        return false;
    }
    knock_seal(link, secret, true);
    dtn_secret_forget(secret, sizeof secret);
    link->io.accepts = DTN_FRAME_BIT(DTN_FRAME_HELLO);
    return true;
}

int dtn_boot_knock_refused(const struct dtn_boot *boot, int target,
                           uint32_t reason, struct dtensor_error *err)
{
    char name[DTN_HOST_MAX + 32], other[DTN_HOST_MAX + 32];

    return dtn_fail_rank(err, DTENSOR_EMISMATCH, boot->rank, "boot: what "
                         "answers at port %d for %s refused %s: %s",
                         boot->port,
                         dtn_boot_rank_name(boot, target, other, sizeof other),
                         dtn_boot_rank_name(boot, boot->rank, name,
                                            sizeof name),
                         dtn_boot_refusal_words((enum dtn_refusal)reason));
}

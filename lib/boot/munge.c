/* munge.c - credentials of munged
 *
 * A munged on each host of a cluster has one secret key.  It gives a process a
 * credential: some bytes, encrypted, with the user's number.  The munged of
 * another host decodes it for that user only, says whose it is, and refuses one
 * that it has seen before or that is older than five minutes.
 *
 * The library is loaded when it is needed, so no program depends on it.
 */
#include "config.h"
#include "boot/munge.h"
#include "base/error.h"
#include "dtensor.h"

#ifdef HAVE_MUNGE

#include <dlfcn.h>
#include <munge.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct munge {
    void *library;
    munge_ctx_t ctx;
    munge_ctx_t (*create)(void);
    void (*destroy)(munge_ctx_t);
    munge_err_t (*set)(munge_ctx_t, munge_opt_t, ...);
    munge_err_t (*encode)(char **, munge_ctx_t, const void *, int);
    munge_err_t (*decode)(const char *, munge_ctx_t, void **, int *, uid_t *,
                          gid_t *);
    const char *(*words)(munge_err_t);
};

static bool munge_symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void munge_close(struct munge *m)
{
    if (m->ctx)
        m->destroy(m->ctx);
    if (m->library)
        dlclose(m->library);
}

/* Load the library, and set what every credential has in common. */
static bool munge_open(struct munge *m)
{
    const char *socket = getenv("DTN_MUNGE_SOCKET");

    memset(m, 0, sizeof *m);
    m->library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!m->library || !munge_symbol(m->library, "munge_encode", &m->encode) ||
        !munge_symbol(m->library, "munge_decode", &m->decode) ||
        !munge_symbol(m->library, "munge_strerror", &m->words) ||
        !munge_symbol(m->library, "munge_ctx_create", &m->create) ||
        !munge_symbol(m->library, "munge_ctx_destroy", &m->destroy) ||
        !munge_symbol(m->library, "munge_ctx_set", &m->set))
        return false;
    m->ctx = m->create();
    return m->ctx &&
           m->set(m->ctx, MUNGE_OPT_UID_RESTRICTION, geteuid()) ==
               EMUNGE_SUCCESS &&
           (!socket || !*socket ||
            m->set(m->ctx, MUNGE_OPT_SOCKET, socket) == EMUNGE_SUCCESS);
}

int dtn_munge_encode(char *cred, const void *bytes, size_t size,
                     struct dtensor_error *err)
{
    char *made = NULL;
    struct munge m;
    munge_err_t code;
    int rc = 0;

    if (!munge_open(&m)) {
        munge_close(&m);
        return dtn_fail(err, DTENSOR_ECONF, "munge: libmunge.so.2 cannot be "
                        "loaded (install libmunge2)");
    }
    code = m.encode(&made, m.ctx, bytes, (int)size);
    if (code != EMUNGE_SUCCESS || strlen(made) >= DTN_MUNGE_MAX)
        rc = dtn_fail(err, DTENSOR_ECONF, "munge: no credential: %s (does "
                      "munged run here? try: munge -n | unmunge)",
                      m.words(code));
    else
        strcpy(cred, made);
    free(made);
    munge_close(&m);
    return rc;
}

static enum dtn_munge_said munge_judge(munge_err_t code, uid_t uid)
{
    switch (code) {
    case EMUNGE_SUCCESS:
        return uid == geteuid() ? DTN_MUNGE_GOOD : DTN_MUNGE_USER;
    case EMUNGE_CRED_UNAUTHORIZED:
        return DTN_MUNGE_USER;
    case EMUNGE_CRED_REPLAYED:
        return DTN_MUNGE_REPLAYED;
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
        return DTN_MUNGE_EXPIRED;
    default:
        return DTN_MUNGE_BAD;
    }
}

enum dtn_munge_said dtn_munge_decode(const char *cred, void *bytes,
                                     size_t size)
{
    enum dtn_munge_said said = DTN_MUNGE_BAD;
    void *found = NULL;
    struct munge m;
    munge_err_t code;
    int n = 0;
    uid_t uid = (uid_t)-1;
    gid_t gid;

    if (munge_open(&m)) {
        code = m.decode(cred, m.ctx, &found, &n, &uid, &gid);
        said = munge_judge(code, uid);
    }
    if (said == DTN_MUNGE_GOOD && n == (int)size)
        memcpy(bytes, found, size);
    else if (said == DTN_MUNGE_GOOD)
        said = DTN_MUNGE_BAD;
    free(found);
    munge_close(&m);
    return said;
}

#else

int dtn_munge_encode(char *cred, const void *bytes, size_t size,
                     struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_ECONF, "munge: this build has no munge "
                    "(install libmunge-dev and libsodium-dev, and build "
                    "again)");
}

enum dtn_munge_said dtn_munge_decode(const char *cred, void *bytes,
                                     size_t size)
{
    return DTN_MUNGE_BAD;
}

#endif

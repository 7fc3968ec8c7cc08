/* fault.c - a transport that injects faults
 *
 * It wraps an open transport and passes every call on, except the calls that
 * its plan names: with "fail_put=3,code=EPEER" the third put fails, and no
 * other.  The caller must then end as if the network had failed.
 */
#include "transport/fault.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "base/words.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fault {
    struct dtn_transport base;
    struct dtn_transport_ops ops; /* NULL where those of `inner` are          */
    struct dtn_transport *inner;  /* the transport that it wraps              */
    struct dtn_fault_plan plan;   /* which calls misbehave                    */
    unsigned long puts, signals, connects;    /* calls so far                 */
    unsigned long calls;          /* puts and signals so far                  */
};

static const struct dtn_transport_ops fault_ops;

static struct fault *fault_of(const struct dtn_transport *tp)
{
    return (struct fault *)(uintptr_t)tp;
}

/* ----------------------------------------------------------------- plan --- */

/* The keys of a plan: where the value goes, and its kind. */
static const struct fault_key {
    const char *key;
    size_t offset;                /* in struct dtn_fault_plan                 */
    enum { FAULT_COUNT, FAULT_CODE } value;
} fault_keys[] = {
#define ROW(key, value) { #key, offsetof(struct dtn_fault_plan, key), value }
    ROW(fail_put, FAULT_COUNT), ROW(fail_signal, FAULT_COUNT),
    ROW(fail_connect, FAULT_COUNT), ROW(drop_put, FAULT_COUNT),
    ROW(drop_signal, FAULT_COUNT), ROW(kill_signal, FAULT_COUNT),
    ROW(again_every, FAULT_COUNT), ROW(delay_us, FAULT_COUNT),
    ROW(code, FAULT_CODE),
#undef ROW
};

/* The error code of that name, or 0. */
static int fault_code(const char *name)
{
    for (int code = -1; code >= DTENSOR_EABORT; code--)
        if (strcmp(dtensor_errname(code), name) == 0)
            return code;
    return 0;
}

static bool fault_set(struct dtn_fault_plan *plan, const struct fault_key *key,
                      const char *value)
{
    uint64_t number = 0;

    if (key->value == FAULT_CODE)
        return (plan->code = fault_code(value)) != 0;
    if (!dtn_parse_u64(value, false, 1000000000, &number))
        return false;
    *(unsigned long *)((char *)plan + key->offset) = number;
    return true;
}

/* The row of a key; NULL: *meantp is the nearest one, or NULL. */
static const struct fault_key *fault_find(const char *key, const char **meantp)
{
    const char *known[DTN_COUNT(fault_keys) + 1] = { NULL };

    for (size_t i = 0; i < DTN_COUNT(fault_keys); i++) {
        known[i] = fault_keys[i].key;
        if (strcmp(key, known[i]) == 0)
            return &fault_keys[i];
    }
    *meantp = dtn_nearest(key, known);
    return NULL;
}

/* One "key=value"; the text is changed. */
static int fault_parse_one(char *item, struct dtn_fault_plan *plan,
                           struct dtensor_error *err)
{
    char *equals = strchr(item, '=');
    const struct fault_key *key;
    const char *meant;

    if (!equals)
        return dtn_fail(err, DTENSOR_ECONF, "fault: \"%s\" has no value "
                        "(write key=value,key=value)", item);
    *equals = '\0';
    key = fault_find(item, &meant);
    if (!key)
        return dtn_fail(err, DTENSOR_ECONF, "fault: there is no \"%s\" "
                        "(%s%s)", item, meant ? "did you mean " :
                        "see transport.h", meant ? meant : "");
    if (!fault_set(plan, key, equals + 1))
        return dtn_fail(err, DTENSOR_ECONF, "fault: %s cannot be \"%s\" "
                        "(%s)", item, equals + 1,
                        key->value == FAULT_CODE
                        ? "write the name of an error, such as EPEER"
                        : "write a number up to 1000000000");
    return 0;
}

int dtn_fault_parse(const char *text, struct dtn_fault_plan *plan,
                    struct dtensor_error *err)
{
    struct dtn_fault_plan parsed = { .code = DTENSOR_ESYS };
    char *copy = strdup(text), *item, *rest = NULL;
    int rc = 0;

    if (!copy)
        return dtn_fail_nomem(err, "fault", strlen(text));
    for (item = strtok_r(copy, ",", &rest); item && rc == 0;
         item = strtok_r(NULL, ",", &rest))
        rc = fault_parse_one(item, &parsed, err);
    free(copy);
    if (rc == 0)
        *plan = parsed;
    return rc;
}

int dtn_fault_wrap(struct dtn_transport *inner,
                   const struct dtn_fault_plan *plan,
                   struct dtn_transport **tpp, struct dtensor_error *err)
{
    struct fault *fault = calloc(1, sizeof *fault);

    if (!fault)
        return dtn_fail_nomem(err, "fault", sizeof *fault);
    fault->ops = fault_ops;
    if (!inner->ops->adopt)
        fault->ops.adopt = NULL;
    if (!inner->ops->disown)
        fault->ops.disown = NULL;
    if (!inner->ops->attach)
        fault->ops.attach = NULL;
    if (!inner->ops->map)
        fault->ops.map = NULL;
    if (!inner->ops->fetch)
        fault->ops.fetch = NULL;
    fault->ops.kept_max = inner->ops->kept_max;
    if (!inner->ops->kept)
        fault->ops.kept = NULL;
    if (!inner->ops->expect)
        fault->ops.expect = NULL;
    fault->base.ops = &fault->ops;
    fault->base.row_bytes = inner->row_bytes;
    fault->inner = inner;
    fault->plan = *plan;
    if (fault->plan.code == 0)
        fault->plan.code = DTENSOR_ESYS;
    *tpp = &fault->base;
    return 0;
}

/* ------------------------------------------------------ what misbehaves --- */

/* Before each put and signal: sleep, and say whether it returns EAGAIN. */
static bool fault_again(struct fault *fault)
{
    const struct timespec delay = {
        (time_t)(fault->plan.delay_us / 1000000),
        (long)(fault->plan.delay_us % 1000000 * 1000)
    };

    if (fault->plan.delay_us > 0)
        nanosleep(&delay, NULL);
    fault->calls++;
    return fault->plan.again_every > 0 &&
           fault->calls % fault->plan.again_every == 0;
}

static int fault_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                     const void *src, size_t size, size_t *done)
{
    struct fault *fault = fault_of(tp);
    bool again = fault_again(fault);
    int rc;

    fault->puts++;
    if (fault->puts == fault->plan.fail_put)
        return fault->plan.code;
    if (fault->puts == fault->plan.drop_put) {
        *done = size;
        return 0;
    }
    if (again)
        return DTENSOR_EAGAIN;
    rc = fault->inner->ops->put(fault->inner, peer, dst, src, size, done);
    tp->copied_bytes = fault->inner->copied_bytes;
    return rc;
}

static int fault_signal(struct dtn_transport *tp, int peer,
                        const struct dtn_signal *signal,
                        const struct dtn_eager *data)
{
    struct fault *fault = fault_of(tp);
    bool again = fault_again(fault);

    fault->signals++;
    if (fault->signals == fault->plan.kill_signal)
        raise(SIGKILL);
    if (fault->signals == fault->plan.fail_signal)
        return fault->plan.code;
    if (fault->signals == fault->plan.drop_signal)
        return 0;
    if (again)
        return DTENSOR_EAGAIN;
    return fault->inner->ops->signal(fault->inner, peer, signal, data);
}

static int fault_connect(struct dtn_transport *tp, int peer,
                         const struct dtn_blob *blob,
                         struct dtensor_error *err)
{
    struct fault *fault = fault_of(tp);

    if (++fault->connects == fault->plan.fail_connect)
        return dtn_fail_rank(err, fault->plan.code, peer, "fault: connection "
                             "to rank %d fails as planned (see DTN_FAULT)",
                             peer);
    return fault->inner->ops->connect(fault->inner, peer, blob, err);
}

/* ---------------------------------------------------- what is passed on --- */

static void fault_close(struct dtn_transport *tp)
{
    struct fault *fault = fault_of(tp);

    fault->inner->ops->close(fault->inner);
    free(fault);
}

static void fault_address(const struct dtn_transport *tp,
                          struct dtn_blob *blob)
{
    const struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->address(inner, blob);
}

static int fault_reg(struct dtn_transport *tp, void *mem, size_t size,
                     struct dtn_remote *remote)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    int rc = inner->ops->reg(inner, mem, size, remote);

    tp->unreached = inner->unreached;
    return rc;
}

static void fault_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->unreg(inner, remote);
}

static int fault_adopt(struct dtn_transport *tp, void *mem, size_t size,
                       struct dtensor_error *err)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->adopt(inner, mem, size, err);
}

static void fault_disown(struct dtn_transport *tp, void *mem, size_t size)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->disown(inner, mem, size);
}

static void fault_attach(struct dtn_transport *tp,
                         const struct dtn_exporter *exporter)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->attach(inner, exporter);
}

static void *fault_map(struct dtn_transport *tp, int peer,
                       struct dtn_remote remote)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->map(inner, peer, remote);
}

static int fault_fetch(struct dtn_transport *tp, int peer, void *dst,
                       struct dtn_remote src, size_t size)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->fetch(inner, peer, dst, src, size);
}

static int fault_flush(struct dtn_transport *tp, int peer)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->flush(inner, peer);
}

static const struct dtn_signal *fault_peek(struct dtn_transport *tp, int peer)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->peek(inner, peer);
}

static const void *fault_kept(struct dtn_transport *tp, int peer)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->kept(inner, peer);
}

static void fault_expect(struct dtn_transport *tp, int peer,
                         const struct dtn_signal *signal, void *dst)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->expect(inner, peer, signal, dst);
}

static void fault_consume(struct dtn_transport *tp, int peer)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->consume(inner, peer);
}

static int fault_progress(struct dtn_transport *tp)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->progress(inner);
}

static int fault_health(struct dtn_transport *tp, int peer, int *culprit,
                        int *code)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    return inner->ops->health(inner, peer, culprit, code);
}

static void fault_abort(struct dtn_transport *tp, int culprit, int code)
{
    struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->abort(inner, culprit, code);
}

static void fault_why(const struct dtn_transport *tp, int peer, char *buf,
                      size_t size)
{
    const struct dtn_transport *inner = fault_of(tp)->inner;

    inner->ops->why(inner, peer, buf, size);
}

static const struct dtn_transport_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .address = fault_address,
    .connect = fault_connect,
    .reg = fault_reg,
    .unreg = fault_unreg,
    .adopt = fault_adopt,
    .disown = fault_disown,
    .attach = fault_attach,
    .map = fault_map,
    .fetch = fault_fetch,
    .put = fault_put,             /* no put_rows: each row is a put that can  */
                                  /* fail                                     */
    .flush = fault_flush,
    .signal = fault_signal,
    .peek = fault_peek,
    .kept = fault_kept,
    .expect = fault_expect,
    .consume = fault_consume,
    .progress = fault_progress,
    .health = fault_health,
    .abort = fault_abort,
    .why = fault_why,
};

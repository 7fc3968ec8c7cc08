/* fault.c - faults injected into a transport
 *
 * The open transport gets a table of its own, in which a few functions are the
 * ones below.  They do what its plan names and else call the real ones: with
 * "fail_put=3,code=EPEER" the third put fails, and no other.  The caller must
 * then end as if the network had failed.
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
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fault {
    struct dtn_transport_ops ops; /* first: the transport's table now         */
    const struct dtn_transport_ops *real;     /* the one that it had          */
    struct dtn_fault_plan plan;   /* which calls misbehave                    */
    unsigned long puts, signals, connects;    /* calls so far                 */
    unsigned long calls;          /* puts and signals so far                  */
};

static struct fault *fault_of(const struct dtn_transport *tp)
{
    return (struct fault *)(uintptr_t)tp->ops;
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

    fault->puts++;
    if (fault->puts == fault->plan.fail_put)
        return fault->plan.code;
    if (fault->puts == fault->plan.drop_put) {
        *done = size;
        return 0;
    }
    if (again)
        return DTENSOR_EAGAIN;
    return fault->real->put(tp, peer, dst, src, size, done);
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
    return fault->real->signal(tp, peer, signal, data);
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
    return fault->real->connect(tp, peer, blob, err);
}

static void fault_close(struct dtn_transport *tp)
{
    struct fault *fault = fault_of(tp);

    tp->ops = fault->real;
    free(fault);
    tp->ops->close(tp);
}

int dtn_fault_inject(struct dtn_transport *tp,
                     const struct dtn_fault_plan *plan,
                     struct dtensor_error *err)
{
    struct fault *fault = calloc(1, sizeof *fault);

    if (!fault)
        return dtn_fail_nomem(err, "fault", sizeof *fault);
    fault->ops = *tp->ops;
    fault->ops.close = fault_close;
    fault->ops.connect = fault_connect;
    fault->ops.put = fault_put;
    fault->ops.put_rows = NULL;   /* each row is a put that can fail          */
    fault->ops.signal = fault_signal;
    fault->real = tp->ops;
    fault->plan = *plan;
    if (fault->plan.code == 0)
        fault->plan.code = DTENSOR_ESYS;
    tp->ops = &fault->ops;
    return 0;
}

/* ring.c - attention with keys and values that move around a ring of ranks
 *
 * In each step a rank computes with the keys and values that it has.  Meanwhile
 * it sends them to the next rank, and receives those of the previous rank into
 * a second buffer.  After n - 1 steps each rank has seen all of them.
 *
 * In the backward the gradients of keys and values follow them one step later:
 * a rank sends them on while it computes with the next keys and values.  The
 * last step brings them back to their owner.
 */
#include "attention/attention.h"
#include "base/dtype.h"
#include "coll/message.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "math/pointwise.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

struct passing {
    struct dtn_attention_call *call;
    size_t bytes;                 /* of keys and values of a rank             */
    size_t grad_bytes;            /* of their gradients                       */
    char *pass[2];                /* keys, then values: here, and to come     */
    char *found[2];               /* their gradients: of this step, and of    */
                                  /* the one before, which is sent            */
    char *come;                   /* those that the rank before has found     */
    struct dtensor_request *passes, *follows;    /* in progress, or NULL      */
};

static size_t bytes_of(const struct dtn_array *array)
{
    return (size_t)dtn_array_count(array) * dtn_dtype_size(array->dtype);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Keys and values, or their gradients, in one buffer. */
static struct dtn_array first_of(const struct dtn_array *like, char *buffer)
{
    return dtn_array_packed(buffer, like->dtype, 4, like->shape);
}

static struct dtn_array second_of(const struct dtn_array *like,
                                  const struct dtn_array *first, char *buffer)
{
    return dtn_array_packed(buffer + bytes_of(first), like->dtype, 4,
                            like->shape);
}

static int progress(void *whose, struct dtensor_error *err)
{
    struct passing *ring = whose;
    int done;

    if (ring->passes)
        return dtensor_test(ring->passes, &done, err);
    return ring->follows ? dtensor_test(ring->follows, &done, err) : 0;
}

/* To the next rank, and from the one before. */
static int shift(struct passing *ring, const char *in, char *out, size_t bytes,
                 struct dtensor_request **requestp, struct dtensor_error *err)
{
    return dtn_shift_start(&ring->call->way->ring->group, in, out, bytes,
                           requestp, err);
}

/* The end of a shift, also if `rc` is a failure from before. */
static int shift_end(struct dtensor_request **requestp, int rc,
                     struct dtensor_error *err)
{
    struct dtensor_request *request = *requestp;
    int ended;

    *requestp = NULL;
    ended = request ? dtensor_wait(request, rc == 0 ? err : NULL) : 0;
    return rc == 0 ? ended : rc;
}

static struct dtn_keys keys_of(const struct passing *ring, int step)
{
    const struct dtn_attention_call *call = ring->call;
    const int n = call->way->n;
    struct dtn_keys keys = {
        .rows = call->rows[(call->way->me + n - step) % n],
        .k = first_of(&call->k, ring->pass[step & 1]) };

    keys.v = second_of(&call->v, &call->k, ring->pass[step & 1]);
    if (ring->come) {
        keys.dk = first_of(&call->dk, ring->found[step & 1]);
        keys.dv = second_of(&call->dv, &call->dk, ring->found[step & 1]);
    }
    return keys;
}

/* The products of a step, reported to the watcher like an operator. */
static int products(const struct passing *ring, const struct dtn_keys *keys,
                    struct dtensor_error *err)
{
    const struct dtn_attention_call *call = ring->call;
    struct dtn_watcher *watcher = call->way->ring->ctx->watcher;
    int rc;

    if (watcher)
        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_OP, .name = "attention step" });
    rc = call->back ? dtn_queries_back(&call->queries, keys, err)
                    : dtn_queries_see(&call->queries, keys, err);
    if (watcher)
        watcher->end(watcher);
    return rc;
}

static int step_forward(struct passing *ring, int step,
                        struct dtensor_error *err)
{
    const struct dtn_keys keys = keys_of(ring, step);
    int rc = 0;

    if (step < ring->call->way->n - 1)
        rc = shift(ring, ring->pass[step & 1], ring->pass[!(step & 1)],
                   ring->bytes, &ring->passes, err);
    if (rc == 0)
        rc = products(ring, &keys, err);
    return shift_end(&ring->passes, rc, err);
}

/* found += what the rank before has found for the same keys. */
static void follow(const struct passing *ring, int step)
{
    const enum dtensor_dtype work = ring->call->queries.work;
    const int64_t count = (int64_t)(ring->grad_bytes / dtn_dtype_size(work));
    const struct dtn_array to = dtn_array_packed(ring->found[step & 1], work, 1,
                                                 &count);
    const struct dtn_array more = dtn_array_packed(ring->come, work, 1, &count);

    dtn_pointwise(DTN_ADD, &to, (const struct dtn_array *const[]){ &to, &more },
                  NULL);
}

static int step_backward(struct passing *ring, int step,
                         struct dtensor_error *err)
{
    const struct dtn_keys keys = keys_of(ring, step);
    int rc = 0;

    memset(ring->found[step & 1], 0, ring->grad_bytes);
    if (step > 0)
        rc = shift(ring, ring->found[!(step & 1)], ring->come, ring->grad_bytes,
                   &ring->follows, err);
    if (rc == 0 && step < ring->call->way->n - 1)
        rc = shift(ring, ring->pass[step & 1], ring->pass[!(step & 1)],
                   ring->bytes, &ring->passes, err);
    if (rc == 0)
        rc = products(ring, &keys, err);
    rc = shift_end(&ring->follows, rc, err);
    if (rc == 0 && step > 0)
        follow(ring, step);
    return shift_end(&ring->passes, rc, err);
}

/* The gradients of this rank's keys and values come home. */
static int home(struct passing *ring, struct dtensor_error *err)
{
    struct dtn_attention_call *call = ring->call;
    char *last = ring->found[(call->way->n - 1) & 1];
    int rc = 0;

    if (call->way->n > 1) {
        rc = shift(ring, last, ring->come, ring->grad_bytes, &ring->follows,
                   err);
        rc = shift_end(&ring->follows, rc, err);
        last = ring->come;
    }
    if (rc != 0 || ring->grad_bytes == 0)
        return rc;
    memcpy(call->dk.data, last, bytes_of(&call->dk));
    memcpy(call->dv.data, last + bytes_of(&call->dk), bytes_of(&call->dv));
    return 0;
}

/* All memory of a call as one piece. */
static int ring_begin(struct passing *ring, char **memoryp,
                      struct dtensor_error *err)
{
    struct dtn_attention_call *call = ring->call;
    const bool back = call->back;
    const size_t room = dtn_queries_room(&call->queries, call->k.shape[2],
                                         call->v.shape[3]);
    const size_t pass = aligned(ring->bytes), grad = aligned(ring->grad_bytes);
    void *memory;
    char *at;
    int rc = dtensor_alloc(call->way->ring->group.ctx,
                           2 * pass + (back ? 3 * grad : 0) + room + 64,
                           &memory, err);

    if (rc != 0)
        return rc;
    *memoryp = at = memory;
    ring->pass[0] = at;
    ring->pass[1] = at + pass;
    at += 2 * pass;
    if (back) {
        ring->found[0] = at;
        ring->found[1] = at + grad;
        ring->come = at + 2 * grad;
        at += 3 * grad;
    }
    call->queries.room = at;
    call->queries.progress = progress;
    call->queries.whose = ring;
    if (ring->bytes > 0) {
        memcpy(ring->pass[0], call->k.data, bytes_of(&call->k));
        memcpy(ring->pass[0] + bytes_of(&call->k), call->v.data,
               bytes_of(&call->v));
    }
    return 0;
}

/* In a context that only plans: tell who counts of the shifts, each with the
 * bytes of all ranks.
 */
static int ring_follow(const struct dtn_attention_call *call)
{
    const struct dtensor_spec *k = call->k_spec, *v = call->v_spec;
    struct dtn_watcher *watcher = k->mesh->ctx->watcher;
    const int passes = call->way->n - 1;
    const int follows = call->back && passes > 0 ? call->way->n : 0;
    uint64_t elements = 0;

    for (int p = 0; p < k->mesh->group.n; p++)
        elements += (uint64_t)(dtn_local_numel(k, p) + dtn_local_numel(v, p));
    for (int i = 0; watcher && i < passes + follows; i++) {
        const enum dtensor_dtype dtype = i < passes ? k->dtype
                                                    : call->queries.work;

        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_CALL, .name = "shift", .coll = DTN_COLL_PAIRS,
            .bytes = elements * dtensor_dtype_size(dtype) });
        watcher->end(watcher);
    }
    return 0;
}

int dtn_attention_ring(struct dtn_attention_call *call,
                       struct dtensor_error *err)
{
    const bool back = call->back;
    struct passing ring = { .call = call,
        .bytes = bytes_of(&call->k) + bytes_of(&call->v),
        .grad_bytes = bytes_of(&call->dk) + bytes_of(&call->dv) };
    struct dtensor_error why;
    char *memory = NULL;
    int rc;

    if (call->k_spec->mesh->ctx->planning)
        return ring_follow(call);
    rc = ring_begin(&ring, &memory, &why);
    if (rc != 0)
        return dtn_tensor_end_all(call->way->ring, rc, &why, err);
    for (int step = 0; step < call->way->n && rc == 0; step++)
        rc = back ? step_backward(&ring, step, err)
                  : step_forward(&ring, step, err);
    if (rc == 0 && back)
        rc = home(&ring, err);
    dtensor_free(call->way->ring->group.ctx, memory);
    return rc;
}

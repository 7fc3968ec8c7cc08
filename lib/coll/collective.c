/* collective.c - dtensor_allreduce() and the other public collectives
 *
 * Each function describes its call as a struct dtensor_call over the ranks of
 * its mesh.  collective_run() numbers the call among all calls over these
 * ranks.  So if a single rank refuses a call, the numbers show that this rank
 * misses it.  Then collective_run() runs the call, or records it while a group
 * of calls is open.  A call that repeats is run without a check (repeat.h).
 */
#include "base/error.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/message.h"
#include "coll/recorded.h"
#include "coll/repeat.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>

static struct dtn_call collective_call(const struct dtensor_mesh *mesh,
                                       const struct dtensor_call *call)
{
    uint32_t number = mesh->group.me < 0 ? 0 : ++*mesh->group.calls;

    return (struct dtn_call){ .coll = (enum dtn_coll)call->coll,
        .root = call->root, .dtype = call->dtype, .redop = call->op,
        .count = call->count, .counts = call->counts,
        .recv_counts = call->recv_counts, .number = number };
}

/* Collectives outside the public enumeration are internal. */
static int collective_check(const struct dtensor_call *call,
                            struct dtensor_error *err)
{
    if ((unsigned)call->coll < DTENSOR_NCOLLECTIVES)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "call: there is no collective %d (see "
                    "enum dtensor_collective)", (int)call->coll);
}

/* Check, find and run a call, and keep it if it can repeat. */
static int collective_run(const struct dtensor_mesh *mesh,
                          const struct dtensor_call *call, const void *in,
                          void *out, struct dtn_repeat *repeat,
                          struct dtensor_error *err)
{
    struct dtn_call made = collective_call(mesh, call);
    struct dtn_cached_exec *cached;
    int rc = collective_check(call, err);

    if (rc != 0)
        return rc;
    if (dtn_coll_of(mesh->ctx)->recorded)
        return dtn_recorded_add_call(&mesh->group, &made, in, out, err);
    rc = dtn_call_find(&mesh->group, &made, in, out, &cached, err);
    if (rc != 0)
        return rc;
    if (!call->counts && !call->recv_counts
        && (unsigned)call->op < DTENSOR_NREDOPS)
        *repeat = (struct dtn_repeat){ .group = &mesh->group, .call = *call,
                                       .in = in, .out = out,
                                       .cached = cached };
    return dtn_cached_run(cached, in, out, made.number, err);
}

int dtensor_call_run(const struct dtensor_mesh *mesh,
                     const struct dtensor_call *call, const void *in,
                     void *out, struct dtensor_error *err)
{
    struct dtn_coll_state *coll = dtn_coll_of(mesh->ctx);
    struct dtn_repeat *repeat = dtn_repeat_at(coll->repeats, call, in, out);

    return !dtn_repeat_is(repeat, &mesh->group, call, in, out)
        || coll->recorded
        || mesh->ctx->asks        /* what an address is may change            */
         ? collective_run(mesh, call, in, out, repeat, err)
         : dtn_cached_again(mesh->ctx, repeat->cached, in, out,
                            ++*mesh->group.calls, err);
}

/* A call with a count for each block. */
static int collective_run_v(const struct dtensor_mesh *mesh,
                            const struct dtensor_call *call, const void *in,
                            void *out, struct dtensor_error *err)
{
    if (call->counts)
        return dtensor_call_run(mesh, call, in, out, err);
    return dtn_fail(err, DTENSOR_EINVAL, "%sv: counts is NULL (it has an entry "
                    "for each position of the mesh)",
                    dtn_coll_name((enum dtn_coll)call->coll));
}

/* A request cannot be started while a group is open. */
static int collective_alone(const struct dtensor_mesh *mesh,
                            const struct dtensor_call *call,
                            struct dtensor_error *err)
{
    if (!dtn_coll_of(mesh->ctx)->recorded)
        return collective_check(call, err);
    return dtn_fail(err, DTENSOR_EINVAL,
                    "call: cannot be started while a group "
                    "is open (dtensor_group_end() it first)");
}

int dtensor_call_start(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const void *in,
                       void *out, struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtn_call made = collective_call(mesh, call);
    int rc = collective_alone(mesh, call, err);

    return rc != 0 ? rc : dtn_call_start(&mesh->group, &made, in, out,
                                         requestp, err);
}

int dtensor_persistent_create(const struct dtensor_mesh *mesh,
                              const struct dtensor_call *call, const void *in,
                              void *out,
                              struct dtensor_persistent **persistentp,
                              struct dtensor_error *err)
{
    struct dtn_call made = collective_call(mesh, call);
    int rc = collective_alone(mesh, call, err);

    return rc != 0 ? rc : dtn_persistent_create(&mesh->group, &made, in, out,
                                                persistentp, err);
}

/* ----------------------------------------------------------- one by one --- */

int dtensor_allreduce(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      enum dtensor_redop op, struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_ALLREDUCE, .count = count, .dtype = dtype, .op = op },
        in, out, err);
}

int dtensor_reduce(const struct dtensor_mesh *mesh, int root, const void *in,
                   void *out, size_t count, enum dtensor_dtype dtype,
                   enum dtensor_redop op, struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_REDUCE, .root = root, .count = count, .dtype = dtype,
        .op = op }, in, out, err);
}

int dtensor_broadcast(const struct dtensor_mesh *mesh, int root, void *buf,
                      size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_BROADCAST, .root = root, .count = count,
        .dtype = dtype }, buf, buf, err);
}

int dtensor_allgather(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_ALLGATHER, .count = count, .dtype = dtype }, in, out,
        err);
}

int dtensor_allgatherv(const struct dtensor_mesh *mesh, const void *in,
                       void *out, const size_t counts[],
                       enum dtensor_dtype dtype, struct dtensor_error *err)
{
    return collective_run_v(mesh, &(struct dtensor_call){
        .coll = DTENSOR_ALLGATHER, .counts = counts, .dtype = dtype }, in, out,
        err);
}

int dtensor_reduce_scatter(const struct dtensor_mesh *mesh, const void *in,
                           void *out, size_t count, enum dtensor_dtype dtype,
                           enum dtensor_redop op, struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_REDUCE_SCATTER, .count = count, .dtype = dtype,
        .op = op }, in, out, err);
}

int dtensor_reduce_scatterv(const struct dtensor_mesh *mesh, const void *in,
                            void *out, const size_t counts[],
                            enum dtensor_dtype dtype, enum dtensor_redop op,
                            struct dtensor_error *err)
{
    return collective_run_v(mesh, &(struct dtensor_call){
        .coll = DTENSOR_REDUCE_SCATTER, .counts = counts, .dtype = dtype,
        .op = op }, in, out, err);
}

int dtensor_all_to_all(const struct dtensor_mesh *mesh, const void *in,
                       void *out, size_t count, enum dtensor_dtype dtype,
                       struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_ALL_TO_ALL, .count = count, .dtype = dtype }, in, out,
        err);
}

int dtensor_all_to_allv(const struct dtensor_mesh *mesh, const void *in,
                        const size_t in_counts[], void *out,
                        const size_t out_counts[], enum dtensor_dtype dtype,
                        struct dtensor_error *err)
{
    return collective_run_v(mesh, &(struct dtensor_call){
        .coll = DTENSOR_ALL_TO_ALL, .counts = in_counts,
        .recv_counts = out_counts, .dtype = dtype }, in, out, err);
}

int dtensor_gather(const struct dtensor_mesh *mesh, int root, const void *in,
                   void *out, size_t count, enum dtensor_dtype dtype,
                   struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_GATHER, .root = root, .count = count,
        .dtype = dtype }, in, out, err);
}

int dtensor_gatherv(const struct dtensor_mesh *mesh, int root, const void *in,
                    void *out, const size_t counts[],
                    enum dtensor_dtype dtype, struct dtensor_error *err)
{
    return collective_run_v(mesh, &(struct dtensor_call){
        .coll = DTENSOR_GATHER, .root = root, .counts = counts,
        .dtype = dtype }, in, out, err);
}

int dtensor_scatter(const struct dtensor_mesh *mesh, int root, const void *in,
                    void *out, size_t count, enum dtensor_dtype dtype,
                    struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_SCATTER, .root = root, .count = count,
        .dtype = dtype }, in, out, err);
}

int dtensor_scatterv(const struct dtensor_mesh *mesh, int root, const void *in,
                     void *out, const size_t counts[],
                     enum dtensor_dtype dtype, struct dtensor_error *err)
{
    return collective_run_v(mesh, &(struct dtensor_call){
        .coll = DTENSOR_SCATTER, .root = root, .counts = counts,
        .dtype = dtype }, in, out, err);
}

int dtensor_barrier(const struct dtensor_mesh *mesh, struct dtensor_error *err)
{
    return dtensor_call_run(mesh, &(struct dtensor_call){
        .coll = DTENSOR_BARRIER }, NULL, NULL, err);
}

/* ------------------------------------------------------ sends, receives --- */

int dtensor_send(const struct dtensor_mesh *mesh, int to, const void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err)
{
    return dtn_message(&mesh->group, (struct dtn_message){ .sends = true,
        .peer = to, .in = buf, .count = count, .dtype = dtype }, err);
}

int dtensor_recv(const struct dtensor_mesh *mesh, int from, void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err)
{
    return dtn_message(&mesh->group, (struct dtn_message){ .sends = false,
        .peer = from, .out = buf, .count = count, .dtype = dtype }, err);
}

int dtensor_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    return dtn_recorded_begin(ctx, err);
}

int dtensor_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    return dtn_recorded_end(ctx, err);
}

int dtensor_group_start(struct dtensor_ctx *ctx,
                        struct dtensor_request **requestp,
                        struct dtensor_error *err)
{
    return dtn_recorded_start(ctx, requestp, err);
}

/* collective.c - dtensor_allreduce() and its kin
 *
 * Each describes itself as a struct dtn_call over the ranks of its mesh; the
 * rest is dtn_call_run()'s.
 */
#include "spec/spec.h"

int dtensor_allreduce(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      enum dtensor_redop op, struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_ALLREDUCE, .count = count,
                             .dtype = dtype, .redop = op };

    return dtn_call_run(&mesh->group, &call, in, out, err);
}

int dtensor_reduce(const struct dtensor_mesh *mesh, int root, const void *in,
                   void *out, size_t count, enum dtensor_dtype dtype,
                   enum dtensor_redop op, struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_REDUCE, .root = root,
                             .count = count, .dtype = dtype, .redop = op };

    return dtn_call_run(&mesh->group, &call, in, out, err);
}

int dtensor_broadcast(const struct dtensor_mesh *mesh, int root, void *buf,
                      size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_BROADCAST, .root = root,
                             .count = count, .dtype = dtype };

    return dtn_call_run(&mesh->group, &call, buf, buf, err);
}

int dtensor_allgather(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_ALLGATHER, .count = count,
                             .dtype = dtype };

    return dtn_call_run(&mesh->group, &call, in, out, err);
}

int dtensor_reduce_scatter(const struct dtensor_mesh *mesh, const void *in,
                           void *out, size_t count, enum dtensor_dtype dtype,
                           enum dtensor_redop op, struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_REDUCE_SCATTER, .count = count,
                             .dtype = dtype, .redop = op };

    return dtn_call_run(&mesh->group, &call, in, out, err);
}

int dtensor_all_to_all(const struct dtensor_mesh *mesh, const void *in,
                       void *out, size_t count, enum dtensor_dtype dtype,
                       struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_ALL_TO_ALL, .count = count,
                             .dtype = dtype };

    return dtn_call_run(&mesh->group, &call, in, out, err);
}

int dtensor_barrier(const struct dtensor_mesh *mesh, struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_BARRIER };

    return dtn_call_run(&mesh->group, &call, NULL, NULL, err);
}

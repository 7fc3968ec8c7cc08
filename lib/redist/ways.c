/* ways.c - dtensor_call_ways(): what a collective would cost
 *
 * The model of lib/coll over the ranks of a mesh.  Of an allreduce of 1 MiB over
 * 8 ranks of 2 hosts it tells ring, tree and six more, with what each takes.
 */
#include "base/error.h"
#include "coll/choose.h"
#include "coll/redops.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/model.h"
#include "dtensor.h"

int dtensor_call_ways(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call,
                      struct dtensor_way ways[], int max, int *np,
                      struct dtensor_error *err)
{
    /* From outside any member's call does. */
    struct dtn_call c = { .coll = (enum dtn_coll)call->coll,
                          .n = mesh->group.n, .root = call->root,
                          .me = mesh->group.me < 0 ? 0 : mesh->group.me,
                          .dtype = call->dtype, .redop = call->op,
                          .count = call->count, .counts = call->counts,
                          .recv_counts = call->recv_counts };
    const struct dtn_model *model;
    int n, rc = dtn_call_check_form(&c, 0, err);

    if (rc == 0)
        rc = dtn_call_resolve(mesh->group.ctx, &c, err);
    if (rc != 0)
        return rc;
    if (max < 1)
        return dtn_fail(err, DTENSOR_EINVAL, "call ways: room for %d (at least "
                        "1 is needed)", max);
    rc = dtn_model_of(&mesh->group, &model, err);
    if (rc != 0)
        return rc;
    n = dtn_model_ways(&c, model, ways, max);
    if (np)
        *np = n;
    return 0;
}

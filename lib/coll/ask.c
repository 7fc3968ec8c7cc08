/* ask.c - a call that is only asked about: without peers, without buffers */
#include "coll/ask.h"
#include "coll/choose.h"
#include "coll/redops.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "dtensor.h"

int dtn_ask(const struct dtensor_mesh *mesh, const struct dtensor_call *call,
            struct dtn_call *asked, const struct dtn_model **modelp,
            struct dtensor_error *err)
{
    int rc;

    *asked = (struct dtn_call){
        .coll = (enum dtn_coll)call->coll, .n = mesh->group.n,
        .root = call->root, .me = mesh->group.me < 0 ? 0 : mesh->group.me,
        .dtype = call->dtype, .redop = call->op, .count = call->count,
        .counts = call->counts, .recv_counts = call->recv_counts,
        .on_device = mesh->group.on_device };
    rc = dtn_call_check_form(asked, 0, err);
    if (rc == 0)
        rc = dtn_call_resolve(mesh->group.ctx, asked, err);
    return rc ? rc : dtn_model_of(&mesh->group, modelp, err);
}

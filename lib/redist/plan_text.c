/* plan_text.c - the texts of a redistribute for logs and errors
 *
 * `text` says what moves: "redistribute S(0) -> R: exchange shm 4 ranks, 3.0
 * MiB in 3 pieces".  The part after the colon is added when the plan is made
 * ready.  `call` is for errors: "redistribute of f32[8,6] S(0) -> R on world".
 */
#include "redist/plan_text.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "dtensor.h"

#include <stdarg.h>
#include <string.h>

void dtn_redist_text_add(struct dtensor_plan *r, const char *fmt, ...)
{
    size_t used = strlen(r->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text + used, sizeof r->text - used, fmt, ap);
    va_end(ap);
}

static void text_mesh(const struct dtensor_mesh *mesh, char *buf, size_t size)
{
    if (mesh->name[0])
        snprintf(buf, size, "%s", mesh->name);
    else
        dtn_mesh_format(mesh, buf, size);
}

void dtn_redist_title(struct dtensor_plan *r)
{
    char from[DTENSOR_MAX_DIMS * 12], to[DTENSOR_MAX_DIMS * 12], shape[128];
    char mesh[2][64];

    dtensor_placements_format(r->src.mesh, r->src.placement, from,
                              sizeof from);
    dtensor_placements_format(r->dst.mesh, r->dst.placement, to, sizeof to);
    if (r->root == DTN_NO_ROOT)
        dtn_redist_text_add(r, "redistribute %s -> %s", from, to);
    else
        dtn_redist_text_add(r, "distribute to %s", to);
    dtn_spec_shape(&r->dst, shape, sizeof shape);
    text_mesh(r->src.mesh, mesh[0], sizeof mesh[0]);
    text_mesh(r->dst.mesh, mesh[1], sizeof mesh[1]);
    if (r->root != DTN_NO_ROOT)
        snprintf(r->call, sizeof r->call, "distribute of %.60s to %.40s on "
                 "%.30s with root %d", shape, to, mesh[1], r->root);
    else if (r->src.mesh == r->dst.mesh)
        snprintf(r->call, sizeof r->call, "redistribute of %.60s %.40s -> %.40s "
                 "on %.30s", shape, from, to, mesh[1]);
    else
        snprintf(r->call, sizeof r->call, "redistribute of %.60s %.40s on %.30s "
                 "-> %.40s on %.30s", shape, from, mesh[0], to, mesh[1]);
}

/* tensor.c - the object: a spec, and the local part of the elements
 *
 * The local part lies in the arena of the context, so that peers read it in
 * place.  f32[10,5] as S(0) on 4 ranks has 3, 3, 3 and 1 rows: 60, 60, 60 and
 * 20 bytes.  A rank outside the mesh also has a tensor, of 0 bytes, so that
 * programs need no special case.  So has a context that only plans.
 */
#include "tensor/tensor.h"
#include "base/error.h"
#include "coll/exec.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "random/rows.h"
#include "dtensor.h"

#include <stdlib.h>

int dtn_tensor_create(const struct dtensor_spec *spec, struct dtensor **tp,
                      struct dtensor_error *err)
{
    struct dtensor_spec made = *spec;
    struct dtensor *t;
    int rc = dtensor_spec_normalize(&made, err);
    int me;

    if (rc == 0 && made.mesh->ctx->finished)
        rc = dtn_ctx_check(made.mesh->ctx, err);
    if (rc != 0)
        return rc;
    t = calloc(1, sizeof *t);
    if (!t)
        return dtn_fail_nomem(err, "tensor", sizeof *t);
    t->spec = made;
    spec = &t->spec;
    me = spec->mesh->group.me;
    if (me >= 0 && !spec->mesh->ctx->planning)
        t->bytes = (size_t)dtn_local_numel(spec, me) *
                   dtensor_dtype_size(spec->dtype);
    if (t->bytes > 0)
        rc = dtn_ctx_alloc(spec->mesh->ctx, spec->mesh->memory, "tensor",
                           t->bytes, &t->local, err);
    if (rc != 0) {
        free(t);
        return rc;
    }
    t->holders = 1;
    dtn_tensor_renew(t);
    t->first = t->content;
    dtn_ctx_hold(spec->mesh->ctx);
    *tp = t;
    return 0;
}

void dtn_tensor_renew(struct dtensor *t)
{
    t->content = ++t->spec.mesh->ctx->contents;
}

struct dtensor *dtn_tensor_hold(const struct dtensor *t)
{
    struct dtensor *held = (struct dtensor *)t;

    held->holders++;
    return held;
}

int dtn_tensor_end_all(const struct dtensor_mesh *mesh, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err)
{
    if (rc == DTENSOR_ENOMEM)
        return dtn_call_give_up(&mesh->group, rc, why, err);
    if (rc != 0 && err)
        *err = *why;
    return rc;
}

int dtn_tensor_create_all(const struct dtensor_spec *spec, struct dtensor **tp,
                          struct dtensor_error *err)
{
    struct dtensor_error why;
    int rc = dtn_tensor_create(spec, tp, &why);

    return rc == 0 ? 0 : dtn_tensor_end_all(spec->mesh, rc, &why, err);
}

void dtensor_destroy(struct dtensor *t)
{
    struct dtensor_ctx *ctx;

    if (!t || --t->holders > 0)
        return;
    ctx = t->spec.mesh->ctx;
    dtn_ctx_free(ctx, t->local);
    free(t);
    dtn_ctx_release(ctx);
}

int dtn_tensor_replicas(const struct dtensor *t,
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err)
{
    unsigned dims = 0;

    for (int m = 0; m < t->spec.mesh->ndim; m++)
        if (t->spec.placement[m].kind == DTENSOR_REPLICATE)
            dims |= 1u << m;
    return dtn_mesh_sub(t->spec.mesh, dims, meshp, err);
}

int dtn_tensor_make(const struct dtensor *t, const struct dtn_formula *formula,
                    const void *how, struct dtensor_error *err)
{
    struct dtn_elements elements = {
        .how = how, .out_bytes = dtensor_dtype_size(t->spec.dtype) };
    struct dtn_rows rows;
    struct dtn_row row;
    int rc = 0;

    if (t->bytes == 0)
        return 0;
    dtn_rows_init(&rows, &t->spec, t->spec.mesh->group.me);
    while (rc == 0 && dtn_rows_next(&rows, &row)) {
        elements.first = row.global;
        elements.count = (size_t)row.count;
        rc = dtn_buffer_make(t->spec.mesh->ctx, formula, &elements,
                             (unsigned char *)t->local
                             + (size_t)row.local * elements.out_bytes, NULL,
                             err);
    }
    return rc;
}

int dtn_refuse_partial(const char *what, const struct dtensor_spec *spec,
                       struct dtensor_error *err)
{
    char text[400];

    if (dtn_spec_partial(spec) < 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s: no placement may be Partial "
                    "(make it of R and redistribute)", what,
                    dtn_spec_format(spec, text, sizeof text));
}

int dtn_tensor_return(struct dtensor *t, int rc, struct dtensor **tp)
{
    if (rc != 0)
        dtensor_destroy(t);
    else
        *tp = t;
    return rc;
}

size_t dtn_tensor_count(const struct dtensor *t)
{
    return t->bytes / dtensor_dtype_size(t->spec.dtype);
}

void *dtensor_to_local(const struct dtensor *t)
{
    return t->local;
}

size_t dtensor_local_bytes(const struct dtensor *t)
{
    return t->bytes;
}

const struct dtensor_spec *dtensor_spec_of(const struct dtensor *t)
{
    return &t->spec;
}

void dtensor_draw(const struct dtensor *t, FILE *stream)
{
    if (t->spec.mesh->group.me == 0)
        dtensor_spec_draw(&t->spec, stream);
}

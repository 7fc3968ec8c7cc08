/* moves.c - what the counters say of a model, in words and bytes
 *
 * The text and the JSON of "dtensor-plan module" are both made of this.
 */
#include "tools/plan/model.h"

#include <string.h>

/* Bytes of the part of the first rank of its mesh. */
static uint64_t part_bytes(const struct dtensor_spec *spec)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    uint64_t bytes = dtensor_dtype_size(spec->dtype);

    dtensor_spec_local(spec, dtensor_mesh_rank(spec->mesh, 0), shape, offset);
    for (int d = 0; d < spec->ndim; d++)
        bytes *= (uint64_t)shape[d];
    return bytes;
}

static int params_add(struct dtensor_module *module, void *bytes,
                      struct dtensor_error *err)
{
    struct dtensor *t;
    const char *name;

    (void)err;
    for (int i = 0; (t = dtensor_module_param_at(module, i, &name)); i++)
        *(uint64_t *)bytes += part_bytes(dtensor_spec_of(t));
    return 0;
}

uint64_t plan_param_bytes(const struct plan_model *model)
{
    uint64_t bytes = 0;

    dtensor_module_walk(model->top, params_add, &bytes, NULL);
    return bytes;
}

static const char *const kinds[] = {
    [DTENSOR_ALLREDUCE] = "allreduce", [DTENSOR_ALLGATHER] = "all-gather",
    [DTENSOR_REDUCE_SCATTER] = "reduce-scatter",
    [DTENSOR_ALL_TO_ALL] = "all-to-all",
    [DTENSOR_DEBUG_MESSAGES] = "send-receive",
    [DTENSOR_DEBUG_EXCHANGE] = "exchange"
};

const char *plan_kind_name(int kind)
{
    const char *name = kind >= 0 && kind < (int)PLAN_COUNT(kinds) ? kinds[kind]
                                                                   : NULL;

    return name ? name : "other";
}

const char *plan_direction_name(enum dtensor_direction direction)
{
    return direction == DTENSOR_FORWARD ? "forward" : "backward";
}

bool plan_move_next(const struct plan_model *model, const char *scope, int *ip,
                    struct dtensor_debug_line *line)
{
    while (dtensor_debug_line(model->ctx, (*ip)++, line, NULL) == 0)
        if (line->kind >= 0 && strcmp(line->scope, scope) == 0)
            return true;
    return false;
}

const char *plan_scope_of(const struct dtensor_module *module)
{
    const struct plan_unit *unit = dtensor_module_arg(module);

    return dtensor_module_parent(module) ? unit->path : "the module";
}

/* placement_format.c - placements written as text: S(0), R, P(sum)
 *
 * Writes placements in the form in which they are read, and specs as PyTorch
 * 2.15 prints them.  PyTorch shows in brackets which placement cuts a dimension
 * first: S(0),S(0) of f32[8,8] is f32[8, 8](S(0)[0]S(0)[1]).  A strided shard
 * shows its factor instead, and a spec with strided shards has no brackets:
 * SS(0,2),S(0) is f32[8, 8](_S(0, 2)S(0)).
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* Text in a buffer that may be too short; the length that it needs is counted.
 */
struct placement_text {
    char *text;
    size_t size;
    size_t used;
};

static void placement_say(struct placement_text *t, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static void placement_say(struct placement_text *t, const char *fmt, ...)
{
    const size_t room = t->used < t->size ? t->size - t->used : 0;
    va_list ap;

    va_start(ap, fmt);
    t->used += (size_t)vsnprintf(room ? t->text + t->used : NULL, room, fmt,
                                 ap);
    va_end(ap);
}

static void placement_say_one(struct placement_text *t,
                              const struct dtensor_placement *p, int n)
{
    switch (p->kind) {
    case DTENSOR_REPLICATE:
        placement_say(t, "R");
        break;
    case DTENSOR_PARTIAL:
        placement_say(t, "P(%s)", dtensor_redop_name(p->op));
        break;
    case DTENSOR_STRIDED:
        placement_say(t, "SS(%d,%lld)", p->dim, (long long)p->block);
        break;
    case DTENSOR_CYCLIC:
        placement_say(t, "C(%d,%lld)", p->dim, (long long)p->block);
        break;
    case DTENSOR_HEADTAIL:
        placement_say(t, "HT(%d)", p->dim);
        break;
    case DTENSOR_SHARD:
        placement_say(t, "S(%d", p->dim);
        for (int r = 0; p->sizes && r < n; r++)
            placement_say(t, "%s%lld", r ? "," : ":", (long long)p->sizes[r]);
        placement_say(t, ")");
        break;
    }
}

int dtensor_placements_format(const struct dtensor_mesh *mesh,
                              const struct dtensor_placement placement[],
                              char *text, size_t size)
{
    struct placement_text t = { text, size, 0 };

    if (size > 0)
        text[0] = '\0';
    for (int m = 0; m < mesh->ndim; m++) {
        placement_say(&t, "%s", m ? "," : "");
        placement_say_one(&t, &placement[m], mesh->size[m]);
    }
    return (int)t.used;
}

/* ---------------------------------------------------- as PyTorch has it --- */

/* How many placements up to mesh dimension `end` cut tensor dimension `dim`. */
static int placement_shards(const struct dtensor_spec *spec, int end, int dim)
{
    int n = 0;

    for (int m = 0; m < end; m++)
        n += dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
             spec->placement[m].dim == dim;
    return n;
}

/* Does every cut follow the chunk rule?  Only then are the cuts numbered. */
static bool placement_numbered(const struct dtensor_spec *spec)
{
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];

        if (dtn_placement_class(p) == DTENSOR_SHARD &&
            (p->kind != DTENSOR_SHARD || p->sizes))
            return false;
    }
    return true;
}

/* "S(0)[1]", "_S(0, 3)", "P(product)". */
static void placement_say_torch(struct placement_text *t,
                                const struct dtensor_spec *spec, int m,
                                bool numbered)
{
    const struct dtensor_placement *p = &spec->placement[m];

    if (p->kind == DTENSOR_STRIDED)
        placement_say(t, "_S(%d, %lld)", p->dim, (long long)p->block);
    else if (p->kind == DTENSOR_PARTIAL)
        placement_say(t, "P(%s)", dtn_redop_torch(p->op));
    else
        placement_say_one(t, p, spec->mesh->size[m]);
    if (numbered && p->kind == DTENSOR_SHARD &&
        placement_shards(spec, spec->mesh->ndim, p->dim) > 1)
        placement_say(t, "[%d]", placement_shards(spec, m, p->dim));
}

int dtensor_spec_format(const struct dtensor_spec *spec, char *text,
                        size_t size)
{
    const bool numbered = placement_numbered(spec);
    struct placement_text t = { text, size, 0 };

    if (size > 0)
        text[0] = '\0';
    placement_say(&t, "%s[", dtn_dtype_torch(spec->dtype));
    for (int d = 0; d < spec->ndim; d++)
        placement_say(&t, "%s%lld", d ? ", " : "", (long long)spec->shape[d]);
    placement_say(&t, "](");
    for (int m = 0; m < spec->mesh->ndim; m++)
        placement_say_torch(&t, spec, m, numbered);
    placement_say(&t, ")");
    return (int)t.used;
}

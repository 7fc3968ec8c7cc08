/* placement_text.c - S(0), R, P(sum), written
 *
 * Placements as they are read, and specs as PyTorch prints them: on a 4 x 2 mesh
 * SS(0,2),S(0) of f32[8,8] is f32[8, 8](S(0)[1]S(0)[0]), since the second mesh
 * dimension cuts first.
 */
#include "spec/spec.h"

#include <string.h>

/* Text in a buffer that may be too short: what it would need is counted. */
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

/* "S(0)[1]", "_S(0, 3)": as PyTorch has it.  cuts[d]: how many mesh dimensions
 * cut tensor dimension d; `place`, which of them this is, -1: none, in no order.
 */
static void placement_say_torch(struct placement_text *t,
                                const struct dtensor_placement *p, int n,
                                int place, const int cuts[])
{
    if (p->kind == DTENSOR_STRIDED && place < 0)
        placement_say(t, "_S(%d, %lld)", p->dim, (long long)p->block);
    else if (p->kind == DTENSOR_STRIDED)
        placement_say(t, "S(%d)", p->dim);
    else
        placement_say_one(t, p, n);
    if (place >= 0 && cuts[p->dim] > 1)
        placement_say(t, "[%d]", place);
}

int dtensor_spec_format(const struct dtensor_spec *spec, char *text,
                        size_t size)
{
    struct placement_text t = { text, size, 0 };
    int place[DTENSOR_MAX_DIMS], cuts[DTENSOR_MAX_DIMS] = { 0 };

    if (size > 0)
        text[0] = '\0';
    if (dtensor_spec_order(spec, place, NULL) != 0)
        memset(place, -1, sizeof place);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (place[m] >= 0)
            cuts[spec->placement[m].dim]++;
    placement_say(&t, "%s[", dtensor_dtype_name(spec->dtype));
    for (int d = 0; d < spec->ndim; d++)
        placement_say(&t, "%s%lld", d ? ", " : "", (long long)spec->shape[d]);
    placement_say(&t, "](");
    for (int m = 0; m < spec->mesh->ndim; m++)
        placement_say_torch(&t, &spec->placement[m], spec->mesh->size[m],
                            place[m], cuts);
    placement_say(&t, ")");
    return (int)t.used;
}

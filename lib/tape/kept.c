/* kept.c - counts the memory of the tensors that a tape keeps
 *
 * Several notes may keep the same tensor: y = relu(x) keeps y, and the product
 * that reads y keeps it again.  The tensor counts once, for the first note.
 */
#include "tape/tape.h"
#include "base/error.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

struct kept_tensor {
    const struct dtensor *t;      /* what is kept                             */
    const struct dtn_note *note;  /* for this call; NULL: it is watched       */
    int order;                    /* of the notes; watched ones are first     */
};

static int kept_compare(const void *a, const void *b)
{
    const struct kept_tensor *one = a, *other = b;

    if (one->t != other->t)
        return (uintptr_t)one->t < (uintptr_t)other->t ? -1 : 1;
    return one->order - other->order;
}

/* All that is watched, and all that notes keep. */
static size_t kept_list(const struct dtensor_tape *tape,
                        struct kept_tensor list[])
{
    size_t n = 0;

    for (int i = 0; i < tape->nleaves; i++)
        list[n++] = (struct kept_tensor){ tape->leaves[i].t, NULL, -1 };
    for (int i = 0; i < tape->nnotes; i++) {
        const struct dtn_note *note = tape->notes[i];

        for (int k = 0; k < note->nin + note->nout; k++)
            if (note->operand[k].kept)
                list[n++] = (struct kept_tensor){ note->operand[k].kept, note,
                                                  i };
    }
    return n;
}

static size_t kept_room(const struct dtensor_tape *tape)
{
    size_t n = (size_t)tape->nleaves + 1;

    for (int i = 0; i < tape->nnotes; i++)
        n += (size_t)(tape->notes[i]->nin + tape->notes[i]->nout);
    return n;
}

/* Tensors of a context that only plans have no bytes of their own, but those of
 * the first rank of their mesh are known.
 */
static uint64_t part_bytes(const struct dtensor *t)
{
    return !t->spec.mesh->ctx->planning ? t->bytes
         : (uint64_t)dtn_local_numel(&t->spec, 0) *
           dtensor_dtype_size(t->spec.dtype);
}

int dtensor_tape_bytes(const struct dtensor_tape *tape, const char *path,
                       uint64_t *bytesp, struct dtensor_error *err)
{
    struct kept_tensor *list;
    uint64_t bytes = 0;
    size_t n;

    if (!tape || !bytesp)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_bytes: %s is NULL",
                        tape ? "bytesp" : "tape");
    n = kept_room(tape);
    list = malloc(n * sizeof *list);
    if (!list)
        return dtn_fail_nomem(err, "tape", n * sizeof *list);
    n = kept_list(tape, list);
    qsort(list, n, sizeof *list, kept_compare);
    for (size_t i = 0; i < n; i++) {
        const struct dtn_note *note = list[i].note;

        if ((i > 0 && list[i - 1].t == list[i].t) || !note)
            continue;
        if (!path || strncmp(note->where, path, sizeof note->where - 1) == 0)
            bytes += part_bytes(list[i].t);
    }
    free(list);
    *bytesp = bytes;
    return 0;
}

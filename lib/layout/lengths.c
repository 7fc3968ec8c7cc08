/* lengths.c - shard lengths that users chose, kept by the context
 *
 * The placement S(0:3,5,2) points to three lengths.  Specs are copied freely
 * and are part of tensors and plans, so the lengths must live longer than all
 * of them.  The first spec with these lengths puts a copy here; the next spec
 * with the same lengths uses this copy.  The copies live as long as the
 * context; programs have few of them.
 */
#include "layout/lengths.h"
#include "base/error.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

struct dtn_lengths {
    struct dtn_lengths *next;
    int n;
    int64_t list[];
};

static void lengths_destroy(void *state)
{
    struct dtn_lengths *next;

    for (struct dtn_lengths *l = state; l; l = next) {
        next = l->next;
        free(l);
    }
}

int dtn_lengths_keep(struct dtensor_ctx *ctx, const int64_t lengths[], int n,
                     const int64_t **keptp, struct dtensor_error *err)
{
    const size_t bytes = (size_t)n * sizeof lengths[0];
    struct dtn_slot *slot = &ctx->slots[DTN_ROOM_LAYOUT];
    struct dtn_lengths *made;

    for (const struct dtn_lengths *l = slot->state; l; l = l->next)
        if (l->list == lengths ||
            (l->n == n && memcmp(l->list, lengths, bytes) == 0)) {
            *keptp = l->list;
            return 0;
        }
    made = malloc(sizeof *made + bytes);
    if (!made)
        return dtn_fail_nomem(err, "spec", sizeof *made + bytes);
    made->n = n;
    memcpy(made->list, lengths, bytes);
    made->next = slot->state;
    *slot = (struct dtn_slot){ .state = made, .destroy = lengths_destroy };
    *keptp = made->list;
    return 0;
}

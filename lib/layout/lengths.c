/* lengths.c - shard lengths that users chose, kept by the context
 *
 * A placement of S(0:3,5,2) points to three lengths.  Specs are copied freely
 * and live in tensors and plans, so the lengths must outlive them all: the
 * first spec that has them puts a copy here, the next one with the same three
 * finds it.  Nothing is dropped before the context is; programs have few.
 */
#include "layout/lengths.h"
#include "base/error.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

struct dtn_lengths {
    struct dtn_lengths *next;
    int n;
    int64_t list[];
};

int dtn_lengths_keep(struct dtensor_ctx *ctx, const int64_t lengths[], int n,
                     const int64_t **keptp, struct dtensor_error *err)
{
    const size_t bytes = (size_t)n * sizeof lengths[0];
    struct dtn_lengths *made;

    for (const struct dtn_lengths *l = ctx->lengths; l; l = l->next)
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
    made->next = ctx->lengths;
    ctx->lengths = made;
    *keptp = made->list;
    return 0;
}

void dtn_lengths_destroy(struct dtn_lengths *lengths)
{
    struct dtn_lengths *next;

    for (; lengths; lengths = next) {
        next = lengths->next;
        free(lengths);
    }
}

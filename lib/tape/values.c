/* values.c - the tensor contents that depend on watched tensors
 *
 * A value is found by the number of its content.  The numbers grow with time,
 * but a tensor that is watched late may have a smaller number than values that
 * the table has already.  So this is a hash table, not a sorted list.  If a
 * value has several uses, their gradients are added in the placements that they
 * have: P(sum) and P(sum) is P(sum), which is reduced once, at the end.
 */
#include "tape/values.h"
#include "base/error.h"
#include "layout/spec.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 64 };               /* of values, at first                      */

/* Where it is, or the free slot where it would be. */
static int *slot_of(const struct dtn_values *values, uint64_t content)
{
    uint64_t at = content * 0x9e3779b97f4a7c15u >> 20;

    for (;; at++) {
        int *slot = &values->slot[at & (uint64_t)(values->nslots - 1)];

        if (*slot == 0 || values->value[*slot - 1].content == content)
            return slot;
    }
}

int dtn_values_find(const struct dtn_values *values, uint64_t content)
{
    return values->n > 0 ? *slot_of(values, content) - 1 : -1;
}

int dtn_values_reserve(struct dtn_values *values, int more,
                       struct dtensor_error *err)
{
    int room = values->room > 0 ? values->room : ROOM;
    struct dtn_value *value;
    int *slot;

    while (room < values->n + more)
        room *= 2;
    if (room == values->room)
        return 0;
    value = realloc(values->value, (size_t)room * sizeof *value);
    if (!value)
        return dtn_fail_nomem(err, "tape", (size_t)room * sizeof *value);
    values->value = value;
    slot = calloc((size_t)room * 4, sizeof *slot);
    if (!slot)
        return dtn_fail_nomem(err, "tape", (size_t)room * 4 * sizeof *slot);
    free(values->slot);
    values->slot = slot;
    values->nslots = room * 4;
    values->room = room;
    for (int i = 0; i < values->n; i++)
        *slot_of(values, values->value[i].content) = i + 1;
    return 0;
}

int dtn_values_add(struct dtn_values *values, uint64_t content, int *indexp,
                   struct dtensor_error *err)
{
    int rc = dtn_values_reserve(values, 1, err);
    int *slot;

    if (rc != 0)
        return rc;
    slot = slot_of(values, content);
    if (*slot == 0) {
        values->value[values->n++] = (struct dtn_value){ content, NULL };
        *slot = values->n;
    }
    *indexp = *slot - 1;
    return 0;
}

/* *sump += grad, in place if nobody else holds it. */
static int grad_add(struct dtensor **sump, const struct dtensor *grad,
                    struct dtensor_error *err)
{
    const struct dtensor *const in[] = { *sump, grad };
    struct dtensor *sum = NULL;
    int rc;

    if ((*sump)->holders == 1 && dtn_spec_equal(&(*sump)->spec, &grad->spec))
        return dtensor_op_into("add", 2, in, NULL, 1, sump, err);
    rc = dtensor_op("add", 2, in, NULL, 1, &sum, err);
    if (rc != 0)
        return rc;
    dtensor_destroy(*sump);
    *sump = sum;
    return 0;
}

int dtn_values_give(struct dtn_values *values, int i, struct dtensor *grad,
                    struct dtensor_error *err)
{
    struct dtn_value *value = &values->value[i];
    int rc;

    if (!value->grad) {
        value->grad = grad;
        return 0;
    }
    rc = grad_add(&value->grad, grad, err);
    dtensor_destroy(grad);
    return rc;
}

void dtn_values_clear(struct dtn_values *values)
{
    for (int i = 0; i < values->n; i++)
        dtensor_destroy(values->value[i].grad);
    if (values->slot)
        memset(values->slot, 0, (size_t)values->nslots * sizeof(int));
    values->n = 0;
}

void dtn_values_free(struct dtn_values *values)
{
    dtn_values_clear(values);
    free(values->value);
    free(values->slot);
    *values = (struct dtn_values){ 0 };
}

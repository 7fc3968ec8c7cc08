/* leaves.c - watched tensors and their gradients
 *
 * A computed gradient has the placements that its operators gave it.  Example:
 * the gradient of a replicated weight whose inputs are sharded by rows is
 * P(sum).  At the end all gradients are redistributed in one batch to the
 * placements of their weights.  The batch is kept, because the next step of a
 * training needs the same one.
 */
#include "tape/tape.h"
#include "base/array.h"
#include "base/dtype.h"
#include "base/error.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/spec.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- watching --- */

static int leaf_check(const struct dtensor_tape *tape, const struct dtensor *t,
                      struct dtensor_error *err)
{
    char text[400];

    if (!tape || !t)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_watch: %s is NULL",
                        tape ? "t" : "tape");
    if (t->spec.mesh->ctx != tape->ctx)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_watch: the tensor is of "
                        "another context than the tape");
    if (dtn_dtype_kind(t->spec.dtype) == DTN_DTYPE_FLOAT)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "tape_watch: %s has no gradient (only "
                    "floats have one)", dtn_spec_format(&t->spec, text,
                                                        sizeof text));
}

static struct dtn_leaf *leaf_of(const struct dtensor_tape *tape,
                                const struct dtensor *t)
{
    for (int i = 0; i < tape->nleaves; i++)
        if (tape->leaves[i].t == t)
            return &tape->leaves[i];
    return NULL;
}

static int leaf_enter(struct dtensor_tape *tape, struct dtn_leaf *leaf,
                      struct dtensor_error *err)
{
    return leaf->value >= 0 ? 0
         : dtn_values_add(&tape->values, leaf->t->content, &leaf->value, err);
}

int dtensor_tape_watch(struct dtensor_tape *tape, const struct dtensor *t,
                       struct dtensor_error *err)
{
    int rc = leaf_check(tape, t, err);

    if (rc != 0 || leaf_of(tape, t))
        return rc;
    if (!dtn_array_reserve(&tape->leaves, &tape->leaves_room,
                           tape->nleaves + 1, sizeof tape->leaves[0]))
        return dtn_fail_nomem(err, "tape", sizeof tape->leaves[0]);
    tape->leaves[tape->nleaves] = (struct dtn_leaf){ .t = dtn_tensor_hold(t),
                                                     .value = -1 };
    if (tape->ctx->recorder == &tape->recorder)
        rc = leaf_enter(tape, &tape->leaves[tape->nleaves], err);
    if (rc != 0)
        dtensor_destroy(tape->leaves[tape->nleaves].t);
    else
        tape->nleaves++;
    return rc;
}

int dtn_leaves_enter(struct dtensor_tape *tape, struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; i < tape->nleaves && rc == 0; i++)
        rc = leaf_enter(tape, &tape->leaves[i], err);
    return rc;
}

void dtn_leaves_forget(struct dtensor_tape *tape)
{
    for (int i = 0; i < tape->nleaves; i++) {
        dtensor_destroy(tape->leaves[i].grad);
        tape->leaves[i].grad = NULL;
        tape->leaves[i].value = -1;
    }
}

static void homing_forget(struct dtn_homing *homing)
{
    dtensor_batch_destroy(homing->batch);
    free(homing->from);
    *homing = (struct dtn_homing){ 0 };
}

void dtn_leaves_destroy(struct dtensor_tape *tape)
{
    homing_forget(&tape->homing);
    for (int i = 0; i < tape->nleaves; i++)
        dtensor_destroy(tape->leaves[i].t);
    free(tape->leaves);
}

const struct dtensor *dtensor_tape_grad(const struct dtensor_tape *tape,
                                        const struct dtensor *t)
{
    const struct dtn_leaf *leaf = leaf_of(tape, t);

    return leaf ? leaf->grad : NULL;
}

/* --------------------------------------------------------------- homing --- */

/* Where the gradient of a leaf should lie. */
static struct dtensor_spec home_of(const struct dtn_leaf *leaf)
{
    return dtn_spec_reduced(leaf->t->spec);
}

static bool moves(const struct dtn_leaf *leaf)
{
    const struct dtensor_spec home = home_of(leaf);

    return leaf->grad && !dtn_spec_equal(&leaf->grad->spec, &home);
}

/* Is this the batch of these leaves? */
static bool homing_fits(const struct dtensor_tape *tape, int n)
{
    const struct dtn_homing *homing = &tape->homing;
    int at = 0;

    if (!homing->batch || homing->n != n)
        return false;
    for (int i = 0; i < tape->nleaves; i++) {
        const struct dtn_leaf *leaf = &tape->leaves[i];
        const struct dtensor_spec home = home_of(leaf);

        if (!moves(leaf))
            continue;
        if (!dtn_spec_equal(&homing->from[at], &leaf->grad->spec) ||
            !dtn_spec_equal(&homing->to[at], &home))
            return false;
        at++;
    }
    return true;
}

static int homing_plan(struct dtensor_tape *tape, int n,
                       struct dtensor_error *err)
{
    struct dtn_homing *homing = &tape->homing;
    const size_t bytes = 2 * (size_t)n * sizeof homing->from[0];
    int at = 0, rc;

    homing_forget(homing);
    homing->from = malloc(bytes);
    if (!homing->from)
        return dtn_fail_nomem(err, "tape", bytes);
    homing->to = homing->from + n;
    homing->n = n;
    for (int i = 0; i < tape->nleaves; i++)
        if (moves(&tape->leaves[i])) {
            homing->from[at] = tape->leaves[i].grad->spec;
            homing->to[at++] = home_of(&tape->leaves[i]);
        }
    rc = dtensor_batch_create(n, homing->from, homing->to, &homing->batch,
                              err);
    if (rc != 0)
        homing_forget(homing);
    return rc;
}

/* Run the batch: from the leaves' gradients to new tensors, which take their
 * places.
 */
static int homing_run(struct dtensor_tape *tape, struct dtensor **from,
                      struct dtensor **to, struct dtensor_error *err)
{
    const struct dtn_homing *homing = &tape->homing;
    int at = 0, rc = 0;

    for (int i = 0; i < homing->n && rc == 0; i++)
        rc = dtn_tensor_create_all(&homing->to[i], &to[i], err);
    for (int i = 0; i < tape->nleaves; i++)
        if (moves(&tape->leaves[i]))
            from[at++] = tape->leaves[i].grad;
    dtn_watch_cause(tape->ctx, "gradients", 0,
                    "a gradient is brought to where its tensor lies");
    if (rc == 0)
        rc = dtensor_batch_run(homing->batch,
                               (const struct dtensor *const *)from, to, err);
    for (int i = 0, k = 0; i < tape->nleaves && rc == 0; i++)
        if (moves(&tape->leaves[i])) {
            tape->leaves[i].grad = to[k];
            to[k] = from[k];
            k++;
        }
    for (int i = 0; i < homing->n; i++)
        dtensor_destroy(to[i]);
    return rc;
}

int dtn_leaves_collect(struct dtensor_tape *tape, struct dtensor_error *err)
{
    struct dtensor **tensors;
    int n = 0, rc = 0;

    for (int i = 0; i < tape->nleaves; i++) {
        struct dtn_leaf *leaf = &tape->leaves[i];
        const struct dtensor *grad = leaf->value < 0 ? NULL
            : tape->values.value[leaf->value].grad;

        leaf->grad = grad ? dtn_tensor_hold(grad) : NULL;
        if (grad)
            leaf->came = grad->spec;
        n += moves(leaf);
    }
    if (n == 0)
        return 0;
    tensors = calloc(2 * (size_t)n, sizeof tensors[0]);
    if (!tensors)
        return dtn_fail_nomem(err, "tape", 2 * (size_t)n * sizeof tensors[0]);
    if (!homing_fits(tape, n))
        rc = homing_plan(tape, n, err);
    if (rc == 0)
        rc = homing_run(tape, tensors, tensors + n, err);
    free(tensors);
    return rc;
}

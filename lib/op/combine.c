/* combine.c - what an operator accepts on all mesh dimensions together
 *
 * Each mesh dimension takes a row of its own, so that a mesh of 2 x 2 and eight
 * rows have 64 combinations.  Some of them no tensor can have: two different
 * reductions, or a dimension cut into more parts than it has elements; and an
 * operator that works in place cannot change how its first input lies.
 */
#include "op/combine.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* -------------------------------------------------------------- filters --- */

static void places(const struct dtn_options *options,
                   const struct dtn_tuple *choice, bool out, int kind,
                   struct dtensor_placement placement[])
{
    for (int m = 0; m < options->ndim; m++) {
        const struct dtn_option *option = &options->option[m][choice->at[m]];

        placement[m] = dtn_place_of(out ? &option->row->out[kind]
                                    : &option->row->in[kind], &option->shard);
    }
}

void dtn_choice_input(const struct dtn_options *options,
                      const struct dtn_tuple *choice, int i,
                      struct dtensor_placement placement[])
{
    places(options, choice, false, dtn_kind_of(options->sig, i), placement);
}

void dtn_choice_output(const struct dtn_options *options,
                       const struct dtn_tuple *choice, int i,
                       struct dtensor_placement placement[])
{
    places(options, choice, true, i < options->sig->nout ? i : 0, placement);
}

/* Would a tensor have two reductions, with the option of dimension m and those
 * chosen before?
 */
static bool mixes(const struct dtn_options *options,
                  const struct dtn_tuple *choice, int m)
{
    const struct dtn_option *now = &options->option[m][choice->at[m]];

    for (int k = 0; k < m; k++) {
        const struct dtn_option *then = &options->option[k][choice->at[k]];

        if ((now->redops ^ then->redops) & now->terms & then->terms)
            return true;
    }
    return false;
}

/* Into how many parts the choice shards dimension d of a kind of operand, by
 * its first n mesh dimensions.
 */
static int64_t parts(const struct dtn_options *options,
                     const struct dtn_tuple *choice, int n, int kind, int d)
{
    int64_t parts = 1;

    for (int m = 0; m < n; m++)
        parts *= dtn_option_parts(options, m,
                                  &options->option[m][choice->at[m]], kind, d);
    return parts;
}

/* Does each part of what mesh dimension m shards have an element?  Of the first
 * n mesh dimensions.
 */
static bool large_at(const struct dtn_options *options,
                     const struct dtn_tuple *choice, int n, int kind, int m)
{
    const struct dtn_option *option = &options->option[m][choice->at[m]];
    const struct dtn_row_place *place = &option->row->in[kind];

    return place->kind != DTENSOR_SHARD ||
           options->sig->in[kind].shape[place->dim] >=
               parts(options, choice, n, kind, place->dim);
}

static bool large(const struct dtn_options *options,
                  const struct dtn_tuple *choice, int kind)
{
    for (int m = 0; m < options->ndim; m++)
        if (!large_at(options, choice, options->ndim, kind, m))
            return false;
    return true;
}

/* Are all parts of dimension d equally large? */
static bool even(const struct dtensor_spec *spec, int d)
{
    int64_t n = 1;

    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];

        if (dtn_placement_class(p) != DTENSOR_SHARD || p->dim != d)
            continue;
        if (p->kind == DTENSOR_SHARD && p->sizes)
            return false;
        n *= spec->mesh->size[m] * (p->kind == DTENSOR_STRIDED ||
                                    p->kind == DTENSOR_CYCLIC ? p->block : 1);
    }
    return n == 1 || spec->shape[d] % n == 0;
}

/* Does the choice shard anything by lengths that were chosen? */
static bool chosen(const struct dtn_options *options,
                   const struct dtn_tuple *choice)
{
    for (int m = 0; m < options->ndim && options->lengths; m++) {
        const struct dtn_option *option = &options->option[m][choice->at[m]];

        if (option->shard.kind == DTENSOR_SHARD && option->shard.sizes)
            return true;
    }
    return false;
}

/* Lengths that were chosen must add up; reduced dimensions may have to be
 * sharded evenly.
 */
static bool fits(const struct dtn_options *options,
                 const struct dtn_tuple *choice, int i)
{
    const struct dtn_signature *sig = options->sig;
    const bool lengths = chosen(options, choice);
    struct dtensor_spec spec;

    if (!lengths && !(sig->rule->flags & DTN_RULE_EVEN))
        return true;
    spec = sig->call->in[i];
    dtn_choice_input(options, choice, i, spec.placement);
    if (lengths && !dtn_spec_lengths_fit(&spec))
        return false;
    for (int d = 0; sig->rule->flags & DTN_RULE_EVEN && d < spec.ndim; d++)
        if (sig->in[dtn_kind_of(sig, i)].inner[d] == DTN_WHOLE &&
            (!(sig->rule->reads & DTN_ARG_DIM) ||
             dtn_signature_names(sig, d)) && !even(&spec, d))
            return false;
    return true;
}

static bool stays(const struct dtn_options *options,
                  const struct dtn_tuple *choice, int i)
{
    for (int m = 0; m < options->ndim; m++)
        if (!dtn_option_same(options->sig, &options->option[m][choice->at[m]],
                             i, m))
            return false;
    return true;
}

/* Small parts that may stay were not looked at before: visit_possible(). */
static bool accepted(const struct dtn_options *options,
                     const struct dtn_tuple *choice)
{
    const struct dtn_signature *sig = options->sig;
    const bool small = options->small && sig->rule->flags & DTN_RULE_SMALL;

    if (!small && !options->lengths && !(sig->rule->flags & DTN_RULE_EVEN))
        return true;
    for (int i = 0; i < sig->call->nin; i++)
        if (!fits(options, choice, i) ||
            (small &&
             !large(options, choice, dtn_kind_of(sig, i)) &&
             !stays(options, choice, i)))
            return false;
    return true;
}

/* ---------------------------------------------------------------- visit --- */

struct visit {
    const struct dtn_options *options;           /* to combine                */
    enum dtn_which which;                        /* of them                   */
    dtn_see_f *see;                              /* the caller's function     */
    void *arg;                                   /* its argument              */
    struct dtn_tuple choice;                    /* the one being made        */
};

/* Can the first n mesh dimensions be as chosen?  All but the last can. */
static bool visit_possible(const struct visit *v, int n)
{
    if (mixes(v->options, &v->choice, n - 1))
        return false;
    if (!v->options->small || v->options->sig->rule->flags & DTN_RULE_SMALL)
        return true;
    for (int k = 0; k < v->options->sig->nin; k++)
        if (!large_at(v->options, &v->choice, n, k, n - 1))
            return false;
    return true;
}

static bool visit_shows(const struct visit *v, const struct dtn_option *option)
{
    return v->which == DTN_STILL ? option->still
         : v->which == DTN_ALL || !option->never;
}

static bool visit_dim(struct visit *v, int m)
{
    const struct dtn_options *options = v->options;

    if (m == options->ndim)
        return !accepted(options, &v->choice) || v->see(v->arg, &v->choice);
    for (int k = 0; k < options->n[m]; k++) {
        v->choice.at[m] = (unsigned char)k;
        if (visit_shows(v, &options->option[m][k]) &&
            visit_possible(v, m + 1) && !visit_dim(v, m + 1))
            return false;
    }
    return true;
}

void dtn_choices_visit(const struct dtn_options *options, enum dtn_which which,
                       dtn_see_f *see, void *arg)
{
    struct visit v = { .options = options, .which = which, .see = see,
                       .arg = arg };

    visit_dim(&v, 0);
}

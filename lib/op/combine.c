/* combine.c - what an operator accepts on all mesh dimensions together
 *
 * Each mesh dimension takes a row of its own, so that a mesh of 2 x 2 and eight
 * rows have 64 combinations.  Some of them no tensor can have: two different
 * reductions, or a dimension cut into more parts than it has elements; and an
 * operator that works in place cannot change how its first input lies.
 *
 * A shard is never made a term for an operator, nor one reduction another,
 * though a redistribute could: the output would be as large as the whole on
 * every rank.  Only an operator that works in place, and so has no choice, does
 * it.
 *
 * A row that shards a dimension holds for any way to shard it, as long as all
 * tensors are sharded in the same way: with S, and where an input is sharded
 * otherwise (SS, C, chosen lengths), also in its way.
 */
#include "op/combine.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { COMBINATIONS_MAX = 65536 };

static const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };

/* Which kind of operand an input is. */
static int kind_of(const struct dtn_signature *sig, int i)
{
    return i < sig->nin ? i : sig->nin - 1;
}

static struct dtensor_placement place_of(const struct dtn_row_place *place,
                                         const struct dtensor_placement *shard)
{
    struct dtensor_placement p = whole;

    if (place->kind == DTENSOR_SHARD) {
        p = *shard;
        p.dim = place->dim;
    } else if (place->kind == DTENSOR_PARTIAL) {
        p.kind = DTENSOR_PARTIAL;
        p.op = place->op;
    }
    return p;
}

/* How a row says that tensor t lies: an operand, or a result. */
static const struct dtn_row_place *row_place(const struct dtn_signature *sig,
                                             const struct dtn_rule_row *row,
                                             int t)
{
    return t < sig->nin ? &row->in[t] : &row->out[t - sig->nin];
}

/* The first reduction that a tensor can have together with this one. */
static uint64_t redop_first(enum dtensor_redop op)
{
    int first = 0;

    while (!dtn_redops_mix((enum dtensor_redop)first, op))
        first++;
    return (uint64_t)first;
}

/* The tensors that are terms by a row, and their reductions. */
static void option_terms(const struct dtn_signature *sig,
                         struct dtn_option *option)
{
    for (int t = 0; t < sig->nin + sig->nout; t++) {
        const struct dtn_row_place *place = row_place(sig, option->row, t);

        if (place->kind != DTENSOR_PARTIAL)
            continue;
        option->terms |= UINT64_C(15) << 4 * t;
        option->redops |= redop_first(place->op) << 4 * t;
    }
}

/* -------------------------------------------------------------- options --- */

static bool input_same(const struct dtn_signature *sig,
                       const struct dtn_option *option, int i, int m)
{
    const struct dtensor_spec *in = &sig->call->in[i];
    const struct dtensor_placement p =
        place_of(&option->row->in[kind_of(sig, i)], &option->shard);

    return dtn_placement_equal(&p, &in->placement[m], in->mesh->size[m]);
}

/* Would input i become a term, though it is sharded or of another reduction? */
static bool input_filled(const struct dtn_signature *sig,
                         const struct dtn_option *option, int i, int m)
{
    return option->row->in[kind_of(sig, i)].kind == DTENSOR_PARTIAL &&
           sig->call->in[i].placement[m].kind != DTENSOR_REPLICATE &&
           !input_same(sig, option, i, m);
}

/* A dimension that is reduced and sharded already is gathered, or left as it is
 * if the operator reduces over the ranks.
 */
static bool picks(const struct dtn_signature *sig,
                  const struct dtn_option *option, int m)
{
    const struct dtensor_placement *p = &sig->call->in[0].placement[m];

    if (!(sig->rule->flags & DTN_RULE_LOCAL_PICK) ||
        p->kind == DTENSOR_REPLICATE ||
        (p->kind != DTENSOR_PARTIAL && !dtn_signature_names(sig, p->dim)))
        return true;
    return option->row->collective ||
           option->row->in[0].kind == DTENSOR_REPLICATE;
}

static void option_add(struct dtn_options *options, int m,
                       const struct dtn_rule_row *row,
                       const struct dtensor_placement *shard)
{
    const struct dtn_signature *sig = options->sig;
    struct dtn_option *option = &options->option[m][options->n[m]];

    if (options->n[m] == DTN_OPTIONS_MAX)
        return;
    *option = (struct dtn_option){ .row = row, .shard = *shard,
                                   .still = !row->collective };
    option_terms(sig, option);
    for (int i = 0; i < sig->call->nin; i++) {
        option->still = option->still && input_same(sig, option, i, m);
        option->never = option->never || input_filled(sig, option, i, m);
    }
    if ((sig->rule->flags & DTN_RULE_STAYS && !option->still) ||
        (sig->rule->flags & DTN_RULE_INPLACE &&
         (!input_same(sig, option, 0, m) ||
          row->out[0].kind != row->in[0].kind ||
          row->out[0].dim != row->in[0].dim)) ||
        !picks(sig, option, m))
        return;
    options->n[m]++;
}

/* The rows for another kind of shard than S, which an input has where the row
 * shards it.
 */
static void options_other(struct dtn_options *options, int m,
                          const struct dtn_rule_row *row)
{
    const struct dtn_signature *sig = options->sig;
    const int first = options->n[m];

    for (int i = 0; i < sig->call->nin; i++) {
        const struct dtensor_placement *p = &sig->call->in[i].placement[m];
        const struct dtn_row_place *place = &row->in[kind_of(sig, i)];
        bool known = dtn_placement_class(p) != DTENSOR_SHARD ||
                     place->kind != DTENSOR_SHARD || place->dim != p->dim ||
                     (p->kind == DTENSOR_SHARD && !p->sizes);

        for (int k = first; k < options->n[m] && !known; k++) {
            struct dtensor_placement other = options->option[m][k].shard;

            other.dim = p->dim;
            known = dtn_placement_equal(&other, p,
                                        sig->call->in[i].mesh->size[m]);
        }
        if (!known)
            option_add(options, m, row, p);
    }
}

/* Does the option leave some input as it lies, or at level 1 all? */
static bool option_keeps(const struct dtn_options *options, int m, int k,
                         int level)
{
    const struct dtn_signature *sig = options->sig;

    for (int i = 0; i < sig->call->nin && level == 0; i++)
        if (input_same(sig, &options->option[m][k], i, m))
            return true;
    return options->option[m][k].still;
}

/* On meshes of many dimensions there would be too many combinations: leave out
 * options that move every input, and if these are still too many, those that
 * move any.  The first one, all whole, always stays.
 */
static void options_limit(struct dtn_options *options)
{
    for (int level = 0; level < 2; level++) {
        double all = 1;

        for (int m = 0; m < options->ndim; m++)
            all *= options->n[m];
        for (int m = 0; m < options->ndim && all > COMBINATIONS_MAX; m++) {
            int n = options->n[m] > 0;

            for (int k = 1; k < options->n[m]; k++)
                if (option_keeps(options, m, k, level))
                    options->option[m][n++] = options->option[m][k];
            options->n[m] = n;
        }
    }
}

/* The parts into which one option shards dimension d of a kind of operand. */
static int64_t option_parts(const struct dtn_options *options, int m,
                            const struct dtn_option *option, int kind, int d)
{
    const struct dtn_row_place *place = &option->row->in[kind];

    if (place->kind != DTENSOR_SHARD || place->dim != d)
        return 1;
    return options->sig->call->in[0].mesh->size[m] *
           (option->shard.kind == DTENSOR_STRIDED ? option->shard.block : 1);
}

/* Can a dimension be cut into more parts than it has elements? */
static bool options_small(const struct dtn_options *options, int kind, int d)
{
    int64_t parts = 1;

    for (int m = 0; m < options->ndim; m++) {
        int64_t most = 1;

        for (int k = 0; k < options->n[m]; k++) {
            const int64_t n = option_parts(options, m, &options->option[m][k],
                                           kind, d);

            most = n > most ? n : most;
        }
        parts *= most;
    }
    return parts > options->sig->in[kind].shape[d];
}

/* What no combination does need not be asked of each. */
static void options_look(struct dtn_options *options)
{
    const struct dtn_signature *sig = options->sig;

    options->reduces = options->lengths = options->small = false;
    for (int m = 0; m < options->ndim; m++)
        for (int k = 0; k < options->n[m]; k++) {
            const struct dtn_option *option = &options->option[m][k];

            options->reduces |= option->row->collective;
            options->lengths |= option->shard.kind == DTENSOR_SHARD &&
                                option->shard.sizes;
        }
    for (int kind = 0; kind < sig->nin; kind++)
        for (int d = 0; d < sig->in[kind].ndim; d++)
            options->small |= options_small(options, kind, d);
}

void dtn_options_make(const struct dtn_signature *sig,
                      const struct dtn_rowset *rows,
                      struct dtn_options *options)
{
    static const struct dtensor_placement shard = { .kind = DTENSOR_SHARD };

    options->sig = sig;
    options->ndim = sig->call->in[0].mesh->ndim;
    for (int m = 0; m < options->ndim; m++) {
        options->n[m] = 0;
        for (int k = 0; k < rows->n; k++) {
            option_add(options, m, &rows->row[k], &shard);
            if (rows->row[k].shards && !rows->row[k].plain)
                options_other(options, m, &rows->row[k]);
        }
    }
    options_limit(options);
    options_look(options);
}

/* -------------------------------------------------------------- filters --- */

static void places(const struct dtn_options *options,
                   const struct dtn_tuple *choice, bool out, int kind,
                   struct dtensor_placement placement[])
{
    for (int m = 0; m < options->ndim; m++) {
        const struct dtn_option *option = &options->option[m][choice->at[m]];

        placement[m] = place_of(out ? &option->row->out[kind]
                                    : &option->row->in[kind], &option->shard);
    }
}

void dtn_choice_input(const struct dtn_options *options,
                      const struct dtn_tuple *choice, int i,
                      struct dtensor_placement placement[])
{
    places(options, choice, false, kind_of(options->sig, i), placement);
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
        parts *= option_parts(options, m, &options->option[m][choice->at[m]],
                              kind, d);
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
        if (sig->in[kind_of(sig, i)].inner[d] == DTN_WHOLE &&
            (!(sig->rule->reads & DTN_ARG_DIM) ||
             dtn_signature_names(sig, d)) && !even(&spec, d))
            return false;
    return true;
}

static bool stays(const struct dtn_options *options,
                  const struct dtn_tuple *choice, int i)
{
    for (int m = 0; m < options->ndim; m++)
        if (!input_same(options->sig, &options->option[m][choice->at[m]], i, m))
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
             !large(options, choice, kind_of(sig, i)) &&
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

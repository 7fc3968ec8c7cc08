/* option.c - what one mesh dimension may be
 *
 * A row that shards a dimension holds for any way to shard it, as long as all
 * tensors are sharded in the same way: with S, and where an input is sharded
 * otherwise (SS, C, chosen lengths), also in its way.  Each of these is an
 * option of its own.
 *
 * A shard is never made a term for an operator, nor one reduction another,
 * though a redistribute could: the output would be as large as the whole on
 * every rank.  Only an operator that works in place, and so has no choice, does
 * it.
 */
#include "op/option.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { COMBINATIONS_MAX = 65536 };

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

bool dtn_option_same(const struct dtn_signature *sig,
                     const struct dtn_option *option, int i, int m)
{
    const struct dtensor_spec *in = &sig->call->in[i];
    const struct dtensor_placement p =
        dtn_place_of(&option->row->in[dtn_kind_of(sig, i)], &option->shard);

    return dtn_placement_equal(&p, &in->placement[m], in->mesh->size[m]);
}

/* Would input i become a term, though it is sharded or of another reduction? */
static bool input_filled(const struct dtn_signature *sig,
                         const struct dtn_option *option, int i, int m)
{
    return option->row->in[dtn_kind_of(sig, i)].kind == DTENSOR_PARTIAL &&
           sig->call->in[i].placement[m].kind != DTENSOR_REPLICATE &&
           !dtn_option_same(sig, option, i, m);
}

/* Do the inputs lie so already that the option wants some of them sharded?  A
 * replica is sharded without sending.
 */
static bool inputs_lie(const struct dtn_signature *sig,
                       const struct dtn_option *option, int m)
{
    bool lie = false;

    for (int i = 0; i < sig->call->nin; i++) {
        const bool same = dtn_option_same(sig, option, i, m);
        const enum dtensor_placement_kind kind =
            sig->call->in[i].placement[m].kind;

        if (!same && kind != DTENSOR_REPLICATE)
            return false;
        lie = lie || (same && kind != DTENSOR_REPLICATE);
    }
    return lie;
}

/* Does a result become a term, though no input is one?  If the inputs lie so
 * already, that is what the program wants.
 */
static bool option_makes(const struct dtn_signature *sig,
                         const struct dtn_option *option, int m)
{
    if (option->terms >> 4 * sig->nin == 0 || option->still)
        return false;
    for (int i = 0; i < sig->call->nin; i++)
        if (sig->call->in[i].placement[m].kind == DTENSOR_PARTIAL)
            return false;
    return !inputs_lie(sig, option, m);
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
        option->still = option->still && dtn_option_same(sig, option, i, m);
        option->never = option->never || input_filled(sig, option, i, m);
    }
    option->makes = option_makes(sig, option, m);
    if ((sig->rule->flags & DTN_RULE_STAYS && !option->still) ||
        (sig->rule->flags & DTN_RULE_INPLACE &&
         (!dtn_option_same(sig, option, 0, m) ||
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
        const struct dtn_row_place *place = &row->in[dtn_kind_of(sig, i)];
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
        if (dtn_option_same(sig, &options->option[m][k], i, m))
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

/* Can a dimension be cut into more parts than it has elements? */
static bool options_small(const struct dtn_options *options, int kind, int d)
{
    int64_t parts = 1;

    for (int m = 0; m < options->ndim; m++) {
        int64_t most = 1;

        for (int k = 0; k < options->n[m]; k++) {
            const int64_t n = dtn_option_parts(
                options, m, &options->option[m][k], kind, d);

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

    options->reduces = options->makes = false;
    options->lengths = options->small = false;
    for (int m = 0; m < options->ndim; m++)
        for (int k = 0; k < options->n[m]; k++) {
            const struct dtn_option *option = &options->option[m][k];

            options->reduces |= option->row->collective;
            options->makes |= option->makes;
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

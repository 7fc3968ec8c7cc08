/* option.h - what one mesh dimension may be */
#ifndef DTN_OP_OPTION_H
#define DTN_OP_OPTION_H

#include "op/row.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* What one mesh dimension may be: a row, sharded in one way. */
struct dtn_option {
    const struct dtn_rule_row *row;              /* of the rows               */
    struct dtensor_placement shard;              /* for SHARD in the row,     */
                                  /* whose dim holds                          */
    bool still;                   /* no input moves, nothing is sent          */
    bool never;                   /* a sharded input would become a term      */
                                  /* or has another reduction                 */
    bool makes;                   /* results become terms, though no input    */
                                  /* is one and something has to be sent      */
    uint64_t terms;               /* 4 bits for each kind of operand, then of */
                                  /* result: 15 if it is a term               */
    uint64_t redops;              /* in the same bits the reduction           */
};

enum { DTN_OPTIONS_MAX = 96 };
struct dtn_options {
    const struct dtn_signature *sig;             /* of the call               */
    int ndim;                     /* mesh dimensions                          */
    int n[DTENSOR_MAX_DIMS];      /* entries for each mesh dimension          */
    bool reduces;                 /* some options are of collective rows      */
    bool makes;                   /* some options make terms                  */
    bool lengths;                 /* some options shard by chosen lengths     */
    bool small;                   /* some combinations cut into more parts    */
                                  /* than there are elements                  */
    struct dtn_option option[DTENSOR_MAX_DIMS][DTN_OPTIONS_MAX]; /* in order  */
};

/* The options of a call; `rows` must outlive them. */
void dtn_options_make(const struct dtn_signature *sig,
                      const struct dtn_rowset *rows,
                      struct dtn_options *options);

/* Which kind of operand an input is. */
static inline int dtn_kind_of(const struct dtn_signature *sig, int i)
{
    return i < sig->nin ? i : sig->nin - 1;
}

/* The placement that a row says, sharded in this way.  It is asked some hundred
 * times for a decision.
 */
static inline struct dtensor_placement
dtn_place_of(const struct dtn_row_place *place,
             const struct dtensor_placement *shard)
{
    struct dtensor_placement p = { .kind = DTENSOR_REPLICATE };

    if (place->kind == DTENSOR_SHARD) {
        p = *shard;
        p.dim = place->dim;
    } else if (place->kind == DTENSOR_PARTIAL) {
        p.kind = DTENSOR_PARTIAL;
        p.op = place->op;
    }
    return p;
}

/* Does input i lie along mesh dimension m as the option wants it? */
bool dtn_option_same(const struct dtn_signature *sig,
                     const struct dtn_option *option, int i, int m);

/* The parts into which an option of mesh dimension m shards dimension d of a
 * kind of operand.
 */
static inline int64_t dtn_option_parts(const struct dtn_options *options, int m,
                                       const struct dtn_option *option,
                                       int kind, int d)
{
    const struct dtn_row_place *place = &option->row->in[kind];

    if (place->kind != DTENSOR_SHARD || place->dim != d)
        return 1;
    return options->sig->call->in[0].mesh->size[m] *
           (option->shard.kind == DTENSOR_STRIDED ? option->shard.block : 1);
}

#endif

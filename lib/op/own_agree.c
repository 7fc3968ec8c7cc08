/* own_agree.c - all ranks register the same operator
 *
 * Ranks with different rules would redistribute differently, and wait for each
 * other much later.  So each rank sends a hash of each of its texts, and all
 * compare them with those of rank 0: all return 0, or all the same error, which
 * names the first rank that differs, and in what.
 */
#include "op/own.h"
#include "base/error.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a rank tells the others. */
struct own_told {
    char name[32];                /* cut, if it is refused                    */
    uint64_t letters, terms, types, grads;       /* hashes; 0: NULL           */
    int32_t reduce, least;        /* as they are                              */
    int32_t functions;            /* a bit for each of local, backward        */
    int32_t refused;              /* this rank found a fault                  */
};

/* FNV-1a; never 0. */
static uint64_t text_hash(const char *text, uint64_t hash)
{
    if (!text)
        return hash;
    hash ^= 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash | 1;
}

static struct own_told told_make(const struct dtensor_op_def *def, int rc)
{
    struct own_told told = {
        .letters = text_hash(def->letters, 0),
        .terms = text_hash(def->terms, 0), .types = text_hash(def->types, 0),
        .grads = text_hash(def->keeps, 0), .reduce = (int32_t)def->reduce,
        .least = def->least, .refused = rc != 0,
        .functions = (def->local ? 1 : 0) | (def->backward ? 2 : 0) };

    for (size_t i = 0; def->name && def->name[i] &&
                       i < sizeof told.name - 1; i++)
        told.name[i] = def->name[i];
    for (int i = 0; i < DTENSOR_OP_GRADS; i++)
        told.grads = told.grads * 31 + text_hash(def->grad[i], 0);
    return told;
}

/* In what they differ; NULL: in nothing. */
static const char *differs(const struct own_told *a, const struct own_told *b)
{
    return memcmp(a->name, b->name, sizeof a->name) != 0 ? "name"
         : a->letters != b->letters ? "letters"
         : a->terms != b->terms ? "terms"
         : a->types != b->types ? "types"
         : a->reduce != b->reduce ? "reduce"
         : a->least != b->least ? "least"
         : a->functions != b->functions ? "functions"
         : a->grads != b->grads ? "gradient" : NULL;
}

static int judge(const struct own_told all[], int n, struct dtensor_error *err)
{
    for (int i = 0; i < n; i++)
        if (all[i].refused)
            return dtn_fail_rank(err, DTENSOR_EINVAL, i, "op_register: rank %d "
                                 "found a fault in its definition of %s (it "
                                 "says which)", i, all[i].name);
    for (int i = 1; i < n; i++) {
        const char *what = differs(&all[0], &all[i]);

        if (what)
            return dtn_fail_rank(err, DTENSOR_EINVAL, i, "op_register: rank %d "
                                 "registers %s, rank 0 %s: another %s (every "
                                 "rank must register the same)", i,
                                 all[i].name, all[0].name, what);
    }
    return 0;
}

/* Own faults come first. */
static int ended(int rc, const struct dtensor_error *why, int other,
                 const struct dtensor_error *others, struct dtensor_error *err)
{
    if (rc == 0 && other == 0)
        return 0;
    if (err)
        *err = rc != 0 ? *why : *others;
    return rc != 0 ? rc : other;
}

/* The exchange itself failed, as where a rank makes another call. */
static int exchange_fail(const struct own_told *mine, int rc,
                         const struct dtensor_error *why,
                         struct dtensor_error *err)
{
    if (why->rank >= 0)
        return dtn_fail_rank(err, rc, why->rank, "op_register of %s: %s",
                             mine->name, why->text);
    return dtn_fail(err, rc, "op_register of %s: %s", mine->name, why->text);
}

/* Exchange and compare. */
static int exchange(const struct dtensor_mesh *world,
                    const struct own_told *mine, struct dtensor_error *err)
{
    const size_t bytes = (size_t)world->group.n * sizeof *mine;
    struct own_told *all = malloc(bytes);
    struct dtensor_error why;
    int rc = all ? 0 : dtn_fail_nomem(&why, "op_register", bytes);

    if (rc != 0)
        return dtn_tensor_end_all(world, rc, &why, err);
    rc = dtensor_allgather(world, mine, all, sizeof *mine, DTENSOR_U8, &why);
    rc = rc == 0 ? judge(all, world->group.n, err)
                 : exchange_fail(mine, rc, &why, err);
    free(all);
    return rc;
}

int dtn_own_agree(struct dtensor_ctx *ctx, const struct dtensor_op_def *def,
                  int rc, const struct dtensor_error *why,
                  struct dtensor_error *err)
{
    const struct own_told mine = told_make(def, rc);
    const struct dtensor_mesh *world;
    const int n = ctx->planning ? 1 : dtensor_world_size(ctx);
    struct dtensor_error others;
    int other = 0;

    if (n > 1)
        other = dtensor_mesh_create(ctx, 1, &n, NULL, NULL, &world, &others);
    if (n > 1 && other == 0)
        other = exchange(world, &mine, &others);
    return ended(rc, why, other, &others, err);
}

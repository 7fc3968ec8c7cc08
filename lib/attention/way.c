/* way.c - which way attention is computed if the sequence is sharded
 *
 * The cost of a way has two parts: the bytes that it moves, except those that
 * the ring moves while its ranks compute; and the extra work of the rank that
 * has the most.  Under a causal mask the last of 4 ranks with S(2) has 7/4 of
 * an even share of the work.
 */
#include "attention/way.h"
#include "base/error.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

enum { SEQUENCE = 2 };            /* tensor dimension                         */

/* What a rank computes in a nanosecond, in multiplications with an addition.
 * More than most do, so that the ring is not thought to hide what it does not.
 */
#define PER_NS 32.0

static const char *const names[DTENSOR_ATTENTION_METHODS] = {
    "auto", "ring", "gather", "heads", "whole" };

static bool shards(const struct dtensor_placement *p, int dim)
{
    return dtn_placement_class(p) == DTENSOR_SHARD && p->dim == dim;
}

/* The one mesh dimension that shards all three sequences alike; -1: none. */
static int sequence_dim(const struct dtensor_spec in[3])
{
    int dim = -1, all = 0;

    for (int m = 0; m < in->mesh->ndim; m++)
        for (int i = 0; i < 3; i++)
            if (shards(&in[i].placement[m], SEQUENCE)) {
                all++;
                dim = m;
            }
    for (int i = 1; i < 3 && dim >= 0; i++)
        if (!dtn_placement_equal(&in[0].placement[dim], &in[i].placement[dim],
                                 in->mesh->size[dim]))
            return -1;
    return all == 3 ? dim : -1;
}

/* Has every rank as many rows of it? */
static bool even(const struct dtensor_spec *spec, int m)
{
    const int n = spec->mesh->size[m];
    const int64_t rows = spec->shape[SEQUENCE];
    struct dtn_shard shard;

    for (int r = 0; r < n; r++) {
        dtn_shard_of(&spec->placement[m], rows, n, r, &shard);
        if (dtn_shard_count(&shard) * n != rows)
            return false;
    }
    return true;
}

/* Head and tail of one length are what HT is for. */
static int balance_check(const struct dtensor_spec *spec, int m,
                         struct dtensor_error *err)
{
    const int64_t rows = spec->shape[SEQUENCE], twice = 2 * spec->mesh->size[m];
    const int64_t below = rows / twice * twice;

    if (spec->placement[m].kind != DTENSOR_HEADTAIL || rows % twice == 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "attention: a sequence of %lld has no "
                    "heads and tails of one length over %d ranks (it can be "
                    "%lld or %lld; or shard it by S(2))", (long long)rows,
                    spec->mesh->size[m], (long long)below,
                    (long long)(below + twice));
}

/* The operator with whole sequences: checks what is to be computed; the
 * results, and does all else lie where it should?
 */
static int whole_infer(const struct dtensor_spec in[3],
                       const struct dtensor_attention_options *options,
                       struct dtn_attention_way *way, bool *staysp,
                       struct dtensor_error *err)
{
    struct dtensor_spec whole[3], want[3], out[2];
    struct dtensor_op_call call = { .op = "attention", .nin = 3, .in = whole,
        .args = { .causal = options->causal, .value = options->scale } };
    struct dtensor_op_info info;
    int rc;

    for (int i = 0; i < 3; i++) {
        whole[i] = in[i];
        if (way->mesh_dim >= 0)
            whole[i].placement[way->mesh_dim] = (struct dtensor_placement){
                .kind = DTENSOR_REPLICATE };
    }
    rc = dtensor_op_infer(&call, want, 2, out, &info, err);
    call.in = in;                 /* an error shows these placements */
    if (rc == DTENSOR_EINVAL)
        dtensor_op_infer(&call, want, 2, out, &info, err);
    if (rc != 0)
        return rc;
    *staysp = true;
    for (int i = 0; i < 3; i++)
        *staysp = *staysp && dtn_spec_equal(&want[i], &whole[i]);
    way->out = out[0];
    way->lse = out[1];
    if (way->mesh_dim >= 0) {
        way->out.placement[way->mesh_dim] = in->placement[way->mesh_dim];
        way->lse.placement[way->mesh_dim] = in->placement[way->mesh_dim];
    }
    return 0;
}

/* --------------------------------------------------------------- costs --- */

static struct dtensor_spec placed(const struct dtensor_spec *spec, int m,
                                  struct dtensor_placement placement)
{
    struct dtensor_spec made = *spec;

    made.placement[m] = placement;
    return made;
}

/* Of several tensors, from where they lie to one placement on a dimension. */
static double moved(const struct dtn_cost *cost, const struct dtensor_spec *in,
                    int n, int m, struct dtensor_placement to)
{
    double ns = 0;

    for (int i = 0; i < n; i++) {
        const struct dtensor_spec dst = placed(&in[i], m, to);

        ns += dtn_redist_predict(cost, &in[i], &dst);
    }
    return ns;
}

/* The same bytes from rank to rank, each of n - 1 shifts after the one before.
 * Of the dimension of the whole mesh: every ring of it has to take one way.
 */
static double ring_ns(const struct dtn_cost *cost, double gather, int m, int n)
{
    const bool inside = cost->per_host[m] == n;

    return gather + 2 * (n - 1) * cost->model.ns[inside
        ? DTENSOR_COST_INTRA_HOPS : DTENSOR_COST_INTER_HOPS];
}

/* What a rank computes, as its share. */
static double share_ns(const struct dtensor_spec in[3],
                       const struct dtensor_attention_options *options)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    double each;

    dtensor_spec_local(&in[0], dtensor_mesh_rank(in->mesh, 0), shape, offset);
    each = (double)dtn_numel(3, shape) * (double)in[1].shape[SEQUENCE] *
           (double)(in[1].shape[3] + in[2].shape[3]);
    return (options->causal ? each / 2 : each) / PER_NS;
}

/* The part of a share that the rank with the last queries has more. */
static double lopsided(const struct dtensor_placement *p, int n, bool causal)
{
    if (!causal || p->kind == DTENSOR_HEADTAIL || p->kind == DTENSOR_CYCLIC)
        return 0;
    return (double)(n - 1) / n / (p->kind == DTENSOR_STRIDED
                                  ? (double)p->block : 1);
}

static void costs_find(const struct dtensor_spec in[3],
                       const struct dtensor_attention_options *options,
                       struct dtn_attention_way *way)
{
    const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };
    const struct dtensor_placement heads = { .kind = DTENSOR_SHARD, .dim = 1 };
    const int m = way->mesh_dim, n = way->n;
    const double share = share_ns(in, options);
    const double more = share * lopsided(&in->placement[m], n,
                                         options->causal);
    const double hides = share * (n - 1) / n;
    const struct dtensor_spec by_heads = placed(&way->out, m, heads);
    struct dtn_cost cost;
    double gather, ring;

    dtn_cost_init(in->mesh, &cost);
    gather = moved(&cost, in + 1, 2, m, whole);
    ring = ring_ns(&cost, gather, m, n);
    if (in->mesh->memory == DTENSOR_HOST) {
        way->ns[DTENSOR_ATTENTION_GATHER] = more + gather;
        if (even(&in[0], m) && even(&in[1], m))
            way->ns[DTENSOR_ATTENTION_RING] = more +
                (ring > hides ? ring - hides : 0);
    }
    if (by_heads.shape[1] % n == 0)
        way->ns[DTENSOR_ATTENTION_HEADS] = moved(&cost, in, 3, m, heads) +
            dtn_redist_predict(&cost, &by_heads, &way->out);
}

/* -------------------------------------------------------------- choice --- */

static int method_fail(const struct dtensor_spec in[3],
                       const struct dtn_attention_way *way,
                       enum dtensor_attention_method method,
                       struct dtensor_error *err)
{
    const char *name = names[method];

    if (way->mesh_dim < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: method %s needs one "
                        "mesh dimension that shards dimension 2 of queries, "
                        "keys and values alike, and nothing else to "
                        "redistribute",
                        name);
    if (method == DTENSOR_ATTENTION_HEADS)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: method heads cannot "
                        "shard %lld heads over %d ranks evenly (ring and "
                        "gather can do without)", (long long)in->shape[1],
                        way->n);
    if (in->mesh->memory != DTENSOR_HOST)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: method %s is not "
                        "computed in memory of a device (take heads)", name);
    return dtn_fail(err, DTENSOR_EINVAL, "attention: method ring needs as many "
                    "rows on each rank, but %lld queries or %lld keys are not "
                    "sharded evenly over %d ranks (take gather)",
                    (long long)in->shape[SEQUENCE],
                    (long long)in[1].shape[SEQUENCE], way->n);
}

/* Under repro only ways that have the bits of the operator. */
static void choose(struct dtn_attention_way *way, bool repro)
{
    way->method = DTENSOR_ATTENTION_WHOLE;
    way->why = repro ? "repro: the ring and gathering have other bits"
                     : "no mesh dimension shards all sequences alike";
    for (int i = repro ? DTENSOR_ATTENTION_HEADS : DTENSOR_ATTENTION_RING;
         i < DTENSOR_ATTENTION_WHOLE; i++)
        if (way->ns[i] < INFINITY && (way->method == DTENSOR_ATTENTION_WHOLE ||
                                      way->ns[i] < way->ns[way->method])) {
            way->method = (enum dtensor_attention_method)i;
            way->why = "the least predicted time";
        }
}

static int specs_check(const struct dtensor_spec in[3],
                       const struct dtensor_attention_options *options,
                       struct dtensor_error *err)
{
    if ((unsigned)options->method >= DTENSOR_ATTENTION_METHODS)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: there is no method %d "
                        "(see enum dtensor_attention_method)",
                        (int)options->method);
    for (int i = 0; i < 3; i++)
        if (!in[i].mesh || in[i].mesh != in->mesh || in[i].ndim != 4)
            return dtn_fail(err, DTENSOR_EINVAL, "attention: %s have %d "
                            "dimensions%s (4 are expected, on one mesh)",
                            i == 0 ? "queries" : i == 1 ? "keys" : "values",
                            in[i].ndim, in[i].mesh == in->mesh ? ""
                            : " and another mesh");
    if (options->causal && in[0].shape[SEQUENCE] != in[1].shape[SEQUENCE] &&
        sequence_dim(in) >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: %lld queries and %lld "
                        "keys under a causal mask (sharded sequences then "
                        "have one length)", (long long)in[0].shape[SEQUENCE],
                        (long long)in[1].shape[SEQUENCE]);
    return 0;
}

int dtn_attention_way(const struct dtensor_spec in[3],
                      const struct dtensor_attention_options *options,
                      struct dtn_attention_way *way,
                      struct dtensor_error *err)
{
    const enum dtensor_attention_method asked = options->method;
    bool stays = false;
    int rc = specs_check(in, options, err);

    *way = (struct dtn_attention_way){ .mesh_dim = -1, .n = 1, .me = -1 };
    for (int i = 0; i < DTENSOR_ATTENTION_METHODS; i++)
        way->ns[i] = INFINITY;
    if (rc != 0)
        return rc;
    way->mesh_dim = sequence_dim(in);
    for (int i = 0; i < 2 && way->mesh_dim >= 0 && rc == 0; i++)
        rc = balance_check(&in[i], way->mesh_dim, err);
    if (rc == 0)
        rc = whole_infer(in, options, way, &stays, err);
    if (rc == 0 && !stays)
        way->mesh_dim = -1;
    if (rc == 0 && way->mesh_dim >= 0)
        rc = dtn_mesh_sub(in->mesh, 1u << way->mesh_dim, &way->ring, err);
    if (rc == 0 && way->mesh_dim >= 0) {
        way->n = way->ring->group.n;
        way->me = in->mesh->group.me < 0 ? -1 : way->ring->group.me;
        costs_find(in, options, way);
    }
    if (rc != 0)
        return rc;
    choose(way, in->mesh->ctx->world.cluster->repro);
    if (asked == DTENSOR_ATTENTION_AUTO)
        return 0;
    if (asked == DTENSOR_ATTENTION_WHOLE || way->ns[asked] < INFINITY) {
        way->method = asked;
        way->why = "the program asked for it";
    } else if (in->mesh->group.n > 1) {
        return method_fail(in, way, asked, err);
    }
    return 0;
}

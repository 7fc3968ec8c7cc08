/* redistribute.c - a case of redistribute
 *
 * Element g of the global tensor, row-major, is entry g of one pattern, so
 * each rank can fill its box before and check its box after alone, row by row:
 * of 1000 x 1000 in S(1) over 4 ranks, rank 1 holds elements 250..499 of each
 * row.  Before, Partial ranks hold terms of that element; after, a Partial
 * result is first summed up with dtensor_full_tensor().
 *
 * A row of the box is as long as trailing dimensions that are not cut allow:
 * in S(0) the whole box is one row of 250,000 elements.
 */
#include "tools/bench/cross.h"
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/redistribute.h"
#include "tools/bench/session.h"
#include "tools/bench/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct redistribute {
    struct bench_job job;
    struct dtensor_spec from, to;
    struct dtensor *src, *dst;
    struct patterns patterns;
    int term;                     /* which of the terms this rank holds       */
    void *full;                   /* room for all, if `to` has a Partial      */
};

static struct redistribute *redistribute_of(struct bench_job *job)
{
    return (struct redistribute *)job;
}

/* ---------------------------------------------------------------- rows --- */

/* The box a rank holds, as rows that lie together in the global tensor. */
struct rows {
    int cut;                      /* the last dimension that is cut           */
    int64_t n, length;            /* rows, and elements in each               */
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int64_t stride[DTENSOR_MAX_DIMS];
};

static void rows_init(struct rows *rows, const struct dtensor_spec *spec,
                      int rank)
{
    int64_t stride = 1;
    int last = spec->ndim - 1, d;

    dtensor_spec_local(spec, rank, rows->shape, rows->offset);
    for (d = last; d >= 0; d--) {
        rows->stride[d] = stride;
        stride *= spec->shape[d];
    }
    while (last > 0 && rows->shape[last] == spec->shape[last])
        last--;
    rows->cut = last;
    rows->length = rows->shape[last] * rows->stride[last];
    rows->n = rows->length > 0;
    for (d = 0; d < last; d++)
        rows->n *= rows->shape[d];
}

/* Global index of the first element of row r. */
static uint64_t rows_index(const struct rows *rows, int64_t r)
{
    int64_t index = rows->offset[rows->cut] * rows->stride[rows->cut];

    for (int d = rows->cut - 1; d >= 0; d--) {
        index += (rows->offset[d] + r % rows->shape[d]) * rows->stride[d];
        r /= rows->shape[d];
    }
    return (uint64_t)index;
}

static char *rows_row(const struct rows *rows, int64_t r,
                      const struct dtensor *t)
{
    size_t elem = dtensor_dtype_size(dtensor_spec_of(t)->dtype);

    return (char *)dtensor_to_local(t) + (size_t)(r * rows->length) * elem;
}

/* ----------------------------------------------------------- job_ops --- */

static void redistribute_fill(struct bench_job *job, int64_t iter)
{
    struct redistribute *re = redistribute_of(job);
    struct rows rows;

    rows_init(&rows, &re->from, job->b->rank);
    for (int64_t r = 0; r < rows.n; r++)
        pattern_fill(&re->patterns, re->term, iter, rows_index(&rows, r),
                     (size_t)rows.length, rows_row(&rows, r, re->src));
}

static int redistribute_call(struct bench_job *job, struct dtensor_error *err)
{
    struct redistribute *re = redistribute_of(job);

    return dtensor_redistribute_into(re->src, re->dst, err);
}

/* The way that makes a tensor each time. */
static int redistribute_soak(struct bench_job *job, struct dtensor_error *err)
{
    struct redistribute *re = redistribute_of(job);
    struct dtensor *made = NULL;
    int rc = dtensor_redistribute_to(re->src, &re->to, &made, err);

    dtensor_destroy(made);
    return rc;
}

static void redistribute_read(struct bench_job *job)
{
    struct redistribute *re = redistribute_of(job);

    session_touch(job->b, dtensor_to_local(re->dst),
                  dtensor_local_bytes(re->dst));
}

static void redistribute_say(struct redistribute *re, int64_t iter,
                             uint64_t global, const void *got)
{
    const struct dtensor_spec *spec = &re->to;
    int64_t index[DTENSOR_MAX_DIMS];
    uint64_t left = global;
    char text[200];
    size_t used = 0;

    for (int d = spec->ndim - 1; d >= 0; d--) {
        index[d] = (int64_t)(left % (uint64_t)spec->shape[d]);
        left /= (uint64_t)spec->shape[d];
    }
    for (int d = 0; d < spec->ndim; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld",
                                 d ? "," : "", (long long)index[d]);
    job_say_wrong(&re->job, text, value_load(spec->dtype, got, 0),
                  pattern_value(&re->patterns, PATTERN_REDUCED, iter, global));
}

/* Compare `count` elements at `got` with those from global index on. */
static uint64_t redistribute_compare(struct redistribute *re, int64_t iter,
                                     uint64_t global, size_t count,
                                     const char *got, bool say)
{
    size_t first = 0;
    size_t wrong = pattern_check(&re->patterns, PATTERN_REDUCED, iter, global,
                                 count, got, &first);

    if (wrong && say)
        redistribute_say(re, iter, global + first,
                         got + first * re->patterns.elem_bytes);
    return wrong;
}

static int redistribute_verify(struct bench_job *job, int64_t iter, bool say,
                               uint64_t *wrongp, struct dtensor_error *err)
{
    struct redistribute *re = redistribute_of(job);
    struct rows rows;
    int rc;

    *wrongp = 0;
    if (re->full) {
        rc = dtensor_full_tensor(re->dst, re->full, job->c->bytes, err);
        if (rc == 0 && job->b->position >= 0)
            *wrongp = redistribute_compare(re, iter, 0, job->c->count,
                                           re->full, say);
        return rc;
    }
    rows_init(&rows, &re->to, job->b->rank);
    for (int64_t r = 0; r < rows.n; r++)
        *wrongp += redistribute_compare(re, iter, rows_index(&rows, r),
                                        (size_t)rows.length,
                                        rows_row(&rows, r, re->dst),
                                        say && *wrongp == 0);
    return 0;
}

static void redistribute_close(struct bench_job *job)
{
    struct redistribute *re = redistribute_of(job);

    dtensor_destroy(re->dst);
    dtensor_destroy(re->src);
    patterns_fini(&re->patterns);
    free(re->full);
    free(re);
}

static const struct job_ops redistribute_ops = {
    redistribute_fill, redistribute_call, redistribute_read,
    redistribute_verify, redistribute_soak, redistribute_close
};

/* ---------------------------------------------------------------- open --- */

/* "S(0),R,R" for a mesh of three dimensions. */
static void redistribute_default(const char *first, int mesh_ndim, char *text,
                                 size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", first);

    for (int d = 1; d < mesh_ndim; d++)
        used += (size_t)snprintf(text + used, size - used, ",R");
}

int redistribute_specs(struct bench *b, const struct bench_case *c,
                       struct dtensor_spec *from, struct dtensor_spec *to,
                       struct dtensor_error *err)
{
    int n = dtensor_mesh_ndim(b->mesh), rc;
    char text[2][64];

    redistribute_default("S(0)", n, text[0], sizeof text[0]);
    redistribute_default(c->ndim > 1 ? "S(1)" : "R", n, text[1],
                         sizeof text[1]);
    memset(from, 0, sizeof *from);
    from->mesh = b->mesh;
    from->dtype = c->dtype;
    from->ndim = c->ndim;
    memcpy(from->shape, c->shape, sizeof from->shape);
    *to = *from;
    rc = dtensor_placements_parse(b->mesh, b->opt->from ? b->opt->from
                                                        : text[0],
                                  c->ndim, from->placement, err);
    if (rc == 0)
        rc = dtensor_placements_parse(b->mesh, b->opt->to ? b->opt->to
                                                          : text[1],
                                      c->ndim, to->placement, err);
    if (rc == 0)
        rc = dtensor_spec_check(from, err);
    return rc ? rc : dtensor_spec_check(to, err);
}

/* The reduction `spec` leaves to be done, and over how many terms. */
static int redistribute_partial(const struct dtensor_spec *spec, int *nterms,
                                enum dtensor_redop *op,
                                struct dtensor_error *err)
{
    *nterms = 1;
    *op = PATTERN_NO_OP;
    for (int d = 0; d < dtensor_mesh_ndim(spec->mesh); d++) {
        const struct dtensor_placement *p = &spec->placement[d];

        if (p->kind != DTENSOR_PARTIAL)
            continue;
        if (*op != PATTERN_NO_OP && *op != p->op)
            return session_fail(err, DTENSOR_EINVAL, "--from: P(%s) and "
                                "P(%s) in one tensor: this tool checks one "
                                "reduction at a time",
                                dtensor_redop_name(*op),
                                dtensor_redop_name(p->op));
        *op = p->op;
        *nterms *= dtensor_mesh_dim_size(spec->mesh, d);
    }
    return 0;
}

/* Which of those terms world rank `rank` holds. */
static int redistribute_term(const struct dtensor_spec *spec, int rank)
{
    int coord[DTENSOR_MAX_DIMS], term = 0;

    if (!dtensor_mesh_coord(spec->mesh, rank, coord))
        return 0;
    for (int d = 0; d < dtensor_mesh_ndim(spec->mesh); d++)
        if (spec->placement[d].kind == DTENSOR_PARTIAL)
            term = term * dtensor_mesh_dim_size(spec->mesh, d) + coord[d];
    return term;
}

/* Floats made P(sum) are divided by the number of ranks: a multiple of that
 * number stays an integer.
 */
static int redistribute_scale(const struct dtensor_spec *to)
{
    int64_t scale = 1;

    for (int d = 0; d < dtensor_mesh_ndim(to->mesh); d++)
        if (to->placement[d].kind == DTENSOR_PARTIAL &&
            to->placement[d].op == DTENSOR_SUM)
            scale *= dtensor_mesh_dim_size(to->mesh, d);
    return scale <= value_limit(to->dtype) ? (int)scale : 1;
}

static bool redistribute_ends_partial(const struct redistribute *re)
{
    for (int d = 0; d < dtensor_mesh_ndim(re->to.mesh); d++)
        if (re->to.placement[d].kind == DTENSOR_PARTIAL)
            return true;
    return false;
}

static int redistribute_make(struct redistribute *re,
                             struct dtensor_error *err)
{
    const struct bench_case *c = re->job.c;
    enum dtensor_redop op;
    double total;
    int nterms, rc;

    rc = redistribute_specs(re->job.b, c, &re->from, &re->to, err);
    if (rc == 0)
        rc = redistribute_partial(&re->from, &nterms, &op, err);
    if (rc)
        return rc;
    cross_bytes(&re->from, &re->to, &total, &re->job.incoming_bytes);
    re->term = redistribute_term(&re->from, re->job.b->rank);
    if (redistribute_ends_partial(re))
        re->full = malloc((size_t)c->bytes + 1);
    if (!patterns_init(&re->patterns, c->dtype, op, nterms,
                       redistribute_scale(&re->to)) ||
        (redistribute_ends_partial(re) && !re->full))
        return session_fail(err, DTENSOR_ENOMEM, "redistribute: no memory to "
                            "check %llu bytes", (unsigned long long)c->bytes);
    rc = dtensor_zeros(&re->from, &re->src, err);
    return rc ? rc : dtensor_zeros(&re->to, &re->dst, err);
}

int redistribute_open(struct bench *b, const struct bench_case *c,
                      struct bench_job **jobp, struct dtensor_error *err)
{
    struct redistribute *re = calloc(1, sizeof *re);
    int rc;

    if (!re)
        return session_fail(err, DTENSOR_ENOMEM, "redistribute: out of memory");
    re->job = (struct bench_job){ &redistribute_ops, b, c, 0 };
    rc = redistribute_make(re, err);
    if (rc) {
        redistribute_close(&re->job);
        return rc;
    }
    *jobp = &re->job;
    return 0;
}

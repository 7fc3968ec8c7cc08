/* flat.c - a case of a collective
 *
 * Before an iteration a rank writes its whole input: `in_elems` elements of
 * its own pattern.  After it the result is checked segment by segment: of an
 * all-gather over 4 ranks there are 4, each the pattern of one source; of an
 * allreduce one, the reduced pattern.  The table in tests.c says which, and
 * what struct dtensor_call the case makes.
 */
#include "tools/bench/flat.h"
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "tools/bench/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* Every job struct begins with its struct bench_job. */
static struct flat *flat_of(struct bench_job *job)
{
    return (struct flat *)job;
}

void job_say_wrong(const struct bench_job *job, const char *index, double got,
                   double expected)
{
    fprintf(stderr, "dtensor-bench: %s %s %llu bytes: rank %d [%s]: got %.17g, "
            "expected %.17g\n", job->c->test->name,
            dtensor_dtype_name(job->c->dtype),
            (unsigned long long)job->c->bytes, job->b->rank, index, got,
            expected);
}

static void flat_fill(struct bench_job *job, int64_t iter)
{
    struct flat *f = flat_of(job);
    bool only_root = job->c->test->flags & TEST_IN_PLACE;

    if (!only_root || job->b->position == job->b->opt->root)
        pattern_fill(&f->patterns, job->b->position, iter, 0, f->in_elems,
                     f->in);
}

static int flat_call(struct bench_job *job, struct dtensor_error *err)
{
    return job->c->test->call(flat_of(job), err);
}

static void flat_read(struct bench_job *job)
{
    struct flat *f = flat_of(job);

    session_touch(job->b, f->out, f->out_elems * f->elem_bytes);
}

static void flat_say(struct flat *f, int64_t iter, const struct segment *seg,
                     size_t first)
{
    size_t at = seg->at + first;
    char index[24];

    snprintf(index, sizeof index, "%zu", at);
    job_say_wrong(&f->job, index, value_load(f->job.c->dtype, f->out, at),
                  pattern_value(&f->patterns, seg->source, iter,
                                seg->from + first));
}

static int flat_verify(struct bench_job *job, int64_t iter, bool say,
                       uint64_t *wrongp, struct dtensor_error *err)
{
    struct flat *f = flat_of(job);
    struct segment seg;
    size_t wrong, first;

    (void)err;
    *wrongp = 0;
    for (int s = 0; job->c->test->expect(f, s, &seg); s++) {
        wrong = pattern_check(&f->patterns, seg.source, iter, seg.from,
                              seg.count,
                              (char *)f->out + seg.at * f->elem_bytes, &first);
        if (wrong && say && *wrongp == 0)
            flat_say(f, iter, &seg, first);
        *wrongp += wrong;
    }
    return 0;
}

static void flat_close(struct bench_job *job)
{
    struct flat *f = flat_of(job);

    dtensor_persistent_destroy(f->persistent);
    if (f->out != f->in)
        session_free(job->b, f->out);
    session_free(job->b, f->in);
    patterns_fini(&f->patterns);
    free(f->counts);
    free(f);
}

static const struct job_ops flat_ops = {
    flat_fill, flat_call, flat_read, flat_verify, flat_call, flat_close
};

/* Ranks outside the mesh have what position 0 has. */
static int flat_me(const struct flat *f)
{
    return f->job.b->position < 0 ? 0 : f->job.b->position;
}

/* The sizes of this position's blocks, and the call they make. */
static int flat_describe(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;
    int n = f->job.b->group;

    f->counts = calloc((size_t)n, sizeof f->counts[0]);
    if (!f->counts)
        return session_fail(err, DTENSOR_ENOMEM, "%s: no memory for the "
                            "counts of %d ranks", c->test->name, n);
    for (int r = 0; r < n; r++)
        f->counts[r] = test_block(f, flat_me(f), r);
    f->call = (struct dtensor_call){
        .coll = c->test->coll, .root = (int)f->job.b->opt->root,
        .dtype = c->dtype, .count = c->count
    };
    if (c->test->flags & TEST_REDUCES)
        f->call.op = c->redop;
    if (c->test->flags & TEST_UNEVEN)
        f->call.counts = f->counts;
    if (c->test->coll == DTENSOR_ALL_TO_ALL)
        f->call.recv_counts = f->call.counts;
    return 0;
}

/* Elements of a buffer of no block, of the own, or of all. */
static size_t flat_elems(const struct flat *f, int blocks)
{
    size_t total = f->job.c->count * (size_t)f->job.b->group;

    if (blocks == 1)
        return test_block(f, 0, flat_me(f));
    return blocks == TEST_GROUP ? total : 0;
}

static int flat_buffers(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;
    int rc;

    f->elem_bytes = dtensor_dtype_size(c->dtype);
    f->in_elems = flat_elems(f, c->test->in_blocks);
    f->out_elems = flat_elems(f, c->test->out_blocks);
    if (!patterns_init(&f->patterns, c->dtype, c->redop, f->job.b->group, 1))
        return session_fail(err, DTENSOR_ENOMEM, "%s: no memory for the "
                            "patterns of %d ranks", c->test->name,
                            f->job.b->group);
    rc = session_alloc(f->job.b, f->in_elems * f->elem_bytes, &f->in, err);
    f->out = c->test->flags & TEST_IN_PLACE ? f->in : NULL;
    if (rc == 0 && !f->out)
        rc = session_alloc(f->job.b, f->out_elems * f->elem_bytes, &f->out,
                           err);
    return rc;
}

/* A collective made ready once; ranks outside the mesh have none. */
static int flat_persist(struct flat *f, struct dtensor_error *err)
{
    const struct bench *b = f->job.b;

    if (b->position < 0 || f->call.coll == DTENSOR_NCOLLECTIVES)
        return 0;
    return dtensor_persistent_create(b->mesh, &f->call, f->in, f->out,
                                     &f->persistent, err);
}

int flat_open(struct bench *b, const struct bench_case *c,
              struct bench_job **jobp, struct dtensor_error *err)
{
    struct flat *f = calloc(1, sizeof *f);
    int rc;

    if (!f)
        return session_fail(err, DTENSOR_ENOMEM, "%s: out of memory",
                            c->test->name);
    f->job = (struct bench_job){
        &flat_ops, b, c, (double)c->bytes * c->test->factor(b->group)
    };
    rc = flat_describe(f, err);
    if (rc == 0)
        rc = flat_buffers(f, err);
    if (rc == 0 && b->opt->persistent)
        rc = flat_persist(f, err);
    if (rc) {
        flat_close(&f->job);
        return rc;
    }
    *jobp = &f->job;
    return 0;
}

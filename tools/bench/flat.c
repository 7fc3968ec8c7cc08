/* flat.c - a case of a collective
 *
 * Before an iteration a rank writes its whole input: `in_elems` elements of
 * its own pattern.  After it the result is checked segment by segment: of an
 * all-gather over 4 ranks there are 4, each the pattern of one source; of an
 * allreduce one, the reduced pattern.  The table in tests.c says which.
 */
#include "tools/bench/bench.h"

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
    bool only_root = job->c->test->in_place;

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

    if (f->out != f->in)
        session_free(job->b, f->out);
    session_free(job->b, f->in);
    patterns_fini(&f->patterns);
    free(f);
}

static const struct job_ops flat_ops = {
    flat_fill, flat_call, flat_read, flat_verify, flat_call, flat_close
};

static size_t flat_elems(const struct bench_job *job, int blocks)
{
    return (size_t)job->c->count *
           (size_t)(blocks == TEST_GROUP ? job->b->group : blocks);
}

static int flat_buffers(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;
    int rc;

    if (!patterns_init(&f->patterns, c->dtype, c->redop, f->job.b->group, 1))
        return session_fail(err, DTENSOR_ENOMEM, "%s: no memory for the "
                            "patterns of %d ranks", c->test->name,
                            f->job.b->group);
    rc = session_alloc(f->job.b, f->in_elems * f->elem_bytes, &f->in, err);
    f->out = c->test->in_place ? f->in : NULL;
    if (rc == 0 && !f->out)
        rc = session_alloc(f->job.b, f->out_elems * f->elem_bytes, &f->out,
                           err);
    return rc;
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
    f->elem_bytes = dtensor_dtype_size(c->dtype);
    f->in_elems = flat_elems(&f->job, c->test->in_blocks);
    f->out_elems = flat_elems(&f->job, c->test->out_blocks);
    rc = flat_buffers(f, err);
    if (rc) {
        flat_close(&f->job);
        return rc;
    }
    *jobp = &f->job;
    return 0;
}

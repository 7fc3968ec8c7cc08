/* runs.c - which elements of one list are elements of another list
 *
 * The elements that a rank holds along a tensor dimension are an ascending
 * list, and so are those of its peer.  *Runs* describe what two lists have in
 * common: `len` contiguous elements, repeated `count` times, every step[0] from
 * at[0] on in one list and every step[1] from at[1] on in the other.  Example:
 * of 24 elements as C(0,2) over 2 ranks, rank 0 holds 0 1 4 5 8 9 .. 20 21.
 * This is one entry of 6 runs of 2 elements; they begin every 2 elements in its
 * own list and every 4 in the whole, both from 0 on.
 *
 * One operation is enough: two relations that share a list give the relation of
 * the other two lists.  It cuts a part again (whole - part - smaller part), and
 * it finds what one rank sends to another (its part - whole - the other's
 * part).  If two lists have different steps, the pattern repeats after their
 * least common multiple.  So C(0,2) over 2 against C(0,3) over 2, with steps 4
 * and 6, is computed from 12 elements, for any length.
 */
#include "layout/runs.h"
#include "base/compiler.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- lists */

void dtn_runs_init(struct dtn_runs *runs)
{
    runs->n = 0;
    runs->failed = false;
    runs->list = runs->few;
    runs->capacity = (int)DTN_COUNT(runs->few);
}

void dtn_runs_fini(struct dtn_runs *runs)
{
    if (runs->list != runs->few)
        free(runs->list);
    dtn_runs_init(runs);
}

static bool runs_grow(struct dtn_runs *runs)
{
    const size_t bytes = (size_t)runs->n * sizeof runs->list[0];
    struct dtn_run *grown = NULL;

    if (runs->capacity <= INT32_MAX / 4)
        grown = malloc(4 * bytes);
    if (!grown) {
        runs->failed = true;
        return false;
    }
    memcpy(grown, runs->list, bytes);
    if (runs->list != runs->few)
        free(runs->list);
    runs->list = grown;
    runs->capacity *= 4;
    return true;
}

/* Does this run continue the last one, as more elements or as one more
 * repetition?
 */
static bool runs_extend(struct dtn_run *last, const struct dtn_run *run)
{
    const int64_t gap[] = { run->at[0] - last->at[0],
                            run->at[1] - last->at[1] };

    if (run->count != 1)
        return false;
    if (last->count == 1 && gap[0] == last->len && gap[1] == last->len) {
        last->len += run->len;
        return true;
    }
    if (run->len != last->len || gap[0] <= 0 || gap[1] <= 0)
        return false;
    if (last->count == 1) {
        last->step[0] = gap[0];
        last->step[1] = gap[1];
    } else if (gap[0] != last->count * last->step[0] ||
               gap[1] != last->count * last->step[1]) {
        return false;
    }
    last->count++;
    return true;
}

static void runs_add(struct dtn_runs *runs, struct dtn_run run)
{
    if (run.count > 1 && run.step[0] == run.len && run.step[1] == run.len) {
        run.len *= run.count;
        run.count = 1;
    }
    if (run.count == 1)
        run.step[0] = run.step[1] = 0;
    if (runs->n > 0 && runs_extend(&runs->list[runs->n - 1], &run))
        return;
    if (runs->n == runs->capacity && !runs_grow(runs))
        return;
    runs->list[runs->n++] = run;
}

void dtn_runs_flip(struct dtn_runs *runs)
{
    for (int i = 0; i < runs->n; i++) {
        struct dtn_run *run = &runs->list[i];
        const struct dtn_run was = *run;

        run->at[0] = was.at[1];
        run->at[1] = was.at[0];
        run->step[0] = was.step[1];
        run->step[1] = was.step[0];
    }
}

void dtn_runs_span(const struct dtn_runs *runs, int64_t *startp, int64_t *endp)
{
    int64_t start = INT64_MAX, end = 0;

    for (int i = 0; i < runs->n; i++) {
        const struct dtn_run *run = &runs->list[i];
        const int64_t last = run->at[0] + (run->count - 1) * run->step[0];

        if (run->at[0] < start)
            start = run->at[0];
        if (last + run->len > end)
            end = last + run->len;
    }
    *startp = start;
    *endp = end;
}

/* --------------------------------------------------------------- meeting */

/* Runs `a` and `b` that overlap in the list that is list 0 of both.  The result
 * relates list 1 of `first` to list 1 of the other.
 */
struct meeting {
    const struct dtn_run *a;
    const struct dtn_run *b;
    bool swapped;                      /* b comes first in what comes out     */
    struct dtn_runs *out;
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The overlap of run i of a and run j of b, repeated `n` times, every `step`
 * elements in the other lists of a and b.
 */
static void meeting_add(const struct meeting *m, int64_t i, int64_t j,
                        int64_t n, int64_t a_step, int64_t b_step)
{
    const int64_t a = m->a->at[0] + i * m->a->step[0], a_end = a + m->a->len;
    const int64_t b = m->b->at[0] + j * m->b->step[0], b_end = b + m->b->len;
    const int64_t start = a > b ? a : b, end = a_end < b_end ? a_end : b_end;
    struct dtn_run run = { .len = end - start, .count = n };

    if (start >= end)
        return;
    run.at[m->swapped] = m->a->at[1] + i * m->a->step[1] + start - a;
    run.at[!m->swapped] = m->b->at[1] + j * m->b->step[1] + start - b;
    run.step[m->swapped] = a_step;
    run.step[!m->swapped] = b_step;
    runs_add(m->out, run);
}

/* The first and the last run of b that can overlap run i of a; they may be
 * outside of b.
 */
static void meeting_range(const struct meeting *m, int64_t i, int64_t *first,
                          int64_t *last)
{
    const int64_t a = m->a->at[0] + i * m->a->step[0] - m->b->at[0];

    *first = *last = 0;
    if (m->b->count == 1)
        return;
    *first = floor_div(a - m->b->len, m->b->step[0]) + 1;
    *last = floor_div(a + m->a->len - 1, m->b->step[0]);
}

/* One run of a overlaps at most a piece of a run of b, then whole runs, then
 * another piece.
 */
static void meeting_one(const struct meeting *m, int64_t i)
{
    const int64_t a = m->a->at[0] + i * m->a->step[0];
    const int64_t step = m->b->step[0];
    int64_t first, last;
    bool tail;

    meeting_range(m, i, &first, &last);
    if (first < 0)
        first = 0;
    if (last >= m->b->count)
        last = m->b->count - 1;
    if (first <= last && m->b->at[0] + first * step < a)
        meeting_add(m, i, first++, 1, 0, 0);
    tail = first <= last && m->b->at[0] + last * step + m->b->len >
                            a + m->a->len;
    last -= tail;
    if (first <= last)
        meeting_add(m, i, first, last - first + 1, step, m->b->step[1]);
    if (tail)
        meeting_add(m, i, last + 1, 1, 0, 0);
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Both repeat: the pattern is the same after `a_period` runs of a and
 * `b_period` runs of b.
 */
static void meeting_periodic(const struct meeting *m)
{
    const int64_t common = greatest_divisor(m->a->step[0], m->b->step[0]);
    const int64_t a_period = m->b->step[0] / common;
    const int64_t b_period = m->a->step[0] / common;
    int64_t first, last;

    for (int64_t i = 0; i < a_period && i < m->a->count; i++) {
        meeting_range(m, i, &first, &last);
        for (int64_t j = first; j <= last; j++) {
            const int64_t begin = j < 0 ? (b_period - 1 - j) / b_period : 0;
            const int64_t a_end = (m->a->count - 1 - i) / a_period;
            const int64_t b_end = floor_div(m->b->count - 1 - j, b_period);
            const int64_t n = (a_end < b_end ? a_end : b_end) - begin + 1;

            if (n > 0)
                meeting_add(m, i + begin * a_period, j + begin * b_period, n,
                            n > 1 ? a_period * m->a->step[1] : 0,
                            n > 1 ? b_period * m->b->step[1] : 0);
        }
    }
}

/* Approximate number of runs in the result of one period. */
static double meeting_cost(const struct dtn_run *a, const struct dtn_run *b)
{
    int64_t period;

    if (a->count == 1 || b->count == 1)
        return 1e300;
    period = b->step[0] / greatest_divisor(a->step[0], b->step[0]);
    return (double)(period < a->count ? period : a->count) *
           (2 + (double)(a->len + b->len) / (double)b->step[0]);
}

static void runs_meet_two(const struct dtn_run *a, const struct dtn_run *b,
                          struct dtn_runs *out)
{
    struct meeting m = { a, b, false, out };
    double a_cost, b_cost;

    if (a->count == 1 && b->count == 1) {
        meeting_add(&m, 0, 0, 1, 0, 0);
        return;
    }
    if (b->count < a->count)
        m = (struct meeting){ b, a, true, out };
    a_cost = meeting_cost(m.a, m.b);
    b_cost = meeting_cost(m.b, m.a);
    if (3 * (double)m.a->count <= (a_cost < b_cost ? a_cost : b_cost)) {
        for (int64_t i = 0; i < m.a->count; i++)
            meeting_one(&m, i);
        return;
    }
    if (b_cost < a_cost)
        m = (struct meeting){ m.b, m.a, !m.swapped, out };
    meeting_periodic(&m);
}

/* --------------------------------------------------------------- cutting */

void dtn_runs_shard(const struct dtn_runs *runs, const struct dtn_shard *shard,
                    struct dtn_runs *out)
{
    const struct dtn_run many = {
        .len = shard->len, .count = shard->count,
        .at = { shard->start, 0 }, .step = { shard->stride, shard->len }
    };
    const struct dtn_run last = {
        .len = shard->last_len, .count = 1,
        .at = { shard->last_start, shard->count * shard->len }
    };

    out->failed = out->failed || runs->failed;
    for (int i = 0; i < runs->n; i++) {
        if (many.len > 0 && many.count > 0)
            runs_meet_two(&many, &runs->list[i], out);
        if (last.len > 0)
            runs_meet_two(&last, &runs->list[i], out);
    }
}

/* Move `from`; it is empty afterwards. */
static void runs_take(struct dtn_runs *runs, struct dtn_runs *from)
{
    dtn_runs_fini(runs);
    *runs = *from;
    if (from->list == from->few)
        runs->list = runs->few;
    dtn_runs_init(from);
}

void dtn_part_runs(const struct dtn_part *part, int dim,
                   struct dtn_runs *runs)
{
    const struct dtensor_spec *spec = part->spec;
    const int64_t N = spec->shape[dim];
    struct dtn_runs shard;

    dtn_runs_init(runs);
    if (N > 0)
        runs_add(runs, (struct dtn_run){ .len = N, .count = 1 });
    for (int m = 0; m < spec->mesh->ndim; m++) {
        if (dtn_placement_class(&spec->placement[m]) != DTENSOR_SHARD ||
            spec->placement[m].dim != dim)
            continue;
        dtn_runs_init(&shard);
        dtn_runs_shard(runs, &part->shard[m], &shard);
        runs_take(runs, &shard);
    }
}

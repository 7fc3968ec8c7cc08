/* counted.c - what the counters say, and what they may count */
#include "tests/debug/counted.h"
#include "tests/module/tree.h"

uint64_t counted(const char *scope, enum dtensor_direction direction, int kind)
{
    struct dtensor_debug_count count;

    good(dtensor_debug_counts(job->ctx, scope, direction, kind, &count,
                              &job->err));
    return count.calls;
}

struct dtensor *zeros(const char *placements, int64_t rows)
{
    const int64_t shape[] = { rows, 8 };
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_on(&spec, world, placements, DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_zeros(&spec, &t, &job->err));
    return t;
}

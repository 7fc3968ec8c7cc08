/* life_values.c - what a life gives to each step, and what it must get */
#include "tests/job/life_values.h"

#include <stdbool.h>
#include <stdint.h>

float life_given(int rank, size_t i)
{
    return (float)((uint32_t)i % 500 + 1000 * (uint32_t)rank);
}

/* The sum of those of all n ranks. */
static float summed(int n, size_t i)
{
    return (float)n * life_given(0, i) + (float)(500 * n * (n - 1));
}

/* Element i of what rank `me` of n gets, of blocks of `count` elements. */
static float due(enum dtensor_collective coll, int n, int me, size_t count,
                 size_t i)
{
    const size_t mine = (size_t)me * count;

    switch (coll) {
    case DTENSOR_BROADCAST:      return life_given(0, i);
    case DTENSOR_REDUCE_SCATTER: return summed(n, mine + i);
    case DTENSOR_SCATTER:        return life_given(0, mine + i);
    case DTENSOR_ALLGATHER:
    case DTENSOR_GATHER:
        return life_given((int)(i / count), i % count);
    case DTENSOR_ALL_TO_ALL:
        return life_given((int)(i / count), mine + i % count);
    default:                     return summed(n, i);
    }
}

void life_expect(struct life *life, int rc, enum dtensor_collective coll,
                 size_t count, const float *out)
{
    const int n = dtensor_world_size(life->made[CTX].ctx);
    const int me = dtensor_rank(life->made[CTX].ctx);
    const bool blocks = coll == DTENSOR_ALLGATHER || coll == DTENSOR_GATHER ||
                        coll == DTENSOR_ALL_TO_ALL;
    const bool rooted = coll == DTENSOR_REDUCE || coll == DTENSOR_GATHER;

    if (rc != 0 || (rooted && me != 0))
        return;
    for (size_t i = 0; i < (blocks ? count * (size_t)n : count); i++)
        if (out[i] != due(coll, n, me, count, i))
            life->wrong = "a collective call brought wrong values";
}

/* What the tensors hold at the end: element `global` of all, `local` of a part.
 */
static float element(const struct life *life, enum name name, int64_t global,
                     int64_t local)
{
    switch (name) {
    case GIVEN:
    case SLABS:   return life_given(0, (size_t)global);
    case CHECKED:
    case PARTS:
        return life_given(dtensor_rank(life->made[CTX].ctx), (size_t)local);
    case WHOLE:   return 8;
    default:      return (float)global;
    }
}

static bool tensor_right(const struct life *life, enum name name)
{
    const struct dtensor *t = life->made[name].tensor;
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    const float *part = dtensor_to_local(t);
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtensor_spec_local(spec, dtensor_rank(life->made[CTX].ctx), shape, offset);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        if (part[i] != element(life, name, (offset[0] + i / shape[1]) *
                               spec->shape[1] + offset[1] + i % shape[1], i))
            return false;
    return true;
}

bool life_right(const struct life *life)
{
    bool right = true;

    for (int i = ROWWISE; i < NAMES; i++)
        right &= i == TERMS || tensor_right(life, (enum name)i);
    return right;
}

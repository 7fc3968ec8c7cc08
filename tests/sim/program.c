/* program.c - the collectives that simulated ranks call, by seed
 *
 * Each element says which rank sent it in which call, so a wrong one is seen.
 */
#include "tests/sim/program.h"
#include "tests/sim/job.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

enum { ELEMENTS = 1500 };

struct sim_program sim_program;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The same on all ranks. */
uint64_t sim_drawn(int call, int what, uint64_t n)
{
    return mix(sim_program.seed * 1000 + (uint64_t)call * 10 + (uint64_t)what)
         % n;
}

static int32_t element(int rank, int call, size_t i)
{
    return (int32_t)(rank * 7 + call * 3 + (int)i);
}

static int32_t sum_of(int n, int call, size_t i)
{
    return (int32_t)(7 * n * (n - 1) / 2 + n * (call * 3 + (int)i));
}

static void fill(int32_t *mem, size_t n, int rank, int call)
{
    for (size_t i = 0; i < n; i++)
        mem[i] = element(rank, call, i);
}

static int call_sum(const struct dtensor_mesh *mesh, int call, size_t count,
                    int *wrong, struct dtensor_error *err)
{
    int32_t in[ELEMENTS], out[ELEMENTS];
    int rc;

    fill(in, count, sim_rank(), call);
    rc = dtensor_allreduce(mesh, in, out, count, DTENSOR_I32, DTENSOR_SUM, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        *wrong += out[i] != sum_of(sim_job.n, call, i);
    return rc;
}

static int call_broadcast(const struct dtensor_mesh *mesh, int call,
                          size_t count, int *wrong,
                          struct dtensor_error *err)
{
    const int root = sim_program.calls == SIM_QUEUE_CALLS
                   ? 0 : (int)sim_drawn(call, 3, (uint64_t)sim_job.n);
    int32_t mem[ELEMENTS];
    int rc;

    fill(mem, count, sim_rank(), call);
    rc = dtensor_broadcast(mesh, root, mem, count, DTENSOR_I32, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        *wrong += mem[i] != element(root, call, i);
    return rc;
}

/* Each block has `each` elements, so that no more than ELEMENTS come. */
static int call_gather(const struct dtensor_mesh *mesh, int call, size_t count,
                       int *wrong, struct dtensor_error *err)
{
    const size_t each = 1 + count / (size_t)sim_job.n;
    int32_t *out = malloc((size_t)sim_job.n * each * sizeof *out);
    int32_t in[ELEMENTS + 1];
    int rc;

    fill(in, each, sim_rank(), call);
    rc = out ? dtensor_allgather(mesh, in, out, each, DTENSOR_I32, err) : 0;
    for (size_t i = 0; i < (size_t)sim_job.n * each && rc == 0; i++)
        *wrong += out[i] != element((int)(i / each), call, i % each);
    free(out);
    return rc;
}

static int call_exchange(const struct dtensor_mesh *mesh, int call,
                         size_t count, int *wrong,
                         struct dtensor_error *err)
{
    const size_t each = 1 + count / (size_t)sim_job.n;
    const size_t n = (size_t)sim_job.n * each;
    int32_t *in = malloc(2 * n * sizeof *in), *out = in + n;
    int rc;

    fill(in, n, sim_rank(), call);
    rc = dtensor_all_to_all(mesh, in, out, each, DTENSOR_I32, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        *wrong += out[i] != element((int)(i / each), call,
                                         (size_t)sim_rank() * each + i % each);
    free(in);
    return rc;
}

int sim_program_call(const struct dtensor_mesh *mesh, int call,
                    int *wrong, struct dtensor_error *err)
{
    const size_t count = 1 + sim_drawn(call, 1, sim_drawn(call, 2, 2)
                                                ? 8 : ELEMENTS);

    if (sim_program.calls == SIM_QUEUE_CALLS)
        return call_broadcast(mesh, call, 8, wrong, err);
    switch (sim_program.each ? ((uint64_t)call + sim_program.seed) % 4
                             : sim_drawn(call, 0, sim_job.n > 64 ? 3 : 5)) {
    case 0:
        return dtensor_barrier(mesh, err);
    case 1:
        return call_sum(mesh, call, count, wrong, err);
    case 2:
        return call_broadcast(mesh, call, count, wrong, err);
    case 3:
        return call_gather(mesh, call, count, wrong, err);
    default:
        return call_exchange(mesh, call, count, wrong, err);
    }
}

/* test_distribute.c - a whole array is distributed: right, and in little
 * memory
 *
 * With slabs of 4 KiB, arrays of some 10 KiB go in several slabs, of whole
 * rows and of less, to every kind of placement and from every root.  Then an
 * array of 48 MiB in ordinary memory: the linker sends allocations here
 * (--wrap), so that what each rank held at most is known.
 *
 * Without this test, the root could need a copy of the whole array, or a slab
 * could land in the wrong rows.
 */
#include "base/compiler.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "transport/arena.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <malloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------- allocations --- */

/* Bytes of the heap and of the arena; the thread that beats has its own. */
static _Thread_local size_t held, peak;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
void __real_free(void *mem);
void *__real_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void __real_dtn_arena_free(struct dtn_arena *arena, void *mem);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);
void __wrap_free(void *mem);
void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void __wrap_dtn_arena_free(struct dtn_arena *arena, void *mem);

static void *count(void *mem)
{
    if (mem)
        held += malloc_usable_size(mem);
    if (held > peak)
        peak = held;
    return mem;
}

void *__wrap_malloc(size_t size)
{
    return count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return count(__real_calloc(n, size));
}

void *__wrap_realloc(void *mem, size_t size)
{
    held -= mem ? malloc_usable_size(mem) : 0;
    return count(__real_realloc(mem, size));
}

void __wrap_free(void *mem)
{
    held -= mem ? malloc_usable_size(mem) : 0;
    __real_free(mem);
}

void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    size_t before = arena->extents.used_bytes;
    void *mem = __real_dtn_arena_alloc(arena, size);

    held += arena->extents.used_bytes - before;
    if (held > peak)
        peak = held;
    return mem;
}

void __wrap_dtn_arena_free(struct dtn_arena *arena, void *mem)
{
    size_t before = arena->extents.used_bytes;

    __real_dtn_arena_free(arena, mem);
    held -= before - arena->extents.used_bytes;
}

/* ------------------------------------------------------- right in slabs --- */

static double whole_at(int64_t i)
{
    return 12.0 * (double)(i * 7 % 1009 + 1);
}

/* Every rank ends with its part: asked of the whole, which none was given. */
static void one(struct job *job, const struct dtensor_mesh *mesh,
                const char *placements, const int64_t shape[2], int root)
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F64, .ndim = 2,
                                 .shape = { shape[0], shape[1] } };
    const int64_t n = shape[0] * shape[1];
    size_t bytes = (size_t)n * sizeof(double);
    double *full = malloc(bytes), *again = calloc(1, bytes);
    struct dtensor *t = NULL;

    for (int64_t i = 0; i < n; i++)
        full[i] = whole_at(i);
    good(dtensor_placements_parse(mesh, placements, 2, spec.placement,
                                  &job->err));
    good(dtensor_distribute(&spec, dtensor_mesh_rank(mesh, root) == job->rank ?
                            full : NULL, root, &t, &job->err));
    need(strstr(dtensor_last_plan(job->ctx), "slabs"), "not in slabs: %s",
         dtensor_last_plan(job->ctx));
    memset(full, 0, bytes);
    good(dtensor_full_tensor(t, again, bytes, &job->err));
    for (int64_t i = 0; i < n; i++)
        need(again[i] == whole_at(i),
             "%s of [%d,%d] from %d: element %d is %g, "
             "not %g", placements, (int)shape[0], (int)shape[1], root, (int)i,
             again[i], whole_at(i));
    dtensor_destroy(t);
    free(full);
    free(again);
}

static void slabs(int rank, int n, void *arg)
{
    static const int64_t shapes[][2] = { { 37, 41 }, { 2, 900 }, { 700, 3 },
        { 1, 1100 }, { 1031, 1 } };
    static const char *const lists[2][12] = {
        { "R", "S(0)", "S(1)", "P", "P(max)", "P(prod)", "C(0,2)", "C(1,1)" },
        { "R,R", "S(0),R", "R,S(1)", "S(0),S(0)", "P,R", "S(1),P", "P,P",
          "R,P(avg)", "P(max),S(0)", "SS(0,2),S(0)", "C(1,3),S(0)",
          "S(1),C(1,2)" }
    };
    struct job the_job = { .rank = rank, .n = n }, *job = &the_job;
    const int sizes[] = { 2, n / 2 };
    const struct dtensor_mesh *mesh;

    good(dtensor_init(arg, &job->ctx, &job->err));
    for (int dims = 1; dims <= (n % 2 ? 1 : 2); dims++) {
        good(dtensor_mesh_create(job->ctx, dims, dims == 1 ? &n : sizes, NULL,
                                 NULL, &mesh, &job->err));
        for (size_t s = 0; s < DTN_COUNT(shapes); s++)
            for (int i = 0; i < 12 && lists[dims - 1][i]; i++)
                one(job, mesh, lists[dims - 1][i], shapes[s],
                    (int)(s + (size_t)i) % n);
    }
    dtensor_fini(job->ctx);
}

/* Lengths that the user chose, a rank outside, and a mesh in another order. */
static void odd_slabs(int rank, int n, void *arg)
{
    static const int backward[] = { 3, 1, 0 };
    struct job the_job = { .rank = rank, .n = n }, *job = &the_job;
    const int64_t shape[] = { 37, 41 };
    const struct dtensor_mesh *mesh;

    good(dtensor_init(arg, &job->ctx, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 3 }, NULL, backward,
                             &mesh, &job->err));
    if (rank != 2)
        for (int root = 0; root < 3; root++) {
            one(job, mesh, "S(0:30,0,7)", shape, root);
            one(job, mesh, "S(1:1,20,20)", shape, root);
            one(job, mesh, "S(0)", shape, root);
        }
    dtensor_fini(job->ctx);
}

/* One rank thinks of other placements: it and the root are told, and nobody
 * gets wrong bytes.  Rank 1 may be done with its slabs before.
 */
static void mismatch(int rank, int n, void *arg)
{
    struct job the_job = { .rank = rank, .n = n }, *job = &the_job;
    static float full[6000];
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    int rc;

    good(dtensor_init(arg, &job->ctx, &job->err));
    good(dtensor_spec_init(&spec, job->ctx, "world", rank == 2 ? "S(1)" :
                           "S(0)", DTENSOR_F32, 2, (int64_t[]){ 60, 100 },
                           &job->err));
    for (int i = 0; i < 6000; i++)
        full[i] = 7;
    rc = dtensor_distribute(&spec, full, 0, &t, &job->err);
    need((rc == 0 && rank == 1) || rc == DTENSOR_EMISMATCH ||
         rc == DTENSOR_EABORT, "code %s: %s", dtensor_errname(rc),
         job->err.text);
    need((t == NULL) == (rc != 0), "a tensor was made");
    for (size_t i = 0; t && i < dtensor_local_bytes(t) / sizeof *full; i++)
        need(((const float *)dtensor_to_local(t))[i] == 7, "wrong bytes");
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------------- memory --- */

enum { ROWS = 3072, COLUMNS = 4096 };
#define MIB ((size_t)1 << 20)
#define WHOLE (sizeof(float) * ROWS * COLUMNS)

/* What a rank held at most beyond what it had before, and its own part. */
struct use {
    size_t most;
    size_t part;
};

struct want {
    const char *placements;
    const char *path;
    struct use *use;                /* of each rank, shared with the test     */
};

static void measure(int rank, int n, void *arg)
{
    const struct want *want = arg;
    struct job the_job = { .rank = rank, .n = n }, *job = &the_job;
    const int64_t shape[] = { ROWS, COLUMNS };
    struct dtensor_spec spec;
    struct dtensor *t;
    size_t before;
    float *full;

    good(dtensor_init(want->path, &job->ctx, &job->err));
    good(dtensor_spec_init(&spec, job->ctx, "world", want->placements,
                           DTENSOR_F32, 2, shape, &job->err));
    before = peak = held;
    full = rank == 1 ? malloc(WHOLE) : NULL;
    for (size_t i = 0; full && i < WHOLE / sizeof *full; i++)
        full[i] = (float)(i % 8191);
    good(dtensor_distribute(&spec, full, 1, &t, &job->err));
    want->use[rank] = (struct use){ peak - before, dtensor_local_bytes(t) };
    dtensor_destroy(t);
    free(full);
    dtensor_fini(job->ctx);
}

/* The root may hold the array, everyone the own part, and some slabs. */
static void test_memory(const char *wire, const char *placements)
{
    struct use use[4] = { 0 }, *shared;
    struct want want = { placements, ranks_file(wire, 4, NULL), NULL };
    bool small = true;

    shared = mmap(NULL, sizeof use, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    want.use = shared;
    ok(shared != MAP_FAILED && ranks_run(4, 60, measure, &want, NULL) == 0,
       "48 MiB to %s over %s", placements, wire);
    for (int r = 0; r < 4; r++) {
        size_t due = shared[r].part + (r == 1 ? WHOLE : 0);

        note("rank %d: %.1f MiB at most, %.1f above %s", r,
             (double)shared[r].most / MIB,
             (double)(shared[r].most - due) / MIB,
             r == 1 ? "array and part" : "its part");
        small = small && shared[r].most >= due &&
            shared[r].most < due + 9 * MIB;
    }
    ok(small, "no rank holds over two slabs more than array and part");
    munmap(shared, sizeof use);
    unlink(want.path);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };
    const char *path;

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        for (int n = 2; n <= 4; n++) {
            path = ranks_file(wires[w], n,
                              "[redistribute]\npipeline = 4K\n");
            ok(ranks_run(n, 60, slabs, (void *)(uintptr_t)path, NULL) == 0,
               "%d ranks over %s: every placement, slab by slab", n, wires[w]);
            if (n == 3)
                ok(ranks_run(n, 60, mismatch, (void *)(uintptr_t)path, NULL)
                   == 0, "another call of one rank is caught over %s",
                   wires[w]);
            if (n == 4)
                ok(ranks_run(n, 60, odd_slabs, (void *)(uintptr_t)path, NULL)
                   == 0, "chosen lengths, three of four ranks over %s",
                   wires[w]);
            unlink(path);
        }
        test_memory(wires[w], "S(0)");
        test_memory(wires[w], "S(1)");
    }
    test_memory("shm", "R");
    test_memory("shm", "C(1,3)");
    return done();
}

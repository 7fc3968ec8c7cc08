/* test_file.c - tensors saved and loaded again, drawn at random, by ranks
 *
 * Four ranks draw the same cases: a mesh of some of them, a dtype, a shape of 0
 * to 4 dimensions, two lists of placements.  A tensor of known bytes is saved
 * with the first, perhaps on one mesh, and loaded with the second on another.
 * The bytes in the file have to be those of the array, row-major.  A tensor of
 * several pieces for each rank is loaded by fewer ranks than have saved it.
 *
 * Without this test, a checkpoint could be read back with elements in wrong
 * places.
 */
#include "file/npy.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/rand.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORLD = 4, BYTES_MAX = 16 << 20 };

static char path[100];
static const struct dtensor_mesh *world;

static const struct dtensor_mesh *draw_mesh(struct job *job, uint64_t *state)
{
    const struct dtensor_mesh *mesh = NULL;
    int sizes[2], ranks[WORLD], left = 1 + rand_below(state, WORLD);

    for (int r = 0; r < WORLD; r++) {
        const int other = rand_below(state, r + 1);

        ranks[r] = ranks[other];
        ranks[other] = r;
    }
    sizes[0] = 1 + rand_below(state, left);
    sizes[1] = left / sizes[0];
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, ranks, &mesh,
                             &job->err));
    return mesh;
}

static void draw_placements(uint64_t *state, struct dtensor_spec *spec)
{
    for (int m = 0; m < 2; m++) {
        struct dtensor_placement *p = &spec->placement[m];
        const int kind = rand_below(state, 6);

        *p = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
        if (kind < 4 && spec->ndim > 0) {
            p->kind = kind == 3 ? DTENSOR_CYCLIC : DTENSOR_SHARD;
            p->dim = rand_below(state, spec->ndim);
            p->block = 1 + rand_below(state, 3);
        } else if (kind == 4 && spec->dtype == DTENSOR_F32) {
            p->kind = DTENSOR_PARTIAL;
            p->op = DTENSOR_SUM;
        }
    }
}

static void draw(struct job *job, uint64_t *state, struct dtensor_spec *src,
                 struct dtensor_spec *dst)
{
    *src = (struct dtensor_spec){
        .mesh = draw_mesh(job, state), .ndim = rand_below(state, 5),
        .dtype = (enum dtensor_dtype)rand_below(state, DTENSOR_NDTYPES) };
    if (rand_below(state, 2))
        src->dtype = DTENSOR_F32;
    for (int d = 0; d < src->ndim; d++)
        src->shape[d] = rand_below(state, 8);
    *dst = *src;
    if (rand_below(state, 2))
        dst->mesh = draw_mesh(job, state);
    draw_placements(state, src);
    draw_placements(state, dst);
}

static size_t bytes_of(const struct dtensor_spec *spec)
{
    size_t bytes = dtensor_dtype_size(spec->dtype);

    for (int d = 0; d < spec->ndim; d++)
        bytes *= (size_t)spec->shape[d];
    return bytes;
}

/* Bytes that are small numbers for f32, so that terms add up to them. */
static void fill(uint64_t *state, const struct dtensor_spec *spec, void *full)
{
    const size_t bytes = bytes_of(spec);

    rand_bytes(state, full, bytes);
    if (spec->dtype == DTENSOR_F32)
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)full)[i] = (float)(4 * rand_below(state, 1000));
    if (spec->dtype == DTENSOR_BOOL)
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)full)[i] &= 1;
}

/* The bytes after the header are those of the array. */
static void check_file(struct job *job, const struct dtensor_spec *spec,
                       const void *full, void *room)
{
    struct dtensor_meta meta;
    char header[DTN_NPY_MAX_BYTES];
    FILE *file = fopen(path, "rb");

    good(dtensor_file_meta(path, &meta, &job->err));
    need(meta.dtype == spec->dtype && meta.ndim == spec->ndim &&
         memcmp(meta.shape, spec->shape, sizeof meta.shape[0] *
                (size_t)meta.ndim) == 0, "the file has another shape or dtype");
    need(file && fread(header, 1, dtn_npy_format(&meta, header), file) > 0 &&
         fread(room, 1, bytes_of(spec), file) == bytes_of(spec) &&
         memcmp(room, full, bytes_of(spec)) == 0, "the file has other bytes");
    fclose(file);
}

static void save_and_load(struct job *job, const struct dtensor_spec *src,
                          const struct dtensor_spec *dst, const void *full,
                          void *room)
{
    struct dtensor *a, *b;

    good(dtensor_distribute(src, full, -1, &a, &job->err));
    good(dtensor_save(a, path, &job->err));
    good(dtensor_barrier(world, &job->err));
    check_file(job, src, full, room);
    good(dtensor_load(dst, path, &b, &job->err));
    memset(room, 1, bytes_of(dst));
    good(dtensor_full_tensor(b, room, bytes_of(dst), &job->err));
    need(dst->mesh->group.me < 0 ||
         memcmp(room, full, bytes_of(dst)) == 0, "other elements were loaded");
    good(dtensor_barrier(world, &job->err));
    dtensor_destroy(a);
    dtensor_destroy(b);
}

/* f32[3,700,1024] is 8.6 MB: 6 to 9 pieces, some of which end within a row. */
static void large(struct job *job, uint64_t *state, void *full, void *room)
{
    const int sizes[] = { 3, 1 };
    struct dtensor_spec src, dst;

    good(dtensor_spec_init(&src, job->ctx, "world", "S(1)", DTENSOR_F32, 3,
                           (const int64_t[]){ 3, 700, 1024 }, &job->err));
    fill(state, &src, full);
    dst = src;
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &dst.mesh,
                             &job->err));
    good(dtensor_placements_parse(dst.mesh, "S(2),R", 3, dst.placement,
                                  &job->err));
    save_and_load(job, &src, &dst, full, room);
    save_and_load(job, &dst, &src, full, room);
    src.shape[0] = dst.shape[0] = 1;             /* pieces of 4 MiB           */
    src.shape[1] = dst.shape[1] = 3600;
    save_and_load(job, &src, &dst, full, room);
}

static void cases(int rank, int n, void *arg)
{
    const uint64_t seed = *(const uint64_t *)arg;
    struct job the_job, *job = &the_job;
    uint64_t state = seed;
    struct dtensor_spec src, dst;
    void *full = calloc(1, BYTES_MAX), *room = calloc(1, BYTES_MAX);

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    for (int i = 0; i < rounds_of(150); i++) {
        draw(job, &state, &src, &dst);
        fill(&state, &src, full);
        save_and_load(job, &src, &dst, full, room);
    }
    large(job, &state, full, room);
    free(full);
    free(room);
    dtensor_fini(job->ctx);
}

int main(void)
{
    uint64_t seed = rand_seed(1);
    char part[sizeof path + 8];

    snprintf(path, sizeof path, "test_file.%d.npy", (int)getpid());
    ok(ranks_run(WORLD, 120, cases, &seed, NULL) == 0, "tensors are loaded as "
       "they were saved, seed %llu", (unsigned long long)seed);
    snprintf(part, sizeof part, "%s.part", path);
    ok(access(part, F_OK) != 0, "nothing else is left");
    unlink(path);
    return done();
}

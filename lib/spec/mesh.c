/* mesh.c - grids of ranks
 *
 * A mesh is sizes, names and a row-major list of ranks.  With sizes dp=2,tp=4
 * over ranks 0..7, rank 6 is position 6, coordinate (1, 2); its "tp" slice is
 * ranks 4 5 6 7, the positions that share dp=1.  Every mesh is interned in
 * its context: two with the same sizes, names and ranks are one object, so a
 * pointer compares meshes and plans can be cached by it.
 */
#include "spec/spec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

struct dtn_meshes {
    struct dtensor_mesh *first;
};

/* What a mesh is made of, before there is one. */
struct mesh_shape {
    const char *name;
    int ndim;
    int size[DTENSOR_MAX_DIMS];
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
    int nranks;
    const int *ranks;                  /* NULL: 0, 1, 2, ...                  */
};

/* ------------------------------------------------------------- interning --- */

static int mesh_shape_rank(const struct mesh_shape *shape, int i)
{
    return shape->ranks ? shape->ranks[i] : i;
}

/* The same grid, whatever it is called. */
static bool mesh_is(const struct dtensor_mesh *mesh,
                    const struct mesh_shape *shape)
{
    if (mesh->ndim != shape->ndim || mesh->group.n != shape->nranks)
        return false;
    for (int d = 0; d < mesh->ndim; d++)
        if (mesh->size[d] != shape->size[d] ||
            strcmp(mesh->dim_name[d], shape->dim_name[d]) != 0)
            return false;
    for (int i = 0; i < mesh->group.n; i++)
        if (mesh->ranks[i] != mesh_shape_rank(shape, i))
            return false;
    return true;
}

/* One made by a program may be one of the file's; one of the file's must have
 * its own name, or be still without one.
 */
static const struct dtensor_mesh *mesh_known(const struct dtn_meshes *meshes,
                                             const struct mesh_shape *shape)
{
    for (const struct dtensor_mesh *m = meshes->first; m; m = m->next)
        if ((!shape->name[0] || strcmp(m->name, shape->name) == 0) &&
            mesh_is(m, shape))
            return m;
    return NULL;
}

static int mesh_add(struct dtensor_ctx *ctx, const struct mesh_shape *shape,
                    const struct dtensor_mesh **meshp,
                    struct dtensor_error *err)
{
    size_t size = sizeof(struct dtensor_mesh) +
                  (size_t)shape->nranks * sizeof(int);
    struct dtensor_mesh *mesh = calloc(1, size), **end;

    if (!mesh)
        return dtn_fail_nomem(err, "mesh", size);
    mesh->ctx = ctx;
    snprintf(mesh->name, sizeof mesh->name, "%s", shape->name);
    mesh->ndim = shape->ndim;
    memcpy(mesh->size, shape->size, sizeof mesh->size);
    memcpy(mesh->dim_name, shape->dim_name, sizeof mesh->dim_name);
    mesh->group.ctx = ctx;
    mesh->group.n = shape->nranks;
    mesh->group.ranks = mesh->ranks;
    for (int i = 0; i < shape->nranks; i++)
        mesh->ranks[i] = mesh_shape_rank(shape, i);
    mesh->group.me = dtensor_mesh_index(mesh, ctx->self.rank);
    mesh->group.hash = XXH32(mesh->ranks, size - sizeof *mesh,
                             (uint32_t)shape->nranks);
    for (end = &ctx->meshes->first; *end;)     /* the file's stay in front   */
        end = &(*end)->next;
    *end = mesh;
    *meshp = mesh;
    return 0;
}

static int mesh_intern(struct dtensor_ctx *ctx, const struct mesh_shape *shape,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err)
{
    const struct dtensor_mesh *known = mesh_known(ctx->meshes, shape);

    if (!known)
        return mesh_add(ctx, shape, meshp, err);
    *meshp = known;
    return 0;
}

/* ------------------------------------------------------- from the file --- */

static int mesh_from_def(struct dtensor_ctx *ctx,
                         const struct dtn_mesh_def *def,
                         struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh;
    struct mesh_shape shape = {
        .name = def->name, .ndim = def->ndim,
        .nranks = def->nranks, .ranks = def->ranks
    };

    memcpy(shape.size, def->size, sizeof shape.size);
    memcpy(shape.dim_name, def->dim_name, sizeof shape.dim_name);
    return mesh_intern(ctx, &shape, &mesh, err);
}

static const struct dtensor_mesh *mesh_named(const struct dtensor_ctx *ctx,
                                             const char *name)
{
    for (const struct dtensor_mesh *m = ctx->meshes->first; m; m = m->next)
        if (m->name[0] && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = ctx->cluster;
    const struct dtensor_mesh *mesh;
    struct mesh_shape world = {
        .name = "world", .ndim = 1, .size = { cluster->world_size },
        .dim_name = { "world" }, .nranks = cluster->world_size
    };
    int rc = 0;

    ctx->meshes = calloc(1, sizeof *ctx->meshes);
    if (!ctx->meshes)
        return dtn_fail_nomem(err, "mesh", sizeof *ctx->meshes);
    for (int i = 0; rc == 0 && i < cluster->nmeshes; i++)
        rc = mesh_from_def(ctx, &cluster->meshes[i], err);
    if (rc == 0 && !mesh_named(ctx, "world"))
        rc = mesh_intern(ctx, &world, &mesh, err);
    if (rc != 0) {
        dtn_meshes_destroy(ctx->meshes);
        ctx->meshes = NULL;
    }
    return rc;
}

void dtn_meshes_destroy(struct dtn_meshes *meshes)
{
    struct dtensor_mesh *next;

    if (!meshes)
        return;
    for (struct dtensor_mesh *m = meshes->first; m; m = next) {
        next = m->next;
        free(m);
    }
    free(meshes);
}

/* "world, replica0": the file's meshes, for messages. */
static char *mesh_list(const struct dtensor_ctx *ctx, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (const struct dtensor_mesh *m = ctx->meshes->first; m; m = m->next)
        if (m->name[0] && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                     used ? ", " : "", m->name);
    return buf;
}

int dtensor_mesh_find(struct dtensor_ctx *ctx, const char *name,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = mesh_named(ctx, name);
    char list[256];

    if (!mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no mesh \"%s\" (there "
                        "are: %s)", name, mesh_list(ctx, list, sizeof list));
    *meshp = mesh;
    return 0;
}

/* --------------------------------------------------------------- names --- */

/* Take the next word of "dp, tp" off *textp into `word`; false at the end.
 * A word too long is cut, which no valid name survives.
 */
static bool mesh_next_word(const char **textp, char *word, size_t size)
{
    const char *begin = *textp, *end;

    if (!begin)
        return false;
    end = begin + strcspn(begin, ",");
    *textp = *end ? end + 1 : NULL;
    begin += strspn(begin, " ");
    while (end > begin && end[-1] == ' ')
        end--;
    snprintf(word, size, "%.*s", (int)(end - begin), begin);
    return true;
}

/* The index of a dimension name, or -1. */
static int mesh_dim_find(const char names[][DTENSOR_NAME_MAX + 1], int n,
                         const char *word)
{
    for (int d = 0; d < n; d++)
        if (strcmp(names[d], word) == 0)
            return d;
    return -1;
}

static int mesh_fail_names(const char *text, int ndim,
                           struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: names \"%.80s\" do not fit %d "
                    "dimensions (give one for each, or NULL)", text, ndim);
}

static int mesh_parse_names(const char *text, struct mesh_shape *shape,
                            struct dtensor_error *err)
{
    char word[DTENSOR_NAME_MAX + 2];
    int n = 0;

    for (const char *p = text; mesh_next_word(&p, word, sizeof word); n++) {
        if (n == shape->ndim)
            return mesh_fail_names(text, shape->ndim, err);
        if (!word[0] || strlen(word) > DTENSOR_NAME_MAX)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: name %d of \"%.80s\" "
                            "is empty or over %d characters", n + 1, text,
                            DTENSOR_NAME_MAX);
        if (mesh_dim_find(shape->dim_name, n, word) >= 0)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension name \"%s\" "
                            "is given twice in \"%.80s\"", word, text);
        strcpy(shape->dim_name[n], word);
    }
    return n == shape->ndim ? 0 : mesh_fail_names(text, shape->ndim, err);
}

/* -------------------------------------------------------------- create --- */

/* Fill in the sizes and their product, at most the world's size. */
static int mesh_count(struct mesh_shape *shape, const int sizes[], int world,
                      struct dtensor_error *err)
{
    int64_t n = 1;

    for (int d = 0; d < shape->ndim; d++) {
        if (sizes[d] < 1)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: size %d of dimension "
                            "%d; expected 1 or more", sizes[d], d);
        shape->size[d] = sizes[d];
        n *= sizes[d];                    /* below 2^31 * 2^31, checked next */
        if (n > world)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: sizes up to "
                            "dimension %d need %lld ranks, but the world has "
                            "%d", d, (long long)n, world);
    }
    shape->nranks = (int)n;
    return 0;
}

/* Every rank must be one of the world, and appear once. */
static int mesh_check_ranks(const struct mesh_shape *shape, int world,
                            struct dtensor_error *err)
{
    bool *seen;
    int bad = -1;

    if (!shape->ranks)
        return 0;
    seen = calloc((size_t)world, sizeof *seen);
    if (!seen)
        return dtn_fail_nomem(err, "mesh", (size_t)world);
    for (int i = 0; bad < 0 && i < shape->nranks; i++) {
        int rank = shape->ranks[i];

        if (rank < 0 || rank >= world || seen[rank])
            bad = i;
        else
            seen[rank] = true;
    }
    free(seen);
    if (bad < 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: rank %d at position %d is %s",
                    shape->ranks[bad], bad,
                    shape->ranks[bad] < 0 || shape->ranks[bad] >= world ?
                    "not in the world" : "listed twice");
}

int dtensor_mesh_create(struct dtensor_ctx *ctx, int ndim, const int sizes[],
                        const char *names, const int ranks[],
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err)
{
    struct mesh_shape shape = { .name = "", .ndim = ndim, .ranks = ranks };
    int world = ctx->cluster->world_size;
    int rc;

    if (ndim < 1 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: %d dimensions; expected 1 "
                        "to %d", ndim, DTENSOR_MAX_DIMS);
    rc = mesh_count(&shape, sizes, world, err);
    if (rc == 0 && names)
        rc = mesh_parse_names(names, &shape, err);
    if (rc == 0)
        rc = mesh_check_ranks(&shape, world, err);
    if (rc == 0)
        rc = mesh_intern(ctx, &shape, meshp, err);
    return rc;
}

/* --------------------------------------------------------------- slice --- */

int dtn_mesh_sub(const struct dtensor_mesh *mesh, unsigned dims,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err)
{
    struct mesh_shape shape = { .name = "", .nranks = 1 };
    int base[DTENSOR_MAX_DIMS], coord[DTENSOR_MAX_DIMS];
    int *ranks, n = 0, rc;

    for (int d = 0; d < mesh->ndim; d++)
        if (dims >> d & 1) {
            shape.size[shape.ndim] = mesh->size[d];
            strcpy(shape.dim_name[shape.ndim++], mesh->dim_name[d]);
            shape.nranks *= mesh->size[d];
        }
    ranks = calloc((size_t)shape.nranks, sizeof *ranks);
    if (!ranks)
        return dtn_fail_nomem(err, "mesh", (size_t)shape.nranks * sizeof *ranks);
    dtn_mesh_coord_of(mesh, mesh->group.me < 0 ? 0 : mesh->group.me, base);
    for (int i = 0; i < mesh->group.n; i++) {
        bool shared = true;

        dtn_mesh_coord_of(mesh, i, coord);
        for (int d = 0; d < mesh->ndim; d++)
            shared = shared && (dims >> d & 1 || coord[d] == base[d]);
        if (shared)
            ranks[n++] = mesh->ranks[i];
    }
    shape.ranks = ranks;
    rc = mesh_intern(mesh->ctx, &shape, meshp, err);
    free(ranks);
    return rc;
}

/* One more dimension of a slice: `word` must come after all before it. */
static int mesh_slice_dim(const struct dtensor_mesh *mesh, const char *word,
                          unsigned *dims, struct dtensor_error *err)
{
    int d = mesh_dim_find(mesh->dim_name, mesh->ndim, word);
    char own[128];

    if (d < 0 || !word[0])
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no dimension \"%s\" to "
                        "slice in %s", word,
                        dtn_mesh_format(mesh, own, sizeof own));
    if (*dims >> d & 1)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension \"%s\" is named "
                        "twice in a slice", word);
    if (*dims >> d)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension \"%s\" is out "
                        "of order in a slice of %s (name them in the mesh's "
                        "order)", word, dtn_mesh_format(mesh, own, sizeof own));
    *dims |= 1u << d;
    return 0;
}

int dtensor_mesh_slice(const struct dtensor_mesh *mesh, const char *names,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err)
{
    char word[DTENSOR_NAME_MAX + 2];
    unsigned dims = 0;
    int rc = 0;

    if (!mesh->dim_name[0][0])
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: cannot slice by \"%.80s\" "
                        "a mesh whose dimensions have no names", names);
    while (rc == 0 && mesh_next_word(&names, word, sizeof word))
        rc = mesh_slice_dim(mesh, word, &dims, err);
    if (rc != 0)
        return rc;
    if (dims + 1 == 1u << mesh->ndim) {
        *meshp = mesh;
        return 0;
    }
    return dtn_mesh_sub(mesh, dims, meshp, err);
}

/* ------------------------------------------------------------- queries --- */

int dtensor_mesh_ndim(const struct dtensor_mesh *mesh)
{
    return mesh->ndim;
}

int dtensor_mesh_size(const struct dtensor_mesh *mesh)
{
    return mesh->group.n;
}

int dtensor_mesh_dim_size(const struct dtensor_mesh *mesh, int dim)
{
    return dim >= 0 && dim < mesh->ndim ? mesh->size[dim] : 0;
}

const char *dtensor_mesh_dim_name(const struct dtensor_mesh *mesh, int dim)
{
    return dim >= 0 && dim < mesh->ndim ? mesh->dim_name[dim] : "";
}

int dtensor_mesh_rank(const struct dtensor_mesh *mesh, int i)
{
    return i >= 0 && i < mesh->group.n ? mesh->ranks[i] : -1;
}

int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank)
{
    int guess = rank - mesh->ranks[0];       /* right for consecutive ranks  */

    if (guess >= 0 && guess < mesh->group.n && mesh->ranks[guess] == rank)
        return guess;
    for (int i = 0; i < mesh->group.n; i++)
        if (mesh->ranks[i] == rank)
            return i;
    return -1;
}

void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[])
{
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coord[d] = index % mesh->size[d];
        index /= mesh->size[d];
    }
}

int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[])
{
    int index = dtensor_mesh_index(mesh, rank);

    if (index < 0)
        return 0;
    dtn_mesh_coord_of(mesh, index, coord);
    return 1;
}

char *dtn_mesh_format(const struct dtensor_mesh *mesh, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s",
                                   mesh->name[0] ? mesh->name : "mesh");

    for (int d = 0; d < mesh->ndim && used < size; d++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s%s%d%s",
                                 d ? "," : "(", mesh->dim_name[d],
                                 mesh->dim_name[d][0] ? "=" : "",
                                 mesh->size[d],
                                 d + 1 < mesh->ndim ? "" : ")");
    return buf;
}

/* load.c - reads a tensor from a file
 *
 * All ranks look at the file, and continue only if they see the same contents.
 * Then each rank reads its slabs (slabs.c), and the slabs are redistributed to
 * the placements that the program asked for.  A rank reads all bytes that a
 * checksum covers, even if it needs only some of them.  If 4 ranks wrote the
 * file and 3 read it, some pieces are needed by two ranks; both read them.
 */
#include "base/error.h"
#include "file/agree.h"
#include "file/bytes.h"
#include "file/file.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/redist.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------- the pieces --- */

struct load {
    struct dtn_file file;         /* what is read                             */
    unsigned char *elements;      /* of this rank's slabs                     */
    struct dtn_sum *sums;         /* of the whole file                        */
    unsigned char *piece;         /* room for one that is not all of this     */
                                  /* rank; NULL: none was needed              */
    uint64_t found;               /* bytes that checksums cover, of the slabs */
};

/* The bytes that slab i and [at, at + bytes) have in common; 0: none.  *atp is
 * the first.
 */
static uint64_t load_common(const struct dtn_slabs *slabs, int64_t i,
                            uint64_t at, uint64_t bytes, uint64_t *atp)
{
    const uint64_t start = slabs->at + (uint64_t)i * slabs->step;
    const uint64_t first = start > at ? start : at;
    const uint64_t end = start + slabs->bytes < at + bytes
                       ? start + slabs->bytes : at + bytes;

    *atp = first;
    return first < end ? end - first : 0;
}

/* The first slab that does not end before `at`. */
static int64_t load_first(const struct dtn_slabs *slabs, uint64_t at)
{
    const uint64_t end = slabs->at + slabs->bytes;

    return at < end || slabs->step == 0
         ? 0 : (int64_t)((at - end) / slabs->step + 1);
}

/* Where byte `at` of slab i is in the rank's part. */
static unsigned char *load_place(const struct load *load, int64_t i,
                                 uint64_t at)
{
    const struct dtn_slabs *slabs = &load->file.slabs;

    return load->elements + (uint64_t)i * slabs->bytes +
           (at - slabs->at - (uint64_t)i * slabs->step);
}

static int load_bad(const struct load *load, const struct dtn_sum *sum,
                    struct dtensor_error *err)
{
    char words[400];

    return dtn_fail(err, DTENSOR_EINVAL, "%s: bytes %llu to %llu do not have "
                    "their checksum (the file is damaged: use another copy)",
                    dtn_file_words(load->file.spec.mesh->ctx, "load",
                                   load->file.path, words, sizeof words),
                    (unsigned long long)(load->file.map.header_bytes + sum->at),
                    (unsigned long long)(load->file.map.header_bytes + sum->at +
                                         sum->bytes - 1));
}

static int load_fail(const struct load *load, struct dtensor_error *err)
{
    return dtn_file_fail_sys(load->file.spec.mesh->ctx, err, "load",
                             load->file.path, "");
}

/* Read a piece to `to` and compare its checksum. */
static int load_read(const struct load *load, const struct dtn_sum *stored,
                     unsigned char *to, struct dtensor_error *err)
{
    const struct dtn_sum sum = dtn_sum_decode(stored);

    if (dtn_bytes_pread(load->file.fd, to, (size_t)sum.bytes,
                        load->file.map.header_bytes + sum.at) != 0)
        return load_fail(load, err);
    return dtn_sum_fits(stored, to) ? 0 : load_bad(load, &sum, err);
}

/* Read a piece of which some bytes are of this rank, and copy these. */
static int load_parts(struct load *load, const struct dtn_sum *stored,
                      int64_t i, struct dtensor_error *err)
{
    const struct dtn_slabs *slabs = &load->file.slabs;
    const struct dtn_sum sum = dtn_sum_decode(stored);
    uint64_t at, bytes;
    int rc;

    if (!load->piece)
        load->piece = malloc(DTN_SUM_PIECE_BYTES);
    if (!load->piece)
        return dtn_fail_nomem(err, "load", DTN_SUM_PIECE_BYTES);
    rc = load_read(load, stored, load->piece, err);
    for (; rc == 0 && i < slabs->count; i++) {
        bytes = load_common(slabs, i, sum.at, sum.bytes, &at);
        if (bytes == 0)
            break;
        memcpy(load_place(load, i, at), load->piece + (at - sum.at), bytes);
        load->found += bytes;
    }
    return rc;
}

/* Read what this rank needs of a piece. */
static int load_piece(struct load *load, const struct dtn_sum *stored,
                      struct dtensor_error *err)
{
    const struct dtn_slabs *slabs = &load->file.slabs;
    const struct dtn_sum sum = dtn_sum_decode(stored);
    const int64_t i = load_first(slabs, sum.at);
    uint64_t at, bytes;

    if (sum.bytes > DTN_SUM_PIECE_BYTES ||
        sum.at > load->file.map.data_bytes ||
        sum.bytes > load->file.map.data_bytes - sum.at)
        return load_bad(load, &sum, err);
    bytes = i < slabs->count
          ? load_common(slabs, i, sum.at, sum.bytes, &at) : 0;
    if (bytes == 0)
        return 0;
    if (bytes < sum.bytes)
        return load_parts(load, stored, i, err);
    load->found += bytes;
    return load_read(load, stored, load_place(load, i, at), err);
}

/* The checksums of the whole file, which are checked too. */
static int load_sums(struct load *load, struct dtensor_error *err)
{
    const struct dtn_file_map *map = &load->file.map;
    const size_t bytes = (size_t)map->sums * sizeof *load->sums;
    const struct dtn_sum all = { dtn_sums_at(map) - map->header_bytes, bytes,
                                 0 };

    load->sums = malloc(bytes + 1);
    if (!load->sums)
        return dtn_fail_nomem(err, "load", bytes);
    if (dtn_bytes_pread(load->file.fd, load->sums, bytes,
                        dtn_sums_at(map)) != 0)
        return load_fail(load, err);
    return dtn_file_hash(load->sums, bytes) == map->sums_hash
         ? 0 : load_bad(load, &all, err);
}

/* A file without checksums. */
static int load_plain(const struct load *load, struct dtensor_error *err)
{
    const struct dtn_slabs *slabs = &load->file.slabs;

    for (int64_t i = 0; i < slabs->count; i++)
        if (dtn_bytes_pread(load->file.fd,
                            load->elements + (uint64_t)i * slabs->bytes,
                            slabs->bytes, load->file.map.header_bytes +
                            slabs->at + (uint64_t)i * slabs->step) != 0)
            return load_fail(load, err);
    return 0;
}

static int load_slabs(struct load *load, struct dtensor_error *err)
{
    const struct dtn_slabs *slabs = &load->file.slabs;
    const struct dtn_file_map *map = &load->file.map;
    int rc;

    if (map->sums == 0)
        return load_plain(load, err);
    rc = load_sums(load, err);
    for (uint64_t i = 0; rc == 0 && i < map->sums; i++)
        rc = load_piece(load, &load->sums[i], err);
    if (rc == 0 && load->found != (uint64_t)slabs->count * slabs->bytes)
        rc = dtn_file_fail(&load->file, load->file.spec.mesh->ctx, "its "
                           "checksums do not cover its elements (it is "
                           "damaged: use another copy)", err);
    return rc;
}

/* ------------------------------------------------------------ all ranks --- */

/* Is the file's tensor the one of the spec? */
static int load_check(struct load *load, struct dtensor_error *err)
{
    struct dtn_file *file = &load->file;
    struct dtensor_spec in_file = file->spec;
    struct dtensor_meta meta;
    char have[120], want[120], words[400];
    int rc = dtn_file_look(file, file->spec.mesh->ctx, &meta, err);

    if (rc != 0)
        return rc;
    in_file.dtype = meta.dtype;
    in_file.ndim = meta.ndim;
    memcpy(in_file.shape, meta.shape, sizeof in_file.shape);
    if (dtn_spec_same_tensor(&in_file, &file->spec))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s has %s, but the spec is of %s "
                    "(see dtensor_file_meta)",
                    dtn_file_words(file->spec.mesh->ctx, "load", file->path,
                                   words, sizeof words),
                    dtn_spec_shape(&in_file, have, sizeof have),
                    dtn_spec_shape(&file->spec, want, sizeof want));
}

/* A number for what is in the file, whoever opens it. */
static uint64_t load_seen(const struct load *load)
{
    const uint64_t seen[] = { load->file.map.header_hash,
                              load->file.map.sums,
                              load->file.map.sums_hash };

    return dtn_file_hash(seen, sizeof seen);
}

/* Read this rank's slabs. */
static int load_read_all(struct load *load, struct dtensor_error *err)
{
    struct dtn_file *file = &load->file;
    const struct dtensor_mesh *mesh = file->spec.mesh;
    struct dtensor_error why;
    size_t bytes;
    int rc = load_check(load, &why);

    rc = dtn_file_agree(mesh, "load", rc, &why, load_seen(load), err);
    if (rc != 0)
        return rc;
    dtn_slabs_of(&file->spec, mesh->group.me, &file->slabs);
    bytes = (size_t)file->slabs.count * (size_t)file->slabs.bytes;
    load->elements = malloc(bytes + 1);
    rc = load->elements ? load_slabs(load, &why)
                        : dtn_fail_nomem(&why, "load", bytes);
    return dtn_file_agree(mesh, "load", rc, &why, 0, err);
}

static void load_close(struct load *load)
{
    if (load->file.fd >= 0)
        close(load->file.fd);
    free(load->elements);
    free(load->sums);
    free(load->piece);
}

int dtensor_load(const struct dtensor_spec *spec, const char *path,
                 struct dtensor **tp, struct dtensor_error *err)
{
    struct load load = { .file.fd = -1, .file.path = path };
    struct dtensor_spec to = *spec;
    struct dtensor *made;
    int rc = dtensor_spec_normalize(&to, err);

    if (rc == 0 && !path)
        rc = dtn_fail(err, DTENSOR_EINVAL, "load: the path is NULL");
    if (rc == 0)
        rc = dtn_tensor_create_all(&to, &made, err);
    if (rc != 0)
        return rc;
    if (to.mesh->group.me < 0)
        return dtn_tensor_return(made, 0, tp);
    dtn_slabs_spec(&to, &load.file.spec);
    rc = load_read_all(&load, err);
    dtn_watch_cause(to.mesh->ctx, "load", 0, "each rank has read its part of "
                    "the file");
    if (rc == 0)
        rc = dtn_redistribute(&load.file.spec, &to, load.elements, made->local,
                              err);
    load_close(&load);
    return dtn_tensor_return(made, rc, tp);
}

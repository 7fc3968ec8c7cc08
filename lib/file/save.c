/* save.c - writes a tensor to a file
 *
 * The tensor is redistributed to slabs (slabs.c), and all ranks write theirs at
 * the same time into PATH.part: for f32[4096,4096] on 4 ranks, 16 MiB each.
 * When all slabs are on disk, PATH.part is renamed to PATH.  So the file of an
 * earlier save stays until the new one is complete.
 */
#include "base/error.h"
#include "file/agree.h"
#include "file/bytes.h"
#include "file/file.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/redist.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct save {
    struct dtn_file file;         /* what is written                          */
    char part[PATH_MAX];          /* PATH.part                                */
    uint64_t first;               /* checksum of this rank, of all            */
    struct dtn_sum *sums;         /* of this rank                             */
    unsigned char *elements;      /* of this rank's slabs                     */
};

static int save_fail(const struct save *save, const char *hint,
                     struct dtensor_error *err)
{
    return dtn_file_fail_sys(save->file.spec.mesh->ctx, err, "save",
                             save->part, hint);
}

static uint64_t save_bytes(const struct save *save)
{
    return dtn_sums_end_at(&save->file.map) + DTN_SUMS_END_BYTES;
}

/* What position `index` writes. */
static void save_slabs(const struct dtensor_spec *spec, int index,
                       struct dtn_slabs *slabs)
{
    dtn_slabs_of(spec, index, slabs);
    if (spec->ndim == 0 && index > 0)        /* all have the one element      */
        slabs->count = 0;
}

/* Where everything will be: the same on all ranks. */
static void save_map(struct save *save)
{
    struct dtn_file *file = &save->file;
    const struct dtensor_mesh *mesh = file->spec.mesh;
    struct dtensor_meta meta;
    struct dtn_slabs slabs;

    dtensor_spec_meta(&file->spec, -1, &meta);
    file->map.dtype = meta.dtype;
    file->map.header_bytes = dtn_npy_format(&meta, file->header);
    file->map.header_hash = dtn_file_hash(file->header,
                                          file->map.header_bytes);
    file->map.data_bytes = (uint64_t)dtn_numel(meta.ndim, meta.shape) *
                           dtensor_dtype_size(meta.dtype);
    for (int i = 0; i < mesh->group.n; i++) {
        if (i == mesh->group.me)
            save->first = file->map.sums;
        save_slabs(&file->spec, i, &slabs);
        file->map.sums += dtn_sums_count(&slabs);
    }
    save_slabs(&file->spec, mesh->group.me, &file->slabs);
}

/* The elements of this rank's slabs. */
static int save_gather(struct save *save, const struct dtensor *t,
                       struct dtensor_error *err)
{
    const struct dtn_file *file = &save->file;
    const struct dtensor_spec *spec = &file->spec;
    const size_t bytes = (size_t)dtn_local_numel(spec, spec->mesh->group.me) *
                         dtensor_dtype_size(spec->dtype);
    const size_t sums = (size_t)dtn_sums_count(&file->slabs);
    struct dtensor_error why;

    save->sums = calloc(sums + 1, sizeof *save->sums);
    save->elements = malloc(bytes + 1);
    if (!save->sums || !save->elements)
        return dtn_tensor_end_all(spec->mesh,
                                  dtn_fail_nomem(&why, "save", bytes), &why,
                                  err);
    dtn_watch_cause(spec->mesh->ctx, "save", 0, "each rank writes its part of "
                    "the file");
    return dtn_redistribute(&t->spec, spec, t->local, save->elements, err);
}

/* The rename would put a file in the place of a device such as /dev/null. */
static int save_replaces(const struct dtn_file *file, struct dtensor_error *err)
{
    struct stat old;
    char words[400];

    if (stat(file->path, &old) != 0 || S_ISREG(old.st_mode))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s is %s (give the name of a file)",
                    dtn_file_words(file->spec.mesh->ctx, "save", file->path,
                                   words, sizeof words),
                    S_ISDIR(old.st_mode) ? "a directory" : "no regular file");
}

/* Position 0 makes the file, of its final size. */
static int save_create(struct save *save, struct dtensor_error *err)
{
    struct dtn_file *file = &save->file;
    int rc;

    if (file->spec.mesh->group.me != 0)
        return 0;
    rc = save_replaces(file, err);
    if (rc != 0)
        return rc;
    file->fd = open(save->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return save_fail(save, " (the directory has to be there, and "
                         "writable)", err);
    if (dtn_bytes_pwrite(file->fd, file->header, file->map.header_bytes, 0) !=
            0 || ftruncate(file->fd, (off_t)save_bytes(save)) != 0)
        return save_fail(save, "", err);
    return 0;
}

/* The others open it. */
static int save_open(struct save *save, struct dtensor_error *err)
{
    struct dtn_file *file = &save->file;
    struct stat stat;
    char words[400];

    if (file->fd >= 0)
        return 0;
    file->fd = open(save->part, O_RDWR | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &stat) != 0)
        return save_fail(save, " (the path has to be on a file system that all "
                         "hosts share)", err);
    if ((uint64_t)stat.st_size == save_bytes(save))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s has %lld bytes; expected %llu "
                    "(the path has to be on a file system that all hosts "
                    "share, and of one save at a time)",
                    dtn_file_words(file->spec.mesh->ctx, "save", save->part,
                                   words, sizeof words),
                    (long long)stat.st_size,
                    (unsigned long long)save_bytes(save));
}

/* One slab, in pieces, each with its checksum.  Returns the next checksum. */
static struct dtn_sum *save_slab(const struct dtn_file *file, uint64_t at,
                                 const unsigned char *elements,
                                 struct dtn_sum *sum)
{
    uint64_t bytes;

    for (uint64_t done = 0; sum && done < file->slabs.bytes; done += bytes) {
        bytes = file->slabs.bytes - done;
        if (bytes > DTN_SUM_PIECE_BYTES)
            bytes = DTN_SUM_PIECE_BYTES;
        *sum++ = dtn_sum_make(at + done, elements + done, bytes);
        if (dtn_bytes_pwrite(file->fd, elements + done, bytes,
                             file->map.header_bytes + at + done) != 0)
            sum = NULL;
    }
    return sum;
}

static int save_write(struct save *save, struct dtensor_error *err)
{
    const struct dtn_file *file = &save->file;
    const struct dtn_slabs *slabs = &file->slabs;
    struct dtn_sum *sum = save->sums;
    int rc = save_open(save, err);

    for (int64_t i = 0; rc == 0 && sum && i < slabs->count; i++)
        sum = save_slab(file, slabs->at + (uint64_t)i * slabs->step,
                        save->elements + (uint64_t)i * slabs->bytes, sum);
    if (rc == 0 &&
        (!sum || dtn_bytes_pwrite(file->fd, save->sums, (size_t)
                                  (sum - save->sums) * sizeof *sum,
                                  dtn_sums_at(&file->map) +
                                  save->first * sizeof *sum) != 0 ||
         fsync(file->fd) != 0))
        rc = save_fail(save, "", err);
    return rc;
}

/* The record at the end, which is over the checksums of all ranks. */
static int save_finish(struct save *save, struct dtensor_error *err)
{
    struct dtn_file *file = &save->file;
    const size_t bytes = (size_t)file->map.sums * sizeof(struct dtn_sum);
    unsigned char end[DTN_SUMS_END_BYTES], *all = malloc(bytes + 1);
    int rc;

    if (!all)
        return dtn_fail_nomem(err, "save", bytes);
    rc = dtn_bytes_pread(file->fd, all, bytes, dtn_sums_at(&file->map));
    file->map.sums_hash = dtn_file_hash(all, bytes);
    free(all);
    dtn_sums_end_format(&file->map, end);
    if (rc == 0)
        rc = dtn_bytes_pwrite(file->fd, end, sizeof end,
                              dtn_sums_end_at(&file->map));
    return rc == 0 && fsync(file->fd) == 0 ? 0 : save_fail(save, "", err);
}

/* Its name is on disk too. */
static int save_sync_name(const char *path)
{
    char folder[PATH_MAX];
    char *slash;
    int fd, rc;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (!slash)
        snprintf(folder, sizeof folder, ".");
    else
        slash[slash == folder] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return rc != 0 && errno == EINVAL ? 0 : rc;    /* not all file systems    */
}

static int save_end(struct save *save, struct dtensor_error *err)
{
    int rc;

    if (save->file.spec.mesh->group.me != 0)
        return 0;
    rc = save_finish(save, err);
    if (rc == 0 && (rename(save->part, save->file.path) != 0 ||
                    save_sync_name(save->file.path) != 0))
        rc = save_fail(save, "", err);
    return rc;
}

/* Each part is done by all ranks or ends the save on all. */
static int save_all(struct save *save, struct dtensor_error *err)
{
    static int (*const parts[])(struct save *, struct dtensor_error *) = {
        save_create, save_write, save_end };
    const uint64_t name = dtn_file_hash(save->part, strlen(save->part));
    struct dtensor_error why;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof parts / sizeof *parts; i++) {
        rc = parts[i](save, &why);
        rc = dtn_file_agree(save->file.spec.mesh, "save", rc, &why, name, err);
    }
    return rc;
}

static int save_begin(struct save *save, const struct dtensor *t,
                      const char *path, struct dtensor_error *err)
{
    if (!path || path[0] == '\0' || strlen(path) + sizeof ".part" >
                                    sizeof save->part)
        return dtn_fail(err, DTENSOR_EINVAL, "save: the path is %s (give the "
                        "name of a file)", !path ? "NULL" : path[0] ? "too long"
                                                                    : "empty");
    save->file.path = path;
    snprintf(save->part, sizeof save->part, "%s.part", path);
    dtn_slabs_spec(&t->spec, &save->file.spec);
    return 0;
}

static void save_close(struct save *save, int rc)
{
    const struct dtensor_mesh *mesh = save->file.spec.mesh;

    if (save->file.fd >= 0)
        close(save->file.fd);
    if (rc != 0 && mesh->group.me == 0 && save->file.fd >= 0)
        unlink(save->part);
    free(save->elements);
    free(save->sums);
}

int dtensor_save(const struct dtensor *t, const char *path,
                 struct dtensor_error *err)
{
    struct save save = { .file.fd = -1 };
    int rc;

    if (t->spec.mesh->group.me < 0)
        return 0;
    rc = save_begin(&save, t, path, err);
    if (rc != 0)
        return rc;
    save_map(&save);
    rc = save_gather(&save, t, err);
    if (rc == 0)
        rc = save_all(&save, err);
    save_close(&save, rc);
    return rc;
}

/* look.c - finds out what is in a file
 *
 * The header has the dtype and the shape, so it also says where the elements
 * end. A file of numpy.save() ends there: f32[3,4] has 128 + 48 bytes.  A file
 * of dtensor_save() continues with checksums.  Anything else is an error.
 */
#include "base/error.h"
#include "file/agree.h"
#include "file/bytes.h"
#include "file/file.h"
#include "layout/layout.h"
#include "dtensor.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

int dtn_file_fail(const struct dtn_file *file, const struct dtensor_ctx *ctx,
                  const char *fact, struct dtensor_error *err)
{
    char words[400];

    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s",
                    dtn_file_words(ctx, "load", file->path, words,
                                   sizeof words), fact);
}

/* Its checksums, if it has any, are of this header and of these elements. */
static bool look_fits(const struct dtn_file *file,
                      const struct dtn_file_map *end, uint64_t size)
{
    return end->header_bytes == file->map.header_bytes &&
           end->data_bytes == file->map.data_bytes &&
           end->header_hash == file->map.header_hash &&
           end->sums < size / sizeof(struct dtn_sum) &&
           dtn_sums_end_at(end) + DTN_SUMS_END_BYTES == size &&
           dtensor_dtype_size(end->dtype) ==
               dtensor_dtype_size(file->map.dtype);
}

/* The record at the end of a file of `size` bytes. */
static int look_end(struct dtn_file *file, const struct dtensor_ctx *ctx,
                    uint64_t size, struct dtensor_error *err)
{
    const uint64_t plain = file->map.header_bytes + file->map.data_bytes;
    unsigned char buf[DTN_SUMS_END_BYTES];
    struct dtn_file_map end;

    if (size < plain)
        return dtn_file_fail(file, ctx, "it ends before its last element (it "
                             "is damaged: use another copy)", err);
    if (size == plain)
        return 0;
    if (size < plain + sizeof buf ||
        dtn_bytes_pread(file->fd, buf, sizeof buf, size - sizeof buf) != 0 ||
        !dtn_sums_end_parse(buf, &end) || !look_fits(file, &end, size))
        return dtn_file_fail(file, ctx, "what follows its elements are no "
                             "checksums of this file (it is damaged: use "
                             "another copy)", err);
    file->map = end;
    return 0;
}

int dtn_file_look(struct dtn_file *file, const struct dtensor_ctx *ctx,
                  struct dtensor_meta *meta, struct dtensor_error *err)
{
    struct dtn_file_map *map = &file->map;
    char words[400];
    struct stat stat;
    size_t bytes = sizeof file->header;
    int rc;

    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  /* FIFO */
    if (file->fd < 0 || fstat(file->fd, &stat) != 0)
        return dtn_file_fail_sys(ctx, err, "load", file->path, "");
    if (!S_ISREG(stat.st_mode))
        return dtn_file_fail(file, ctx, "it is not a regular file", err);
    if ((uint64_t)stat.st_size < bytes)
        bytes = (size_t)stat.st_size;
    if (dtn_bytes_pread(file->fd, file->header, bytes, 0) != 0)
        return dtn_file_fail_sys(ctx, err, "load", file->path, "");
    dtn_file_words(ctx, "load", file->path, words, sizeof words);
    rc = dtn_npy_parse(words, file->header, bytes, meta, &bytes, err);
    if (rc != 0)
        return rc;
    map->dtype = meta->dtype;
    map->header_bytes = bytes;
    map->header_hash = dtn_file_hash(file->header, bytes);
    map->data_bytes = (uint64_t)dtn_numel(meta->ndim, meta->shape) *
                      dtensor_dtype_size(meta->dtype);
    rc = look_end(file, ctx, (uint64_t)stat.st_size, err);
    meta->dtype = map->dtype;
    return rc;
}

int dtensor_file_meta(const char *path, struct dtensor_meta *meta,
                      struct dtensor_error *err)
{
    struct dtn_file file = { .path = path, .fd = -1 };
    struct dtensor_meta made;
    int rc = path ? dtn_file_look(&file, NULL, &made, err)
                  : dtn_fail(err, DTENSOR_EINVAL, "load: the path is NULL");

    if (file.fd >= 0)
        close(file.fd);
    if (rc == 0)
        *meta = made;
    return rc;
}

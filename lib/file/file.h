/* file.h - what this room knows of an open file
 *
 * npy.c    the header that NumPy reads
 * sums.c   checksums, after the elements
 * slabs.c  which bytes a rank writes and reads
 * agree.c  a failure of one rank becomes that of all
 * look.c   what is in a file
 * save.c, load.c
 */
#ifndef DTN_FILE_FILE_H
#define DTN_FILE_FILE_H

#include "file/npy.h"
#include "file/slabs.h"
#include "file/sums.h"
#include "dtensor.h"

struct dtn_file {
    const char *path;             /* as the caller named it                   */
    struct dtensor_spec spec;     /* of the slabs                             */
    struct dtn_slabs slabs;       /* of this rank                             */
    struct dtn_file_map map;      /* where things are                         */
    char header[DTN_NPY_MAX_BYTES];   /* its first bytes                      */
    int fd;                       /* -1: not open                             */
};

/* Open file->path and find out what is in it: file->map, and its dtype and
 * shape.  `ctx` is for messages; NULL: they name no rank.
 *
 * Owns:   file->fd is the caller's, also after a failure.
 * Errors: EINVAL  it is no array, or damaged;  ESYS
 */
int dtn_file_look(struct dtn_file *file, const struct dtensor_ctx *ctx,
                  struct dtensor_meta *meta, struct dtensor_error *err);

/* EINVAL, with a fact about the file. */
int dtn_file_fail(const struct dtn_file *file, const struct dtensor_ctx *ctx,
                  const char *fact, struct dtensor_error *err);

#endif

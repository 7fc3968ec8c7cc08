/* dtensor/file.h - tensors in files
 *
 * A file has the elements of one tensor, row-major, whatever its placements: a
 * tensor that 4 ranks saved as S(0) can be loaded by 6 ranks as S(1).  It is a
 * .npy file, which numpy.load() reads; after its elements it has checksums.
 */
#ifndef DTENSOR_FILE_H
#define DTENSOR_FILE_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Write the whole tensor, reduced if Partial, to the file `path`, which must be
 * visible on all hosts of the mesh.  All ranks write to "PATH.part" at the same
 * time.  It is renamed when all bytes are on disk, so an earlier file of that
 * name stays complete until then.  Needed memory: on each of n ranks 1/n of the
 * tensor, or more if all its dimensions are shorter than n.
 * Semantics: numpy.save of DTensor.full_tensor.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until the file is on disk.
 * Owns:   nothing is kept.
 * Errors: ESYS    a file cannot be written: sys_errno and `rank` say why and
 *                 where.  EINVAL  the path is NULL, empty or too long, or no
 *                 regular file; or hosts do not share the file.  After both the
 *                 context stays usable, and all ranks have the same error.
 *                 ENOMEM;  and those of dtensor_allreduce()
 */
int dtensor_save(const struct dtensor *t, const char *path,
                 struct dtensor_error *err);

/* Make a tensor of the elements in the file `path`, of dtensor_save() or
 * numpy.save(), whose shape and dtype are those of the spec.  A Partial tensor
 * gets terms that reduce to the elements.  Checksums are compared if the file
 * has any.  Memory: on each rank 1/n of the tensor, as in dtensor_save().
 * Semantics: distribute_tensor of numpy.load.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         part.
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: ESYS    the file cannot be read.  EINVAL  the spec; the file has
 *                 another shape or dtype, is no array, is damaged, or is not
 *                 the same on all hosts.  After both the context stays usable,
 *                 and all ranks have the same error.  ENOMEM;  and those of
 *                 dtensor_allreduce()
 */
int dtensor_load(const struct dtensor_spec *spec, const char *path,
                 struct dtensor **tp, struct dtensor_error *err);

/* Read dtype and shape of the array in a file; strides are row-major.
 * Semantics: numpy.lib.format.read_array_header.
 *
 * Collective: no.   Blocks: until its first and last bytes are read.
 * Errors: ESYS    the file cannot be read;  EINVAL  it is no array, or damaged
 */
int dtensor_file_meta(const char *path, struct dtensor_meta *meta,
                      struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif

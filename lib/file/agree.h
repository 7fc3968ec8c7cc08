/* agree.h - a failure of one rank becomes that of all */
#ifndef DTN_FILE_AGREE_H
#define DTN_FILE_AGREE_H

#include "base/compiler.h"
#include "dtensor.h"

#include <stdint.h>

/* End a part of a collective call that each rank did alone, with `rc` and its
 * text `why`.  If it failed on a rank, all ranks of the mesh return the error
 * of the lowest position, and the context stays usable.  `seen` is a number for
 * what the rank found in the file: if ranks found different things, all return
 * EINVAL; `what` begins the text.
 */
int dtn_file_agree(const struct dtensor_mesh *mesh, const char *what, int rc,
                   const struct dtensor_error *why, uint64_t seen,
                   struct dtensor_error *err);

/* An error of a system call, "save: rank 1 on n2: open /a/b.npy: ..."; `hint`
 * is what to do, or "".  `ctx` NULL: no rank is named.
 */
int dtn_file_fail_sys(const struct dtensor_ctx *ctx, struct dtensor_error *err,
                      const char *what, const char *path, const char *hint);

/* "load: rank 1 on n2: /a/b.npy", where words about a file begin. */
char *dtn_file_words(const struct dtensor_ctx *ctx, const char *what,
                     const char *path, char *buf, size_t size);

#endif

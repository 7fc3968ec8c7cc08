/* bytes.h - whole reads and writes at an offset */
#ifndef DTN_FILE_BYTES_H
#define DTN_FILE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* All of `bytes` at `at`, or a failure: 0, or -1 with errno.  A file that ends
 * before is EIO for dtn_bytes_pread().
 */
int dtn_bytes_pread(int fd, void *buf, size_t bytes, uint64_t at);
int dtn_bytes_pwrite(int fd, const void *buf, size_t bytes, uint64_t at);

#endif

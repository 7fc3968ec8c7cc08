/* files.c - one file in memory, for the fuzzer
 *
 * A target makes it with memfd_create(), writes its input there and reads it by
 * its name below /proc/self/fd or /dev/fd.  The library's own memory files, the
 * names of which begin with "dtensor", are the kernel's.
 */
#include "config.h"
#include "tests/fuzz/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

enum { OPENED = FUZZ_FILE_FD + 1, ROOM = 2 << 20 };

static struct {
    bool made, opened;            /* FUZZ_FILE_FD is open; OPENED is          */
    mode_t mode;
    size_t size;                  /* of bytes                                 */
    size_t at;                    /* where OPENED reads                       */
    char bytes[ROOM];
} file;

/* Does the path name it? */
static bool is_file(const char *path)
{
    const char *number = strncmp(path, "/proc/self/fd/", 14) == 0 ? path + 14
                       : strncmp(path, "/dev/fd/", 8) == 0 ? path + 8 : "";

    return file.made && atoi(number) == FUZZ_FILE_FD;
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (strncmp(name, "dtensor", 7) == 0)
        return __real_memfd_create(name, flags);
    if (file.made || file.opened)
        abort();                  /* the last one was not closed              */
    file.made = true;
    file.mode = 0777;
    file.size = file.at = 0;
    return FUZZ_FILE_FD;
}

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (fd != FUZZ_FILE_FD)
        return __real_write(fd, bytes, size);
    if (size > ROOM - file.size) {
        errno = ENOSPC;
        return -1;
    }
    if (size > 0)
        memcpy(file.bytes + file.size, bytes, size);
    file.size += size;
    return (ssize_t)size;
}

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
    if (fd != FUZZ_FILE_FD)
        return __real_fchmod(fd, mode);
    file.mode = mode;
    return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode;

    if (is_file(path)) {
        file.opened = true;
        file.at = 0;
        return OPENED;
    }
    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return __real_open(path, flags, mode);
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
    if (fd != OPENED)
        return __real_fstat(fd, st);
    *st = (struct stat){ .st_mode = S_IFREG | file.mode, .st_uid = geteuid(),
                         .st_size = (off_t)file.size };
    return 0;
}

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    if (fd != OPENED)
        return __real_read(fd, bytes, size);
    size = size < file.size - file.at ? size : file.size - file.at;
    memcpy(bytes, file.bytes + file.at, size);
    file.at += size;
    return (ssize_t)size;
}

bool fuzz_file_close(int fd)
{
    if (fd == FUZZ_FILE_FD)
        file.made = false;
    if (fd == OPENED)
        file.opened = false;
    return fd == FUZZ_FILE_FD || fd == OPENED;
}

#ifdef HAVE_JANSSON
json_t *__real_json_load_file(const char *path, size_t flags,
                              json_error_t *where);
json_t *__wrap_json_load_file(const char *path, size_t flags,
                              json_error_t *where);
json_t *__wrap_json_load_file(const char *path, size_t flags,
                              json_error_t *where)
{
    return is_file(path) ? json_loadb(file.bytes, file.size, flags, where)
                         : __real_json_load_file(path, flags, where);
}
#endif

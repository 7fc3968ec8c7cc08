/* test_arena_pages.c - the pages of an arena
 *
 * Huge pages that are set aside are used where there are some; without them
 * those tests are skipped.
 *
 * Without this test, a rank could die of its first write to its own memory.
 */
#include "base/compiler.h"
#include "transport/arena.h"
#include "transport/cgroup.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define MIB ((size_t)1 << 20)

static bool pages_made_up;            /* small pages count as huge ones      */
static uint64_t pages_bytes = UINT64_MAX;   /* that a control group allows   */

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (pages_made_up)
        flags &= MFD_CLOEXEC | MFD_ALLOW_SEALING;
    return __real_memfd_create(name, flags);
}

int __real_madvise(void *mem, size_t size, int advice);
int __wrap_madvise(void *mem, size_t size, int advice);

/* Fail as the kernel does where a write would be a fatal signal. */
int __wrap_madvise(void *mem, size_t size, int advice)
{
    if (advice != MADV_POPULATE_WRITE)
        return __real_madvise(mem, size, advice);
    errno = EFAULT;
    return size <= pages_bytes ? 0 : -1;
}

uint64_t __wrap_dtn_cgroup_bytes(enum dtn_cgroup what);

uint64_t __wrap_dtn_cgroup_bytes(enum dtn_cgroup what)
{
    return what == DTN_CGROUP_HUGE ? pages_bytes : UINT64_MAX;
}

/* A number that a file of /proc gives, or 0. */
static unsigned long fact(const char *path, const char *name)
{
    unsigned long value = 0;
    char line[128];
    FILE *file = fopen(path, "r");

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), ": %lu", &value);
    if (file)
        fclose(file);
    return value;
}

/* Huge pages that are set aside and that nobody has claimed. */
static unsigned long huge_free(void)
{
    return fact("/proc/meminfo", "HugePages_Free")
         - fact("/proc/meminfo", "HugePages_Rsvd");
}

static void test_huge(bool shared)
{
    const char *kind = shared ? "shared" : "private";
    unsigned long free = huge_free(), rest;
    struct dtn_arena arena, other;
    unsigned char *mem;

    if (free < 32 || fact("/proc/meminfo", "Hugepagesize") != 2048) {
        skip(kind, "fewer than 32 huge pages of 2 MiB are set aside");
        return;
    }
    dtn_arena_init(&arena, 64 * MIB, shared, NULL);
    rest = huge_free();
    ok(arena.backing.pages == DTN_PAGES_HUGE && rest == free - 32,
       "%s: 64 MiB are 32 huge pages, set aside before they are touched", kind);
    mem = dtn_arena_alloc(&arena, 40 * MIB);
    memset(mem, 3, 40 * MIB);
    ok(mem[40 * MIB - 1] == 3, "%s: they can be written", kind);
    dtn_arena_free(&arena, mem);
    dtn_arena_init(&other, (rest + 1) * 2 * MIB, shared, NULL);
    ok(other.backing.pages != DTN_PAGES_HUGE && dtn_arena_alloc(&other, 5),
       "%s: an arena of more than are left does without", kind);
    dtn_arena_fini(&other);
    dtn_arena_fini(&arena);
    ok(huge_free() == free, "%s: and they are given back", kind);
}

/* Of 32 pages that are set aside, a control group allows some.  The pages are
 * made up, so that this needs neither them nor a group.
 */
static void test_limited(void)
{
    static const struct { uint64_t bytes; bool huge; } rows[] = {
        { UINT64_MAX, true }, { 64 * MIB, true }, { 62 * MIB, false },
        { 0, false }
    };
    struct dtn_arena arena;
    bool good = true;

    pages_made_up = true;
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        pages_bytes = rows[i].bytes;
        need(dtn_arena_init(&arena, 64 * MIB, true, NULL) == 0, "init");
        good = good && rows[i].huge == (arena.backing.pages == DTN_PAGES_HUGE)
            && fcntl(arena.backing.fd, F_GETFD) >= 0;
        dtn_arena_fini(&arena);
    }
    pages_made_up = false;
    pages_bytes = UINT64_MAX;
    ok(good, "an arena has no huge pages that its control group does not allow");
}

static void test_asked(void)
{
    const size_t size = 65 * MIB;     /* no multiple of 2 MiB                 */
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char modes[64] = "[never]";
    struct dtn_arena arena;
    unsigned long kib;

    if (file && !fgets(modes, sizeof modes, file))
        strcpy(modes, "[never]");
    if (file)
        fclose(file);
    if (strstr(modes, "[never]")) {
        skip("huge pages as the kernel finds them", "it looks for none here");
        return;
    }
    dtn_arena_init(&arena, size, false, NULL);
    memset(dtn_arena_alloc(&arena, size), 1, size);
    kib = fact("/proc/self/smaps_rollup", "AnonHugePages");
    ok(arena.backing.pages == DTN_PAGES_ASKED && kib >= 2048,
       "of 65 MiB, %lu KiB are %s", kib, dtn_backing_pages(&arena.backing));
    dtn_arena_fini(&arena);
}

int main(void)
{
    test_huge(true);
    test_huge(false);
    test_limited();
    test_asked();
    return done();
}

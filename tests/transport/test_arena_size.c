/* test_arena_size.c - the size of an arena, and the error when it is full
 *
 * Limits of memory, of locked memory and of the file system are made up, one
 * after the other.
 *
 * Without this test, a job on a small machine could die of a signal where it
 * should be told how much memory there is.
 */
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/cgroup.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#define MIB ((size_t)1 << 20)

static size_t map_most = SIZE_MAX;    /* mmap of more fails with ENOMEM      */

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset);

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset)
{
    if (size <= map_most)
        return __real_mmap(at, size, prot, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

static const struct dtn_share all_of_it = { 0, 100 };

/* What the machine allows when nobody says anything. */
static void test_default(void)
{
    struct sysinfo info = { .totalram = 0 };
    struct dtn_arena_limit one = dtn_arena_limit(&all_of_it, 1), four, half;
    uint64_t ram, group, most;

    sysinfo(&info);
    ram = (uint64_t)info.totalram * info.mem_unit;
    group = dtn_cgroup_bytes(DTN_CGROUP_MEMORY);
    most = group < ram ? group : ram;
    four = dtn_arena_limit(&all_of_it, 4);
    half = dtn_arena_limit(&(struct dtn_share){ 0, 50 }, 4);
    ok(one.bytes == most / (2 * MIB) * (2 * MIB) && four.bytes == one.bytes
       && one.bound == (group < ram ? DTN_BOUND_CGROUP : DTN_BOUND_RAM),
       "each of 4 ranks gets as much as one: all %zu MiB of the host",
       (size_t)one.bytes / MIB);
    ok(half.bytes <= one.bytes / 2 && half.bytes + 4 * MIB > one.bytes / 2
       && half.bound == DTN_BOUND_KEY, "50%% of it is %zu MiB",
       (size_t)half.bytes / MIB);
    half = dtn_arena_limit(&(struct dtn_share){ 100 * MIB, 0 }, 4);
    ok(half.bytes == 100 * MIB && half.bound == DTN_BOUND_KEY,
       "and a number of bytes is that number");
    four = dtn_arena_limit(&all_of_it, 1 << 18);
    ok(four.bytes == (four.bytes < 128 * MIB ? four.bytes : 128 * MIB)
       && four.bytes >= 64 * MIB, "2^18 ranks share 32 TiB of addresses: 128 "
       "MiB for each");
}

/* With ulimit -v all arenas of the host together take half of it. */
static void rank_space(int rank, int n, void *arg)
{
    struct rlimit low = { 4096 * MIB, 4096 * MIB };
    struct dtn_arena_limit limit;

    need(setrlimit(RLIMIT_AS, &low) == 0, "setrlimit");
    limit = dtn_arena_limit(&all_of_it, 8);
    need(limit.bytes == 256 * MIB && limit.bound == DTN_BOUND_ULIMIT_V,
         "%zu MiB", (size_t)limit.bytes / MIB);
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

/* Where the kernel maps less than there is (as with vm.overcommit_memory = 2)
 * the arena is smaller, unless the cluster file says how large.
 */
static void rank_maps_less(int rank, int n, void *arg)
{
    struct dtn_share given = { 8192 * MIB, 0 };
    struct dtensor_error err = { 0 };
    struct dtn_arena arena;

    map_most = 1500 * MIB;
    need(dtn_arena_open(&arena, &all_of_it, 4, false, &err) == 0, "%s",
         err.text);
    need(arena.backing.size > 700 * MIB && arena.backing.size <= 1500 * MIB
         && arena.backing.bound == DTN_BOUND_MAP, "%zu MiB",
         arena.backing.size / MIB);
    dtn_arena_fini(&arena);
    need(dtn_arena_open(&arena, &given, 4, false, &err) == DTENSOR_ENOMEM
         && strstr(err.text, "cannot map 8.0 GiB"), "%s", err.text);
    map_most = SIZE_MAX;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    if (!file || fputs(text, file) == EOF || fclose(file) != 0)
        exit(99);
}

static void test_cgroup(void)
{
    char top[] = "arena-XXXXXX";
    uint64_t two, one, none, pages, old_pages;

    if (!mkdtemp(top) || chdir(top) != 0 || mkdir("job", 0700) != 0
        || mkdir("job/step", 0700) != 0 || mkdir("memory", 0700) != 0
        || mkdir("memory/a", 0700) != 0 || mkdir("hugetlb", 0700) != 0)
        exit(99);
    write_file("proc2", "0::/job/step\n");
    write_file("job/step/memory.max", "max\n");
    write_file("job/memory.max", "5000000\n");
    two = dtn_cgroup_bytes_at(DTN_CGROUP_MEMORY, "proc2", ".");
    write_file("job/step/hugetlb.2MB.max", "4194304\n");
    pages = dtn_cgroup_bytes_at(DTN_CGROUP_HUGE, "proc2", ".");
    write_file("proc1", "7:cpu,cpuacct:/\n5:hugetlb:/\n4:memory:/a\n0::/\n");
    write_file("hugetlb/hugetlb.2MB.limit_in_bytes", "0\n");
    old_pages = dtn_cgroup_bytes_at(DTN_CGROUP_HUGE, "proc1", ".");
    write_file("memory/a/memory.limit_in_bytes", "6000000\n");
    write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    one = dtn_cgroup_bytes_at(DTN_CGROUP_MEMORY, "proc1", ".");
    none = dtn_cgroup_bytes_at(DTN_CGROUP_MEMORY, "nothing", ".");
    ok(two == 5000000, "control groups, version 2: the job around the step has "
       "a limit (%" PRIu64 ")", two);
    ok(one == 6000000, "version 1: the group has one (%" PRIu64 ")", one);
    ok(pages == 4194304 && old_pages == 0, "so have its huge pages");
    ok(none == UINT64_MAX, "without control groups there is none");
    if (chdir("..") != 0 || nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        note("%s is left", top);
}

static void test_words(void)
{
    struct dtensor_error err;
    struct dtn_arena arena;
    void *mem[3];

    dtn_arena_init(&arena, 64 * MIB, false, NULL);
    for (int i = 0; i < 3; i++)
        mem[i] = dtn_arena_alloc(&arena, 20 * MIB);
    dtn_arena_free(&arena, mem[0]);
    arena.backing.bound = DTN_BOUND_KEY;
    ok(dtn_arena_fail(&arena, "tensor", 22 * MIB, &err) == DTENSOR_ENOMEM
       && strcmp(err.text, "tensor: no room for 22.0 MiB: the arena of this "
                 "rank has 64.0 MiB, as [transport] arena says, of which 24.0 "
                 "MiB are free, 20.0 MiB in one piece (free some, or raise "
                 "[transport] arena)") == 0, "in words: %s", err.text);
    arena.backing.bound = DTN_BOUND_RAM;
    dtn_arena_fail(&arena, "tensor", 22 * MIB, &err);
    ok(strstr(err.text, "64.0 MiB, the memory of this host, of which")
       && !strstr(err.text, "ulimit"), "not ulimit, when it was not");
    arena.backing.bound = DTN_BOUND_ULIMIT_V;
    dtn_arena_fail(&arena, "tensor", 22 * MIB, &err);
    ok(strstr(err.text, "(raise ulimit -v)"), "and ulimit -v when it was");
    dtn_arena_fail(&arena, "tensor", 2 * MIB, &err);
    ok(strstr(err.text, "out of memory: 2.0 MiB wanted"),
       "there is room, so the heap was full: %s", err.text);
    dtn_arena_fini(&arena);
}

/* 128 ranks map each other's arenas, of all RAM each, or 24 GiB on a small
 * machine: addresses cost nothing.
 */
static void test_many(void)
{
    enum { NRANKS = 128 };
    size_t size = dtn_arena_limit(&all_of_it, NRANKS).bytes;
    struct dtn_arena arena;
    void *peer[NRANKS];
    int n = 0;

    if (size < (size_t)24 << 30)
        size = (size_t)24 << 30;
    if (dtn_arena_init(&arena, size, true, NULL) == 0)
        for (; n < NRANKS; n++) {
            peer[n] = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_NORESERVE, arena.backing.fd, 0);
            if (peer[n] == MAP_FAILED)
                break;
        }
    ok(n == NRANKS, "%d arenas of %zu GiB in one process", n, size >> 30);
    while (n-- > 0)
        munmap(peer[n], size);
    dtn_arena_fini(&arena);
}

int main(void)
{
    test_default();
    if (sanitized())
        skip("ulimit -v bounds the arenas", "the sanitizers need much");
    else
        ok(ranks_run(1, 20, rank_space, NULL, NULL) == 0,
           "ulimit -v bounds the arenas of all ranks of a host together");
    ok(ranks_run(1, 20, rank_maps_less, NULL, NULL) == 0,
       "it is halved until the kernel maps it, but not when its size is given");
    test_cgroup();
    test_words();
    test_many();
    return done();
}

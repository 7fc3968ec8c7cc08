/* test_arena.c - the arena against an oracle, and the texts of its errors
 *
 * Blocks are allocated and freed at random and compared with a list kept
 * here.  DTN_SEED=n in the environment repeats a run.
 *
 * Without this test, two users of registered memory could get the same bytes.
 */
#include "transport/arena.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
#define BLOCKS 200

static int memfd_errno;               /* != 0: memfd_create fails with it    */
static unsigned memfd_unknown;        /* flags that give EINVAL              */

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (memfd_errno != 0 || (flags & memfd_unknown)) {
        errno = memfd_errno ? memfd_errno : EINVAL;
        return -1;
    }
    return __real_memfd_create(name, flags);
}

static unsigned long seed;

static size_t dice(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

/* ---------------------------------------------------- against an oracle --- */

struct block {
    unsigned char *mem;
    size_t size;
    unsigned char mark;
};

static size_t some_size(void)
{
    static const size_t edges[] = {
        0, 1, 63, 64, 65, 65535, 65536, 65537, 200000
    };

    if (dice(500) == 0)
        return 34 * MIB;              /* gives its pages back when freed */
    return dice(2) ? edges[dice(9)] : dice(dice(8) ? 5000 : 300000);
}

static bool overlaps(const struct block *a, const struct block *b)
{
    return a->mem && b->mem && a->mem < b->mem + b->size + !b->size &&
           b->mem < a->mem + a->size + !a->size;
}

/* Look at every byte near the ends of a block, and at some between. */
static size_t next_byte(const struct block *b, size_t i)
{
    return i + (i < 100 || i + 200 > b->size ? 1 : 97);
}

static void paint(struct block *b)
{
    for (size_t i = 0; i < b->size; i = next_byte(b, i))
        b->mem[i] = b->mark;
}

static bool intact(const struct block *b)
{
    for (size_t i = 0; i < b->size; i = next_byte(b, i))
        if (b->mem[i] != b->mark)
            return false;
    return true;
}

/* What is wrong with a new block, or NULL. */
static const char *block_fault(const struct dtn_arena *arena,
                               const struct block blocks[], int at)
{
    const struct block *b = &blocks[at];
    size_t align = b->size >= 65536 ? 4096 : 64;

    if (!dtn_arena_contains(arena, b->mem, b->size))
        return "it is outside of the arena";
    if ((uintptr_t)b->mem % align != 0)
        return "it is not aligned";
    for (int i = 0; i < BLOCKS; i++)
        if (i != at && overlaps(&blocks[i], b))
            return "it overlaps another";
    return NULL;
}

static const char *random_life(struct dtn_arena *arena)
{
    static struct block blocks[BLOCKS];
    const char *fault = NULL;

    for (int turn = 0; turn < 20000 && !fault; turn++) {
        int at = (int)dice(BLOCKS);
        struct block *b = &blocks[at];

        if (b->mem) {
            if (!intact(b))
                fault = "its bytes changed";
            dtn_arena_free(arena, b->mem);
            b->mem = NULL;
            continue;
        }
        b->size = some_size();
        b->mark = (unsigned char)dice(256);
        b->mem = dtn_arena_alloc(arena, b->size);
        if (!b->mem)
            continue;
        fault = block_fault(arena, blocks, at);
        paint(b);
    }
    for (int i = 0; i < BLOCKS; i++) {
        dtn_arena_free(arena, blocks[i].mem);
        blocks[i].mem = NULL;
    }
    return fault;
}

static void test_oracle(bool shared)
{
    struct dtensor_error err = { 0 };
    struct dtn_arena arena;
    const char *fault;
    void *all;

    if (!ok(dtn_arena_init(&arena, 128 * MIB, shared, &err) == 0,
            "%s arena of 128 MiB %s", shared ? "a shared" : "an anonymous",
            err.text))
        return;
    note("DTN_SEED=%lu", seed);
    fault = random_life(&arena);
    ok(!fault, "20000 random allocations: %s", fault ? fault : "all in order");
    ok(arena.extents.n == 1 && arena.extents.used_bytes == 0,
       "all freed, it is one free extent again (%d)", arena.extents.n);
    all = dtn_arena_alloc(&arena, arena.backing.size);
    ok(all == arena.backing.base, "it can be allocated as a whole");
    ok(!dtn_arena_alloc(&arena, 1), "then there is nothing left: NULL");
    dtn_arena_free(&arena, all);
    ok(!dtn_arena_alloc(&arena, arena.backing.size + 1) &&
       !dtn_arena_alloc(&arena, SIZE_MAX), "more than there is: NULL");
    dtn_arena_fini(&arena);
    dtn_arena_fini(&arena);
}

/* ---------------------------------------------------------------- pages --- */

static blkcnt_t blocks_of(const struct dtn_arena *arena)
{
    struct stat st;

    return fstat(arena->backing.fd, &st) == 0 ? st.st_blocks : -1;
}

static void test_pages(void)
{
    struct dtn_arena arena;
    size_t size = 40 * MIB;
    unsigned char *big, *small;
    blkcnt_t before, full;

    dtn_arena_init(&arena, 4096 * MIB, true, NULL);
    ok(blocks_of(&arena) == 0, "an arena of 4 GiB takes no memory at first");
    small = dtn_arena_alloc(&arena, 100);
    memset(small, 7, 100);
    before = blocks_of(&arena);
    big = dtn_arena_alloc(&arena, size);
    memset(big, 1, size);
    full = blocks_of(&arena);
    dtn_arena_free(&arena, big);
    ok((size_t)(full - before) * 512 >= size && blocks_of(&arena) == before,
       "a freed block of 40 MiB gives its pages back");
    ok(small[0] == 7 && small[99] == 7, "and spoils no neighbour");
    dtn_arena_fini(&arena);
}

/* Bytes of [base, base + size) that a core file of this process would have. */
static size_t dumped_of(const struct dtn_arena *arena)
{
    uintptr_t from = 0, to = 0, low, high;
    uintptr_t base = (uintptr_t)arena->backing.base;
    FILE *file = fopen("/proc/self/smaps", "r");
    size_t bytes = 0;
    char line[512];

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &low, &high) == 2) {
            from = low;
            to = high;
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd")
            && from >= base && to <= base + arena->backing.size)
            bytes += to - from;
    }
    if (file)
        fclose(file);
    return bytes;
}

static void test_dumped(void)
{
    struct dtn_arena arena;
    size_t none, some;

    dtn_arena_init(&arena, 4096 * MIB, true, NULL);
    none = dumped_of(&arena);
    dtn_arena_alloc(&arena, 100);
    dtn_arena_alloc(&arena, 10 * MIB);
    some = dumped_of(&arena);
    dtn_arena_alloc(&arena, 4000 * MIB);
    ok(none == 0 && some >= 10 * MIB && some <= 32 * MIB
       && dumped_of(&arena) == arena.backing.size,
       "a core file has what was ever in use of it: %zu MiB of 4 GiB",
       some / MIB);
    dtn_arena_fini(&arena);
}

static void test_contains(void)
{
    struct dtn_arena arena;
    int local;

    dtn_arena_init(&arena, MIB, false, NULL);
    ok(dtn_arena_contains(&arena, arena.backing.base, MIB) &&
       dtn_arena_contains(&arena, arena.backing.base + MIB - 1, 1),
       "contains: from the first byte to the last");
    ok(!dtn_arena_contains(&arena, arena.backing.base, MIB + 1) &&
       !dtn_arena_contains(&arena, arena.backing.base - 1, 1) &&
       !dtn_arena_contains(&arena, arena.backing.base + 5, SIZE_MAX) &&
       !dtn_arena_contains(&arena, &local, sizeof local),
       "contains: not a byte beyond");
    dtn_arena_fini(&arena);
}

/* Three blocks of 64 bytes; the one in the middle is freed. */
static void test_block(void)
{
    struct dtn_arena arena;
    unsigned char *mem[3];
    struct dtn_block block;

    dtn_arena_init(&arena, MIB, false, NULL);
    for (int i = 0; i < 3; i++)
        mem[i] = dtn_arena_alloc(&arena, 60);
    block = dtn_arena_block(&arena, mem[2] + 10, 50);
    ok(block.mem == mem[2] && block.size == 64, "a part is of its block");
    block = dtn_arena_block(&arena, mem[0] + 10, 100);
    ok(block.mem == mem[0] + 10 && block.size == 100,
       "what is of two blocks is of none");
    dtn_arena_free(&arena, mem[1]);
    block = dtn_arena_block(&arena, mem[1] + 10, 20);
    ok(block.mem == mem[1] + 10 && block.size == 20, "nor what is free");
    dtn_arena_fini(&arena);
}

static void test_seals(void)
{
    struct dtn_arena arena;

    dtn_arena_init(&arena, MIB, true, NULL);
    ok(ftruncate(arena.backing.fd, 4096) < 0 &&
       ftruncate(arena.backing.fd, 2 * MIB) < 0,
       "nobody can change the size of the file");
    ok(fcntl(arena.backing.fd, F_GETFD) & FD_CLOEXEC,
       "no program run later gets it");
    dtn_arena_fini(&arena);
    memfd_unknown = 0x0008;           /* MFD_NOEXEC_SEAL, before Linux 6.3 */
    ok(dtn_arena_init(&arena, MIB, true, NULL) == 0,
       "it is made where memfds cannot be sealed against execution");
    dtn_arena_fini(&arena);
    memfd_unknown = 0;
}

/* ------------------------------------------------------------- refusals --- */

static void test_refused(void)
{
    struct dtn_arena arena = { .backing = { .size = 12345 } };
    struct dtensor_error err = { 0 };

    memfd_errno = EPERM;
    ok(dtn_arena_init(&arena, MIB, true, &err) == DTENSOR_ESYS &&
       err.sys_errno == EPERM &&
       strcmp(err.text, "shm: memfd_create: Operation not permitted "
              "(set [transport] intra_node = tcp)") == 0,
       "refused: %s", err.text);
    ok(arena.backing.size == 12345, "and the output is untouched");
    memfd_errno = 0;
    ok(dtn_arena_init(&arena, 0, true, &err) == DTENSOR_EINVAL,
       "refused: %s", err.text);
    ok(dtn_arena_init(&arena, (size_t)1 << 60, false, &err) < 0,
       "refused: %s", err.text);
}

/* The limit holds for stdout too, so it is lifted before anything is said. */
static int limited_init(struct dtn_arena *arena, size_t size, rlim_t limit,
                        struct dtensor_error *err)
{
    struct rlimit old, low;
    int rc;

    need(getrlimit(RLIMIT_FSIZE, &old) == 0, "getrlimit");
    low = old;
    low.rlim_cur = limit;
    need(setrlimit(RLIMIT_FSIZE, &low) == 0, "setrlimit");
    rc = dtn_arena_init(arena, size, true, err);
    if (rc == 0)
        arena->backing.base[arena->backing.size - 1] = 1;
    need(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    return rc;
}

static void rank_limited(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct dtn_arena arena;

    need(limited_init(&arena, 1024 * MIB, 100 * MIB + 5, &err) == 0, "%s",
         err.text);
    need(arena.backing.size == 100 * MIB, "it has %zu bytes",
         arena.backing.size);
    dtn_arena_fini(&arena);
    need(limited_init(&arena, MIB, 0, &err) == DTENSOR_ESYS, "made");
    note("refused: %s", err.text);
}

/* ----------------------------------------------- memory of another kind --- */

/* What the arena told a backing whose memory the CPU may not touch. */
static struct { size_t touched, offset, released; int closed; } told;

static bool foreign_touch(struct dtn_backing *backing, size_t offset,
                          size_t size)
{
    told.touched = offset + size;
    return told.touched <= 2 * MIB;
}

static void foreign_release(struct dtn_backing *backing, size_t offset,
                            size_t size)
{
    told.offset = offset;
    told.released = size;
}

static void foreign_close(struct dtn_backing *backing)
{
    munmap(backing->base, backing->size);
    told.closed++;
}

static void test_foreign(void)
{
    static const struct dtn_backing_ops ops = {
        foreign_touch, foreign_release, foreign_close
    };
    struct dtn_backing backing = { .ops = &ops, .fd = -1, .size = 4 * MIB,
                                   .page_bytes = MIB };
    struct dtn_arena arena;
    unsigned char *small, *large;
    size_t used;

    backing.base = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
    need(backing.base != MAP_FAILED, "mmap");
    need(dtn_arena_init_on(&arena, &backing, NULL) == 0, "no arena");
    small = dtn_arena_alloc(&arena, 100);
    large = dtn_arena_alloc(&arena, MIB);
    ok(small == backing.base && large == backing.base + MIB &&
       told.touched == 2 * MIB && dtn_arena_contains(&arena, large, MIB),
       "memory that the CPU may not touch is allocated in pages of its own");
    used = arena.extents.used_bytes;
    ok(!dtn_arena_alloc(&arena, MIB) && arena.extents.used_bytes == used,
       "no memory behind a block: NULL, and its addresses stay free");
    dtn_arena_lend(&arena, large);
    ok(!dtn_arena_return(&arena, small) && dtn_arena_return(&arena, large) &&
       told.offset == MIB && told.released == MIB,
       "it is told which block was freed");
    dtn_arena_free(&arena, small);
    dtn_arena_fini(&arena);
    ok(told.closed == 1, "and closed once");
}

int main(void)
{
    const char *text = getenv("DTN_SEED");

    seed = text ? strtoul(text, NULL, 10) : (unsigned long)time(NULL);
    test_oracle(true);
    test_oracle(false);
    test_pages();
    test_dumped();
    test_contains();
    test_block();
    test_seals();
    test_refused();
    test_foreign();
    ok(ranks_run(1, 20, rank_limited, NULL, NULL) == 0,
       "a limit on file size makes a smaller arena, not a fatal signal");
    return done();
}

/* test_table.c - the table of an allgather: made, shared, and refused
 *
 * The entries of 40 ranks come in a shuffled order, with blobs of many sizes.
 * The table has each at its rank, also as a file that another rank maps.  A
 * file that is not sealed, or whose list is wrong, is refused: its owner could
 * kill or mislead this process.
 *
 * Without this test, a rank could connect to an address of another rank.
 */
#include "boot/table.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "transport/transport.h"
#include "tests/support/tap.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 40, FIRST = 8, LOCAL = 4 };
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static unsigned char entries[RANKS * (DTN_BOOT_ENTRY_HEAD + DTN_BLOB_MAX)];

static size_t blob_size(int rank)
{
    return rank % 7 == 3 ? 0 : rank == 11 ? DTN_BLOB_MAX
                                          : (size_t)(rank * 37 % 300);
}

static unsigned char blob_byte(int rank, size_t i)
{
    return (unsigned char)((size_t)rank * 31 + i);
}

/* Append the entry of a rank; ranks 9 and 11 send a descriptor. */
static size_t append(size_t at, int rank)
{
    const size_t size = blob_size(rank);
    const unsigned flags = rank == 9 || rank == 11 ? DTN_ENTRY_HAS_FD : 0;

    dtn_frame_put32(entries + at, (uint32_t)rank);
    dtn_frame_put32(entries + at + 4, (uint32_t)size | flags << 16);
    for (size_t i = 0; i < size; i++)
        entries[at + DTN_BOOT_ENTRY_HEAD + i] = blob_byte(rank, i);
    return at + DTN_BOOT_ENTRY_HEAD + size;
}

static size_t fill(int n)
{
    size_t at = 0;

    for (int i = 0; i < n; i++)
        at = append(at, i * 17 % RANKS);
    return at;
}

static bool is_right(const struct dtn_table *table)
{
    struct dtn_blob blob;
    bool right = true;

    for (int r = 0; r < RANKS; r++) {
        dtn_table_get(table, r, &blob);
        right &= blob.size == blob_size(r);
        for (size_t i = 0; right && i < blob.size; i++)
            right &= blob.bytes[i] == blob_byte(r, i);
    }
    return right;
}

static struct dtn_table *make(size_t size, bool *goodp)
{
    return dtn_table_make(entries, size, RANKS, FIRST, LOCAL, goodp);
}

static void refuses(size_t size, const char *what)
{
    struct dtn_table *table;
    bool good = true;

    table = make(size, &good);
    ok(!table && !good, "refused: %s", what);
    dtn_table_free(table);
}

static void test_made(void)
{
    bool good = false, fds = true;
    const size_t all = fill(RANKS);
    struct dtn_table *table = make(all, &good);
    unsigned char bytes[400];
    int pipes[2];

    ok(table && good && is_right(table), "entries in any order make a table");
    for (int r = FIRST; r < FIRST + LOCAL; r++)
        fds &= dtn_table_awaits_fd(table, r) == (r == 9 || r == 11);
    ok(fds, "it knows who sent a descriptor");
    memset(bytes, 1, sizeof bytes);
    dtn_table_copy(table, 1, bytes, sizeof bytes);
    ok(bytes[36] == blob_byte(1, 36) && bytes[37] == 0 && bytes[399] == 0,
       "a short blob is followed by zeros");
    if (pipe(pipes) != 0)
        return (void)ok(false, "there is a pipe");
    dtn_table_put_fd(table, 9, pipes[0]);
    dtn_table_put_fd(table, 11, pipes[1]);
    ok(dtn_table_take_fd(table, 9) == pipes[0]
       && dtn_table_take_fd(table, 9) == -1
       && dtn_table_take_fd(table, 30) == -1, "a descriptor is taken once");
    dtn_table_free(table);
    ok(fcntl(pipes[0], F_GETFD) >= 0 && fcntl(pipes[1], F_GETFD) < 0,
       "the others are closed with the table");
    close(pipes[0]);
}

static void test_malformed(void)
{
    const size_t all = fill(RANKS);

    refuses(fill(RANKS - 1), "a rank is missing");
    refuses(append(fill(RANKS), 5), "a rank is there twice");
    refuses(append(fill(RANKS - 1), RANKS), "a rank that the job has not");
    fill(RANKS);
    refuses(all - 1, "the last entry is cut");
}

static struct dtn_table *reopen(int fd, bool *goodp)
{
    return dtn_table_open(fd, RANKS, FIRST, LOCAL, goodp);
}

static void test_shared(void)
{
    bool good = false;
    struct dtn_table *table = make(fill(RANKS), &good), *other;
    size_t shared = 0, own = 0;
    int fd = dtn_table_share(table);

    if (fd < 0) {
        skip("a table is shared", "the kernel makes no such file");
        dtn_table_free(table);
        return;
    }
    ok(is_right(table), "its maker reads it from the file");
    ok(write(fd, "x", 1) < 0 && ftruncate(fd, 8) < 0,
       "nobody can change the file");
    other = reopen(fd, &good);
    ok(other && good && is_right(other) && dtn_table_awaits_fd(other, 11),
       "another rank reads the same");
    dtn_table_footprint(other, &shared, &own);
    ok(shared > 4096 && own < 256, "%zu bytes are shared, %zu are its own",
       shared, own);
    dtn_table_free(other);
    dtn_table_unshare(table);
    ok(fcntl(fd, F_GETFD) < 0 && is_right(table), "the file is closed, the "
       "table stays");
    dtn_table_free(table);
}

static int file_of(const uint32_t end[RANKS], size_t bytes, int seals)
{
    int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const size_t head = RANKS * sizeof end[0];

    if (fd < 0 || write(fd, end, head) != (ssize_t)head
        || ftruncate(fd, (off_t)(head + bytes)) != 0
        || fcntl(fd, F_ADD_SEALS, seals) != 0)
        return -1;
    return fd;
}

static void file_refused(const uint32_t end[RANKS], size_t bytes, int seals,
                         const char *what)
{
    int fd = file_of(end, bytes, seals);
    struct dtn_table *table;
    bool good = true;

    table = reopen(fd, &good);
    ok(fd >= 0 && !table && !good, "refused: %s", what);
    dtn_table_free(table);
    close(fd);
}

static void test_files(void)
{
    uint32_t end[RANKS];
    bool good = false;
    struct dtn_table *table;
    int fd;

    for (int r = 0; r < RANKS; r++)
        end[r] = (uint32_t)r * 10;
    fd = file_of(end, 390, SEALS);
    if (fd < 0)
        return skip("files are checked", "the kernel makes no such file");
    table = reopen(fd, &good);
    ok(table && good, "a file that is right is taken");
    dtn_table_free(table);
    close(fd);
    file_refused(end, 390, SEALS & ~F_SEAL_SHRINK, "it may shrink");
    file_refused(end, 390, SEALS & ~F_SEAL_WRITE, "it may be written");
    file_refused(end, 389, SEALS, "the last blob is cut");
    file_refused(end, 391, SEALS, "something follows");
    end[7] = 55;
    file_refused(end, 390, SEALS, "a blob ends before it begins");
    for (int r = 7; r < RANKS; r++)
        end[r] = 60 + DTN_BLOB_MAX + 1;
    file_refused(end, 61 + DTN_BLOB_MAX, SEALS, "a blob is too long");
}

int main(void)
{
    test_made();
    test_malformed();
    test_shared();
    test_files();
    return done();
}

/* test_cluster_out_of_memory.c - reading a cluster file when the n-th
 * allocation fails
 *
 * For every n the answer is ENOMEM, nothing is lost (run it under the address
 * sanitizer), and no output is written.  The linker sends malloc() and its kin
 * here (--wrap).
 *
 * Without this test, a rank that is out of memory could crash while it reads
 * its file.
 */
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long countdown = -1;         /* allocations left; -1: no end          */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);
char *__wrap_strdup(const char *text);

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *mem, size_t size)
{
    return fails() ? NULL : __real_realloc(mem, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* Read with the n-th allocation failing; true when n were not even needed. */
static bool read_failing(const char *path, long n, bool *good)
{
    struct dtensor_cluster *cluster = (void *)&countdown, *before = cluster;
    struct dtensor_error err = { 0 };
    bool unused;
    int rc;

    countdown = n;
    rc = dtensor_cluster_read(path, NULL, NULL, &cluster, &err);
    unused = countdown >= 0;
    countdown = -1;
    if (unused) {
        *good = rc == 0;
        dtensor_cluster_destroy(cluster);
        return true;
    }
    *good = rc == DTENSOR_ENOMEM && err.code == DTENSOR_ENOMEM &&
            cluster == before && strstr(err.text, "out of memory");
    return false;
}

static bool canonical_failing(const struct dtensor_cluster *cluster, long n,
                              bool *good)
{
    char *text = NULL;
    bool unused;
    int rc;

    countdown = n;
    rc = dtn_cluster_canonical(cluster, &text, NULL);
    unused = countdown >= 0;
    countdown = -1;
    *good = unused ? rc == 0 && text : rc == DTENSOR_ENOMEM && !text;
    free(text);
    return unused;
}

static void test_file(const char *name, const char *path)
{
    struct dtensor_cluster *cluster = NULL;
    bool good = true;
    long n, bad = -1;

    for (n = 0; !read_failing(path, n, &good); n++)
        if (!good && bad < 0)
            bad = n;
    ok(n > 5 && bad < 0 && good,
       "%s: each of %ld allocations may fail: ENOMEM", name, n);
    if (bad >= 0)
        note("number %ld failed, and that was not ENOMEM", bad);
    if (dtensor_cluster_read(path, NULL, NULL, &cluster, NULL) != 0)
        exit(1);
    for (n = 0, bad = -1; !canonical_failing(cluster, n, &good); n++)
        if (!good)
            bad = n;
    ok(n > 0 && bad < 0 && good, "%s: so may those of its canonical text",
       name);
    dtensor_cluster_destroy(cluster);
}

static void test_example(const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/conf/%s", getenv("top_srcdir") ?
             getenv("top_srcdir") : ".", name);
    test_file(name, path);
}

static void test_step(void)
{
    static const char text[] = "[cluster]\nversion = 1\n[nodes \"a\"]\n"
                               "hosts = @step\naddresses = a[1-3]\n";
    int fd = memfd_create("step", MFD_CLOEXEC);
    char path[64];

    if (fd < 0 || write(fd, text, sizeof text - 1) < 0)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv("SLURM_STEP_NODELIST", "n[1-3]", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1", 1);
    test_file("@step", path);
    close(fd);
}

int main(void)
{
    test_example("laptop.ini");
    test_example("two-nodes.ini");
    test_step();
    return done();
}

/* test_file_refused.c - files that cannot be written, or are not what they were
 *
 * One rank that fails must not leave the others waiting: all get its error, an
 * earlier file stays whole, and the context can be used.  Each byte of a file
 * is changed in turn, and the file is cut at each length: no damage may be
 * taken for elements.
 *
 * Without this test, a full disk could destroy the only checkpoint, and a
 * damaged one could be trained on.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dtensor *iota(struct job *job, const char *placements,
                            struct dtensor_spec *spec)
{
    struct dtensor *t;

    good(dtensor_spec_init(spec, job->ctx, "world", placements, DTENSOR_I32, 2,
                           (const int64_t[]){ 4, 2 }, &job->err));
    good(dtensor_arange(spec, &t, &job->err));
    return t;
}

/* `call` fails with that code and with these words somewhere. */
#define refused(call, want, words)                                            \
    do {                                                                      \
        const int got = (call);                                               \
                                                                              \
        need(got == (want), "%s is %d: %s", #call, got, job->err.text);       \
        need(strstr(job->err.text, (words)), "%s: %s", #call, job->err.text); \
    } while (0)

/* --------------------------------------------------------------- damage --- */

/* Load the file; the code. */
static int load(struct job *job, const struct dtensor_spec *spec,
                const char *path)
{
    struct dtensor *t = NULL;
    const int rc = dtensor_load(spec, path, &t, &job->err);

    need((rc == 0) == (t != NULL), "a tensor was made by a failing load");
    dtensor_destroy(t);
    return rc;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    need(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0,
         "cannot write %s", path);
}

static void damage(int rank, int n, void *arg)
{
    static const char path[] = "test_file_damaged.npy";
    struct job the_job, *job = &the_job;
    struct dtensor_spec spec;
    struct dtensor *t;
    char bytes[1000];
    size_t size, plain = 128 + 32;
    FILE *file;

    job_open(job, rank, n, NULL);
    t = iota(job, "S(0)", &spec);
    good(dtensor_save(t, path, &job->err));
    file = fopen(path, "rb");
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    need(size == plain + 24 + 64, "the file has %zu bytes", size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x10;
        write_file(path, bytes, size);
        refused(load(job, &spec, path), DTENSOR_EINVAL, path);
        bytes[i] ^= 0x10;
    }
    for (size_t i = 0; i < size; i++) {
        write_file(path, bytes, i);
        if (i == plain)                      /* as NumPy would write it       */
            good(load(job, &spec, path));
        else
            refused(load(job, &spec, path), DTENSOR_EINVAL, path);
    }
    bytes[plain + 30] ^= 1;
    write_file(path, bytes, size);
    refused(load(job, &spec, path), DTENSOR_EINVAL, "what follows its elements "
            "are no checksums of this file (it is damaged: use another copy)");
    bytes[plain + 30] ^= 1;
    bytes[plain] ^= 1;
    write_file(path, bytes, size);
    refused(load(job, &spec, path), DTENSOR_EINVAL, "bytes 160 to 183 do not");
    bytes[plain] ^= 1;
    bytes[130] ^= 1;
    write_file(path, bytes, size);
    refused(load(job, &spec, path), DTENSOR_EINVAL, "bytes 128 to 159 do not "
            "have their checksum (the file is damaged: use another copy)");
    unlink(path);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------- other errors --- */

static void wrong_specs(struct job *job, const char *path)
{
    struct dtensor_spec spec;
    struct dtensor_meta meta = { .ndim = 77 };
    struct dtensor *t = iota(job, "S(1)", &spec), *none = NULL;

    spec.shape[0] = 5;
    refused(dtensor_load(&spec, path, &none, &job->err), DTENSOR_EINVAL,
            "has i32[4,2], but the spec is of i32[5,2] (see "
            "dtensor_file_meta)");
    spec.shape[0] = 4;
    spec.dtype = DTENSOR_F32;
    refused(dtensor_load(&spec, path, &none, &job->err), DTENSOR_EINVAL,
            "has i32[4,2], but the spec is of f32[4,2]");
    refused(dtensor_load(&spec, NULL, &none, &job->err), DTENSOR_EINVAL,
            "load: the path is NULL");
    refused(dtensor_load(&spec, ".", &none, &job->err), DTENSOR_EINVAL,
            ": .: it is not a regular file");
    if (dtensor_rank(job->ctx) == 0)
        need(mkfifo("pipe", 0600) == 0, "cannot make a pipe");
    good(dtensor_barrier(spec.mesh, &job->err));
    refused(dtensor_load(&spec, "pipe", &none, &job->err), DTENSOR_EINVAL,
            ": pipe: it is not a regular file");
    if (dtensor_rank(job->ctx) == 0)
        unlink("pipe");
    refused(dtensor_load(&spec, "no_such.npy", &none, &job->err), DTENSOR_ESYS,
            ": no_such.npy: No such file");
    need(job->err.sys_errno == ENOENT && job->err.rank == 0, "errno %d, rank "
         "%d", job->err.sys_errno, job->err.rank);
    refused(dtensor_file_meta("no_such.npy", &meta, &job->err), DTENSOR_ESYS,
            "load: no_such.npy: No such file");
    refused(dtensor_file_meta(NULL, &meta, &job->err), DTENSOR_EINVAL, "NULL");
    refused(dtensor_save(t, NULL, &job->err), DTENSOR_EINVAL,
            "save: the path is NULL (give the name of a file)");
    refused(dtensor_save(t, "", &job->err), DTENSOR_EINVAL, "is empty");
    refused(dtensor_save(t, "no/such/dir.npy", &job->err), DTENSOR_ESYS,
            ": no/such/dir.npy.part: No such file or "
            "directory (the directory has to be there, and writable)");
    refused(dtensor_save(t, ".", &job->err), DTENSOR_EINVAL,
            ": . is a directory (give the name of a file)");
    refused(dtensor_save(t, "/dev/null", &job->err), DTENSOR_EINVAL,
            ": /dev/null is no regular file");
    need(!none && meta.ndim == 77, "an output was written");
    dtensor_destroy(t);
}

/* Rank 1 may not write beyond byte 150, as on a full disk. */
static void full_disk(struct job *job, const char *path)
{
    struct rlimit limit, old;
    struct dtensor_spec spec;
    struct dtensor *t = iota(job, "S(0)", &spec);
    struct dtensor *ones;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 150;
    good(dtensor_ones(&spec, &ones, &job->err));
    if (job->rank == 1)
        setrlimit(RLIMIT_FSIZE, &limit);
    refused(dtensor_save(ones, path, &job->err), DTENSOR_ESYS,
            "save: rank 1 on ");
    need(job->err.sys_errno == EFBIG && job->err.rank == 1, "errno %d, rank %d",
         job->err.sys_errno, job->err.rank);
    setrlimit(RLIMIT_FSIZE, &old);
    good(dtensor_barrier(spec.mesh, &job->err));
    need(access("test_file_refused.npy.part", F_OK) != 0, "a part is left");
    dtensor_destroy(ones);
    good(dtensor_load(&spec, path, &ones, &job->err));
    need(memcmp(dtensor_to_local(ones), dtensor_to_local(t),
                dtensor_local_bytes(t)) == 0, "the earlier file has changed");
    dtensor_destroy(ones);
    dtensor_destroy(t);
}

/* Rank 1 is in another directory, as on a host with a disk of its own. */
static void other_disk(struct job *job)
{
    static const char path[] = "test_file_private.npy";
    struct dtensor_spec spec;
    struct dtensor *t = iota(job, "S(0)", &spec), *none = NULL;
    const struct dtensor_mesh *own;

    mkdir("test_file.dir", 0777);
    if (job->rank == 1)
        need(chdir("test_file.dir") == 0, "no directory");
    refused(dtensor_save(t, path, &job->err), DTENSOR_ESYS,
            ": test_file_private.npy.part: No such file or directory "
            "(the path has to be on a file system that all hosts share)");
    refused(dtensor_save(t, job->rank == 0 ? "one.npy" : "two.npy", &job->err),
            DTENSOR_EINVAL, "save: ranks see different files (");
    dtensor_destroy(t);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 1 }, NULL,
                             &job->rank, &own, &job->err));
    spec.mesh = own;
    good(dtensor_full(&spec, job->rank, &t, &job->err));
    good(dtensor_save(t, path, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &spec.mesh, &job->err));
    refused(dtensor_load(&spec, path, &none, &job->err), DTENSOR_EINVAL,
            "load: ranks see different files (");
    unlink(path);
    dtensor_destroy(t);
    if (job->rank == 1)
        need(chdir("..") == 0, "no way back");
}

static void errors(int rank, int n, void *arg)
{
    static const char path[] = "test_file_refused.npy";
    struct job the_job, *job = &the_job;
    struct dtensor_spec spec;
    struct dtensor *t;

    job_open(job, rank, n, NULL);
    t = iota(job, "R", &spec);
    good(dtensor_save(t, path, &job->err));
    dtensor_destroy(t);
    wrong_specs(job, path);
    full_disk(job, path);
    other_disk(job);
    good(dtensor_barrier(spec.mesh, &job->err));
    unlink(path);
    rmdir("test_file.dir");
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(1, 60, damage, NULL, NULL) == 0, "no damage is taken for "
       "elements");
    ok(ranks_run(2, 60, errors, NULL, NULL) == 0, "all ranks get the error of "
       "one, and go on");
    return done();
}

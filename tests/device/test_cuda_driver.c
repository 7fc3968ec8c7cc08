/* test_cuda_driver.c - finding a CUDA driver, and in words why there is none
 *
 * Each case is a process of its own, because a process loads one driver.
 *
 * Without this test, a job on a machine without a driver, or with one that is
 * too old, would crash on a call that is not there, or say only "error".  Each
 * send of a group could search the driver in twelve folders, 20 us long.
 */
#include "device/cuda/driver.h"
#include "dtensor.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* ----------------------------------------------------------- in the case -- */

/* Print what became of loading the driver, and a line for each skill. */
static int tell(void)
{
    const struct dtn_cuda_driver *driver = NULL, *again = NULL;
    struct dtensor_error err = { 0 };
    char why[200];
    int rc = dtn_cuda_driver_load(&driver, &err);

    if (rc != 0) {
        printf("%s %s\n%s", dtensor_errname(rc), err.text,
               driver ? "the result was touched\n" : "");
        return 0;
    }
    printf("loaded %d\n", driver->version);
    for (int i = 0; i < DTN_CUDA_SKILLS; i++)
        if (!dtn_cuda_can(driver, (enum dtn_cuda_skill)i, why, sizeof why))
            printf("%s\n", why);
    if (dtn_cuda_driver_load(&again, &err) != 0 || again != driver)
        printf("the second time it is another one\n");
    dtn_cuda_fail(&err, driver, "cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY,
                  "tensor of %d GiB", 7);
    printf("%s %s\n", dtensor_errname(err.code), err.text);
    fflush(stdout);
    if (fork() == 0) {
        rc = dtn_cuda_driver_load(&again, &err);
        printf("child: %s %s\n", dtensor_errname(rc), err.text);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    return 0;
}

/* The linker sends the library's calls of dlopen() here. */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

static int opened;

void *__wrap_dlopen(const char *name, int flags)
{
    opened++;
    return __real_dlopen(name, flags);
}

/* Is the driver found when the program loads it, and not searched before? */
static int look(void)
{
    int before = 0;

    for (int i = 0; i < 100; i++)
        before += dtn_cuda_driver_is_loaded();
    printf("found %d, searched %d times\n", before, opened);
    if (!__real_dlopen("libcuda.so.1", RTLD_LAZY))
        printf("%s\n", dlerror());
    printf("then found %d\n", dtn_cuda_driver_is_loaded());
    return 0;
}

/* ------------------------------------------------------------- the cases -- */

/* What the case `name` prints where LD_LIBRARY_PATH is `folder` and the
 * environment has `variable`, NULL: none.  Good until the next call.
 */
static const char *told_by(const char *name, const char *folder,
                           const char *variable, const char *value)
{
    static char text[4096];
    size_t n = 0;
    ssize_t got;
    int end[2];

    if (pipe(end) < 0)
        return "pipe";
    fflush(stdout);
    if (fork() == 0) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        if (variable)
            setenv(variable, value, 1);
        dup2(end[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_cuda_driver", name, (char *)NULL);
        _exit(1);
    }
    close(end[1]);
    while ((got = read(end[0], text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(end[0]);
    wait(NULL);
    return text;
}

static const char *told(const char *folder, const char *variable,
                        const char *value)
{
    return told_by("tell", folder, variable, value);
}

static void says(const char *claim, const char *text, const char *words)
{
    ok(strstr(text, words), "%s", claim);
    if (!strstr(text, words))
        note("expected: %s\n# told: %s", words, text);
}

static void test_drivers(void)
{
    const char *text = told(standin_folder(""), NULL, NULL);

    says("a driver of CUDA 13.0 is loaded", text, "loaded 13000\n");
    ok(!strstr(text, "has no"), "it has all calls");
    ok(!strstr(text, "another"), "a second load gives the same");
    says("an error has what, the call, the driver's words and its name", text,
         "ENOMEM tensor of 7 GiB: cuMemAlloc: out of memory "
         "(CUDA_ERROR_OUT_OF_MEMORY)\n");
    says("a child of fork() is told that it cannot use it", text,
         "child: ENODEV CUDA: the driver was initialised before fork()");
    text = told(standin_folder(""), "DTN_STANDIN_VERSION", "11060");
    says("a driver of CUDA 11.6 is loaded", text, "loaded 11060\n");
    says("... and cannot load kernels", text, "the driver (CUDA 11.6) has no "
         "cuLibraryLoadData (CUDA 12.0)\n");
    says("... nor export memory to cards", text, "the driver (CUDA 11.6) has "
         "no cuMemGetHandleForAddressRange (CUDA 11.7)\n");
    text = told(standin_folder("old"), "DTN_STANDIN_VERSION", "11030");
    says("the oldest driver that is loaded is of CUDA 11.3", text,
         "loaded 11030\n");
    says("... it has no graphs", text, "has no cuStreamBatchMemOp "
         "(CUDA 11.7)\n");
    ok(!strstr(text, "cuMemMap"), "... but shared memory");
}

static void test_look(void)
{
    const char *text = told_by("look", standin_folder(""), NULL, NULL);

    says("a driver that nobody loaded is searched once", text,
         "found 0, searched 1 times\n");
    says("... and found when the program has loaded it", text,
         "then found 1\n");
}

static void test_no_driver(void)
{
    char folder[] = "/tmp/dtn-no-cuda-XXXXXX", file[64];
    const char *text;
    int fd;

    if (!mkdtemp(folder)) {
        ok(false, "mkdtemp");
        return;
    }
    text = told(folder, NULL, NULL);
    if (strstr(text, "loaded"))
        skip("no driver is ENODEV", "this machine has a driver");
    else
        says("no driver is ENODEV, with what to do", text,
             "ENODEV CUDA: no driver: libcuda.so.1: cannot open shared object "
             "file: No such file or directory (install the NVIDIA driver; in a "
             "container, pass the GPUs through)");
    snprintf(file, sizeof file, "%s/libcuda.so.1", folder);
    fd = open(file, O_WRONLY | O_CREAT, 0644);
    close(fd);
    says("neither is an empty file a driver", told(folder, NULL, NULL),
         "file too short");
    unlink(file);
    rmdir(folder);
    says("a driver of CUDA 10.1 is too old", told(standin_folder("ancient"),
         NULL, NULL), "ENODEV CUDA: the driver can do CUDA 10.1; expected 11.3 "
         "or newer (install a newer NVIDIA driver)");
}

static void test_broken_driver(void)
{
    const char *folder = standin_folder("");
    static const struct {
        const char *code;
        const char *remedy;
    } cases[] = {
        { "cuInit:1=100", "CUDA_VISIBLE_DEVICES" },
        { "cuInit:1=34", "stub" },
        { "cuInit:1=802", "nvidia-fabricmanager" },
        { "cuInit:1=803", "/proc/driver/nvidia/version" },
        { "cuInit:1=999", "dmesg" },
    };

    says("a call that every use needs is missing: it is named",
         told(folder, "DTN_STANDIN_WITHOUT", "cuStreamSynchronize"),
         "ENODEV CUDA: the driver (CUDA 13.0) has no cuStreamSynchronize (CUDA "
         "2.0) (install a newer NVIDIA driver)");
    says("one that few need: it loads, and says so",
         told(folder, "DTN_STANDIN_WITHOUT", "cuMemMap,cuX"),
         "loaded 13000\nthe driver (CUDA 13.0) has no cuMemMap (CUDA 10.2)\n");
    says("no device", told(folder, "DTN_STANDIN_DEVICES", "0"),
         "ENODEV CUDA: cuInit: no CUDA-capable device is detected "
         "(CUDA_ERROR_NO_DEVICE) (see nvidia-smi -L");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = told(folder, "DTN_STANDIN_FAIL", cases[i].code);

        ok(strstr(text, "ENODEV CUDA: cuInit: ")
           && strstr(text, cases[i].remedy), "%s: what to do has \"%s\"",
           cases[i].code, cases[i].remedy);
    }
}

int main(int argc, char *argv[])
{
    char file[600];

    if (argc > 1)
        return strcmp(argv[1], "look") == 0 ? look() : tell();
    snprintf(file, sizeof file, "%s/libcuda.so.1", standin_folder("old"));
    if (access(file, R_OK) < 0)
        return skip_all("the stand-in was not built");
    test_drivers();
    test_look();
    test_no_driver();
    test_broken_driver();
    return done();
}

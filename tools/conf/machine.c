/* machine.c - does this machine have what ranks need?
 *
 * Memory that may be locked, files, CPUs, RDMA devices, GPUs.
 */
#include "tools/conf/conf.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool wants_rc(const struct doctor *doctor)
{
    const char *inside = doctor->info.intra_node;
    const char *between = doctor->info.inter_node;

    return (inside && strcmp(inside, "rc") == 0) ||
           (between && strcmp(between, "rc") == 0);
}

/* What stands behind `head` in the text of the devices, to the line's end. */
static bool devices_find(const struct doctor *doctor, const char *head,
                         char *buf, size_t size)
{
    const char *at = doctor->devices ? strstr(doctor->devices, head) : NULL;

    if (!at)
        return false;
    at += strlen(head);
    snprintf(buf, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

void doctor_memlock(struct doctor *doctor)
{
    char bytes[64] = "unknown";

    devices_find(doctor, "memory that may be locked: ", bytes, sizeof bytes);
    if (strcmp(bytes, "unlimited") == 0)
        doctor_say(doctor, DOCTOR_OK, "memlock", NULL, "memory that may be "
                   "locked is unlimited");
    else
        doctor_say(doctor, wants_rc(doctor) ? DOCTOR_BAD : DOCTOR_NOTE,
                   "memlock", "RDMA needs ulimit -l unlimited, for good in "
                   "/etc/security/limits.conf, and under Slurm "
                   "LimitMEMLOCK=infinity for slurmd", "%s may be locked",
                   bytes);
}

/* Ranks of the file on its fullest host. */
static int local_ranks(const struct doctor *doctor)
{
    struct dtensor_cluster_rank rank;
    int most = 0;

    for (int r = 0; r < doctor->info.nranks; r++)
        if (dtensor_cluster_rank(doctor->cluster, r, &rank, NULL) == 0 &&
            rank.local >= most)
            most = rank.local + 1;
    return most;
}

void doctor_limits(struct doctor *doctor)
{
    const int ranks = local_ranks(doctor);
    const rlim_t need = (rlim_t)doctor->info.nranks * 2 + 128;
    struct rlimit files = { 0 };
    int ncpus = 0;
    cpu_set_t cpus[8];            /* 8,192 CPUs: all that Linux can have      */

    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < need)
        doctor_say(doctor, DOCTOR_BAD, "files", "set ulimit -n 65536, for good "
                   "in /etc/security/limits.conf", "%llu files may be open, "
                   "%llu are needed for %d ranks",
                   (unsigned long long)files.rlim_cur,
                   (unsigned long long)need, doctor->info.nranks);
    else
        doctor_say(doctor, DOCTOR_OK, "files", NULL, "%llu files may be open",
                   (unsigned long long)files.rlim_cur);
    if (sched_getaffinity(0, sizeof cpus, cpus) == 0)
        ncpus = CPU_COUNT_S(sizeof cpus, cpus);
    if (ranks > ncpus)
        doctor_say(doctor, DOCTOR_NOTE, "cpus", "start fewer ranks on a host, or "
                   "give them more CPUs (srun --cpus-per-task)", "%d ranks on a "
                   "host, but %d CPUs here: waiting ranks yield, which is slow",
                   ranks, ncpus);
    else
        doctor_say(doctor, DOCTOR_OK, "cpus", NULL, "%d CPUs may be used",
                   ncpus);
}

/* Lines such as "rxe0:1  ACTIVE  LinkUp  RoCE  100 Gb/s  mtu 1024 of 4096". */
void doctor_devices(struct doctor *doctor)
{
    const char *line = doctor->devices ? doctor->devices : "";
    char why[200];
    int mtu, most, n = 0;

    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const int length = (int)strcspn(line, " \n");
        const char *at = strstr(line, "mtu ");

        if (*line == ' ' || !memchr(line, ':', (size_t)length) || !at ||
            at > line + strcspn(line, "\n") ||
            sscanf(at, "mtu %d of %d", &mtu, &most) < 1)
            continue;
        n++;
        most = sscanf(at, "mtu %d of %d", &mtu, &most) == 2 ? most : mtu;
        if (!strstr(line, "ACTIVE") || strstr(line, "ACTIVE") > line + 80)
            doctor_say(doctor, DOCTOR_NOTE, "devices", "see rdma link, and its "
                       "cable", "%.*s is not active", length, line);
        else if (mtu < most)
            doctor_say(doctor, DOCTOR_NOTE, "devices", "raise the MTU of its "
                       "network interface, on all hosts and switches",
                       "%.*s has MTU %d of %d", length, line, mtu, most);
        else
            doctor_say(doctor, DOCTOR_OK, "devices", NULL, "%.*s is active, MTU "
                       "%d", length, line, mtu);
    }
    if (n > 0)
        return;
    if (!devices_find(doctor, "verbs: ", why, sizeof why))
        snprintf(why, sizeof why, "no RDMA device");
    doctor_say(doctor, wants_rc(doctor) ? DOCTOR_BAD : DOCTOR_OK, "devices",
               NULL, "%s", why);
}

void doctor_gpu(struct doctor *doctor)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = NULL, (*count)(int *) = NULL, n = 0, rc;

    if (!driver) {
        doctor_say(doctor, DOCTOR_OK, "gpu", NULL, "no NVIDIA driver here, so no "
                   "GPU is used");
        return;
    }
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    rc = init && count ? init(0) : -1;
    if (rc == 0)
        rc = count(&n);
    if (rc != 0 || n == 0)
        doctor_say(doctor, DOCTOR_BAD, "gpu", "see nvidia-smi; are the kernel "
                   "modules of the driver loaded, and is CUDA_VISIBLE_DEVICES "
                   "right?", "the NVIDIA driver shows no GPU (error %d)", rc);
    else
        doctor_say(doctor, DOCTOR_OK, "gpu", NULL, "%d GPU%s (%s%s); "
                   "dtensor-conf --fabric in a job tells how RDMA reaches their "
                   "memory", n, n == 1 ? "" : "s", visible ?
                   "CUDA_VISIBLE_DEVICES=" : "all that there are",
                   visible ? visible : "");
}

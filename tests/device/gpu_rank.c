/* gpu_rank.c - a rank of a job on GPUs, with three arrays there */
#include "tests/device/gpu_rank.h"
#include "job/buffer.h"
#include "job/ctx.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

char gpu_file[64];
float plain[GPU_ROOM], graph[GPU_ROOM];

int gpu_ranks(int n, const char *dims, const char *timeout, rank_main_f *run,
              const char *arg)
{
    char more[300];
    int lost;

    snprintf(more, sizeof more, "connect_timeout = 30s\nop_timeout = %s\n"
             "[mesh \"world\"]\ndims = %s\nmemory = cuda\n", timeout, dims);
    strcpy(gpu_file, ranks_file("shm", n, more));
    lost = ranks_run(n, 90, run, (void *)(uintptr_t)arg, NULL);
    unlink(gpu_file);
    return lost;
}

static void *room(struct gpu_rank *use)
{
    struct job *job = &use->job;
    void *mem = NULL;

    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, sizeof plain, &mem,
                          &job->err));
    return mem;
}

void gpu_rank_open(struct gpu_rank *use, int rank, int n)
{
    struct job *job = &use->job;

    use->rank = rank;
    use->n = n;
    job_open(job, rank, n, gpu_file);
    good(dtensor_mesh_find(job->ctx, "world", &use->mesh, &job->err));
    use->in = room(use);
    use->out = room(use);
    use->in2 = room(use);
    use->cuda = dtn_cuda_of(job->ctx->device);
}

void gpu_rank_close(struct gpu_rank *use)
{
    dtensor_free(use->job.ctx, use->in);
    dtensor_free(use->job.ctx, use->out);
    dtensor_free(use->job.ctx, use->in2);
    dtensor_fini(use->job.ctx);
}

void gpu_fill(struct gpu_rank *use, float *to, int round)
{
    struct job *job = &use->job;

    for (size_t i = 0; i < GPU_ROOM; i++)
        plain[i] = 1.0f / (float)(1 + (i * 37 + (size_t)use->rank * 11
                                       + (size_t)round * 5) % 1009);
    good(dtn_buffer_copy(job->ctx, to, plain, sizeof plain, &job->err));
}

void gpu_take(struct gpu_rank *use, float host[GPU_ROOM])
{
    struct job *job = &use->job;

    good(dtn_buffer_copy(job->ctx, host, use->out, sizeof plain, &job->err));
}

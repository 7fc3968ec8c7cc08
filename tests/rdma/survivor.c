/* survivor.c - one rank of a job that loses another rank
 *
 * `survivor FILE BYTES` calls allreduces of BYTES until one fails.  It makes
 * FILE after a hundred calls, so that a script can wait until the job runs, and
 * pauses before each later call: many such jobs run at once.  It prints what
 * the error says, one fact on each line.  With rank 1 silent for the 1.07 s of
 * 4 tries:
 *
 *     code EPEER
 *     rank 1
 *     after_ms 1131
 *     again EPEER
 *     text rank 0 on node1: allreduce ...
 *
 * `survivor FILE BYTES GO` makes FILE when the job is open.  It meets the other
 * ranks and begins when there is a file GO.  `survivor FILE BYTES GO PEER` then
 * waits for a message of rank PEER, which sends none; PEER itself computes for
 * ten seconds.
 */
#include "base/wait.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM = 100, PAUSE_US = 2000 };

struct survivor {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *mesh;
    float *x;
    size_t count;
    int peer;                     /* of whom it waits for a message, or -1    */
    struct dtensor_error err;
};

static int survivor_open(struct survivor *s, size_t size)
{
    void *mem = NULL;
    int rc = dtensor_init(NULL, &s->ctx, &s->err);

    if (rc == 0)
        rc = dtensor_mesh_find(s->ctx, "world", &s->mesh, &s->err);
    if (rc == 0)
        rc = dtensor_alloc(s->ctx, size, &mem, &s->err);
    s->x = mem;
    s->count = size / sizeof *s->x;
    return rc;
}

static int survivor_step(struct survivor *s)
{
    if (s->peer == dtensor_rank(s->ctx)) {
        sleep(10);
        return DTENSOR_EABORT;    /* nobody asks it                           */
    }
    if (s->peer >= 0)
        return dtensor_recv(s->mesh, s->peer, s->x, s->count, DTENSOR_F32,
                            &s->err);
    return dtensor_allreduce(s->mesh, s->x, s->x, s->count, DTENSOR_F32,
                             DTENSOR_MAX, &s->err);
}

static int survivor_tell(const char *path)
{
    FILE *file = fopen(path, "w");

    return file ? fclose(file) : -1;
}

/* Call until a call fails; returns when the last good one had ended. */
static int survivor_run(struct survivor *s, const char *path, int64_t *good_ns)
{
    int rc = 0;

    for (long calls = 1; rc == 0; calls++) {
        *good_ns = dtn_now_ns();
        rc = survivor_step(s);
        if (calls == WARM && survivor_tell(path) != 0)
            return DTENSOR_ESYS;
        if (calls >= WARM && rc == 0)
            usleep(PAUSE_US);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct survivor s = { .peer = argc == 5 ? atoi(argv[4]) : -1 };
    int64_t good_ns = 0, end_ns;
    int rc;

    if (argc < 3 || argc > 5)
        return 2;
    rc = survivor_open(&s, (size_t)strtoul(argv[2], NULL, 10));
    if (rc != 0) {
        printf("could not begin: %s\n", s.err.text);
        return 1;
    }
    if (argc > 3 && survivor_tell(argv[1]) != 0)
        return 1;
    while (argc > 3 && access(argv[3], F_OK) != 0)
        usleep(1000);
    rc = survivor_run(&s, argv[1], &good_ns);
    end_ns = dtn_now_ns();
    printf("code %s\nrank %d\nafter_ms %lld\n", dtensor_errname(rc),
           s.err.rank, (long long)(end_ns - good_ns) / 1000000);
    printf("again %s\n", dtensor_errname(survivor_step(&s)));
    printf("text %s\n", s.err.text);
    end_ns = dtn_now_ns();
    dtensor_free(s.ctx, s.x);
    dtensor_fini(s.ctx);
    printf("fini_ms %lld\n", (long long)(dtn_now_ns() - end_ns) / 1000000);
    return 0;
}

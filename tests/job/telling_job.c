/* telling_job.c - the program of one_line.sh: a rank that prints its error
 *
 * `telling_job FILE` calls allreduces until one fails.  It makes FILE after a
 * hundred calls, so that a script can wait until the job runs.  It prints the
 * error as the manual says: if dtensor_should_report() wants this rank to.
 */
#include "dtensor.h"

#include <stdio.h>

enum { WARM = 100 };

static int tell_running(const char *path)
{
    FILE *file = fopen(path, "w");

    return file ? fclose(file) : -1;
}

int main(int argc, char **argv)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    float sum = 1;
    int rc;

    if (argc != 2)
        return 2;
    rc = dtensor_init(NULL, &ctx, &err);
    if (rc == 0)
        rc = dtensor_mesh_find(ctx, "world", &mesh, &err);
    for (long calls = 1; rc == 0; calls++) {
        rc = dtensor_allreduce(mesh, &sum, &sum, 1, DTENSOR_F32, DTENSOR_MAX,
                               &err);
        if (calls == WARM && tell_running(argv[1]) != 0)
            return 3;
    }
    if (dtensor_should_report(ctx, &err))
        fprintf(stderr, "%s\n", err.text);
    dtensor_fini(ctx);
    return 1;
}

/* convert.c - load the tensor of a .npy file and save it again
 *
 *   dtensor-run -n 3 convert IN PLACEMENTS OUT
 *
 * tests/file/numpy.sh compares both files with NumPy.
 */
#include "dtensor.h"

#include <stdio.h>

static int convert(struct dtensor_ctx *ctx, char *argv[],
                   struct dtensor_error *err)
{
    struct dtensor_meta meta;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    int rc = dtensor_file_meta(argv[1], &meta, err);

    if (rc == 0)
        rc = dtensor_spec_init(&spec, ctx, "world", argv[2], meta.dtype,
                               meta.ndim, meta.shape, err);
    if (rc == 0)
        rc = dtensor_load(&spec, argv[1], &t, err);
    if (rc == 0)
        rc = dtensor_save(t, argv[3], err);
    dtensor_destroy(t);
    return rc;
}

int main(int argc, char *argv[])
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    int rc;

    if (argc != 4)
        return 2;
    rc = dtensor_init(NULL, &ctx, &err);
    if (rc == 0)
        rc = convert(ctx, argv, &err);
    if (rc != 0 && dtensor_should_report(ctx, &err))
        fprintf(stderr, "%s\n", err.text);
    dtensor_fini(ctx);
    return rc != 0;
}

/* tensor_job.c - one rank of a job of tensors whose values are known */
#include "tests/support/tensor_job.h"

#include <stddef.h>

struct dtensor_spec spec_of(struct job *job, const struct dtensor_mesh *mesh,
                            enum dtensor_dtype dtype, const int64_t shape[2],
                            const char *placements)
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = dtype, .ndim = 2,
                                 .shape = { shape[0], shape[1] } };

    good(dtensor_placements_parse(mesh, placements, 2, spec.placement,
                                  &job->err));
    return spec;
}

/* ------------------------------------------------------------- elements --- */

double get(enum dtensor_dtype dtype, const void *array, int64_t i)
{
    switch (dtype) {
    case DTENSOR_F64: return ((const double *)array)[i];
    case DTENSOR_I32: return ((const int32_t *)array)[i];
    default:          return ((const float *)array)[i];
    }
}

void set(enum dtensor_dtype dtype, void *array, int64_t i, double value)
{
    switch (dtype) {
    case DTENSOR_F64: ((double *)array)[i] = value; break;
    case DTENSOR_I32: ((int32_t *)array)[i] = (int32_t)value; break;
    default:          ((float *)array)[i] = (float)value; break;
    }
}

double whole_at(int64_t i)
{
    return 60.0 * (double)(i * 7 % 31 + 1);
}

int64_t numel(const struct dtensor_spec *spec)
{
    return spec->shape[0] * spec->shape[1];
}

int64_t indices_of(const struct job *job, const struct dtensor_spec *spec,
                   int dim, int64_t index[])
{
    struct dtensor_run run[ELEMS_MAX];
    int64_t n = dtensor_spec_runs(spec, job->rank, dim, run, ELEMS_MAX);
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < run[i].size; k++)
            index[count++] = run[i].start + k;
    return count;
}

bool local_is_right(struct job *job, const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    int64_t row[ELEMS_MAX], col[ELEMS_MAX], k = 0;
    int64_t rows = indices_of(job, spec, 0, row);
    int64_t cols = indices_of(job, spec, 1, col);

    if (dtensor_local_bytes(t) != (size_t)(rows * cols) *
                                  dtensor_dtype_size(spec->dtype))
        return false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            if (get(spec->dtype, dtensor_to_local(t), k++) !=
                whole_at(row[i] * spec->shape[1] + col[j]))
                return false;
    return true;
}

bool whole_is_right(struct job *job, const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    double full[ELEMS_MAX];

    good(dtensor_full_tensor(t, full, (size_t)numel(spec) *
                             dtensor_dtype_size(spec->dtype), &job->err));
    for (int64_t i = 0; i < numel(spec); i++)
        if (get(spec->dtype, full, i) != whole_at(i))
            return false;
    return true;
}

bool is_partial(const struct dtensor_spec *spec)
{
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            return true;
    return false;
}

void make_uneven(struct job *job, const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    int coord[DTENSOR_MAX_DIMS], terms = 1, own = 0;
    int64_t shape[2], offset[2];

    if (!dtensor_mesh_coord(spec->mesh, job->rank, coord))
        return;
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL &&
            spec->placement[m].op == DTENSOR_SUM) {
            terms *= dtensor_mesh_dim_size(spec->mesh, m);
            own += coord[m];
        }
    dtensor_spec_local(spec, job->rank, shape, offset);
    for (int64_t i = 0; terms > 1 && i < shape[0] * shape[1]; i++)
        set(spec->dtype, dtensor_to_local(t), i,
            get(spec->dtype, dtensor_to_local(t), i) +
            (own == 0 ? 60 * (terms - 1) : -60));
}

struct dtensor *make(struct job *job, const struct dtensor_spec *spec,
                     int root)
{
    char full[ELEMS_MAX * 8];
    struct dtensor *t = NULL;

    for (int64_t i = 0; i < numel(spec); i++)
        set(spec->dtype, full, i, whole_at(i));
    good(dtensor_distribute(spec, root < 0 ||
                            dtensor_mesh_rank(spec->mesh, root) == job->rank ?
                            full : NULL, root, &t, &job->err));
    return t;
}

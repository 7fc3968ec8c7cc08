/* spec_text.c - specs made from text, and written as text
 *
 * A program gives placements as text: "S(0),R" for a mesh of two dimensions.
 * PyTorch prints a whole spec: "Spec(f32[8, 8](S(0)[0]S(0)[1]))" is a dtype, a
 * shape and placements for a mesh that the text does not name.
 * dtensor_spec_format() writes the text inside Spec(); this form is read, too.
 * Messages show f32[8,8]  S(0),R  on world(dp=2,tp=2).
 */
#include "layout/spec.h"
#include "base/error.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------- from placements text --- */

int dtensor_spec_on(struct dtensor_spec *spec, const struct dtensor_mesh *mesh,
                    const char *placements, enum dtensor_dtype dtype, int ndim,
                    const int64_t shape[], struct dtensor_error *err)
{
    struct dtensor_spec made = { .mesh = mesh, .dtype = dtype, .ndim = ndim };
    int rc;

    if (!mesh)
        return dtensor_spec_check(&made, err);
    rc = dtn_shape_check("spec", dtype, ndim, shape, err);
    if (rc != 0)
        return rc;
    if (ndim > 0)
        memcpy(made.shape, shape, (size_t)ndim * sizeof shape[0]);
    rc = dtensor_placements_parse(mesh, placements, ndim, made.placement, err);
    if (rc == 0)
        rc = dtensor_spec_check(&made, err);
    if (rc == 0)
        *spec = made;
    return rc;
}

int dtensor_spec_init(struct dtensor_spec *spec, struct dtensor_ctx *ctx,
                      const char *mesh, const char *placements,
                      enum dtensor_dtype dtype, int ndim,
                      const int64_t shape[], struct dtensor_error *err)
{
    const struct dtensor_mesh *found;
    int rc = dtensor_mesh_find(ctx, mesh, &found, err);

    return rc != 0 ? rc : dtensor_spec_on(spec, found, placements, dtype, ndim,
                                          shape, err);
}

/* ------------------------------------------------- as PyTorch prints it --- */

/* Read "f32" of "f32[8, 8](...)"; *atp is then after the "[". */
static bool text_dtype(const char **atp, enum dtensor_dtype *dtypep)
{
    const char *end = strchr(*atp, '[');
    char name[16];

    if (!end || (size_t)(end - *atp) >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(end - *atp), *atp);
    *atp = end + 1;
    return dtensor_dtype_parse(name, dtypep, NULL) == 0;
}

/* Read "8, 8]"; *atp is then after the "]". */
static bool text_shape(const char **atp, int *ndimp, int64_t shape[])
{
    const char *p = *atp;
    int ndim = 0;
    char *end;

    while (*p != ']') {
        if (ndim == DTENSOR_MAX_DIMS)
            return false;
        errno = 0;
        shape[ndim++] = strtoll(p, &end, 10);
        if (end == p || errno != 0 || (*end != ',' && *end != ']'))
            return false;
        p = end + (*end == ',');
    }
    *ndimp = ndim;
    *atp = p + 1;
    return true;
}

/* `body` is the text without Spec(); it is modified. */
static int text_read(char *body, const struct dtensor_mesh *mesh,
                     struct dtensor_spec *spec, struct dtensor_error *err)
{
    int64_t shape[DTENSOR_MAX_DIMS];
    enum dtensor_dtype dtype;
    const char *at = body;
    int ndim;

    if (!text_dtype(&at, &dtype) || !text_shape(&at, &ndim, shape) ||
        *at != '(')
        return dtn_fail(err, DTENSOR_EINVAL, "spec: \"%.80s\"; expected dtype, "
                        "shape and placements such as f32[8, 8](S(0)R)", body);
    return dtensor_spec_on(spec, mesh, at, dtype, ndim, shape, err);
}

int dtensor_spec_parse(struct dtensor_spec *spec,
                       const struct dtensor_mesh *mesh, const char *text,
                       struct dtensor_error *err)
{
    size_t length = text ? strlen(text) : 0;
    char *body;
    int rc;

    if (!text)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: there is no text; expected "
                        "one such as f32[8, 8](S(0)R)");
    if (length > 6 && strncmp(text, "Spec(", 5) == 0 &&
        text[length - 1] == ')') {
        text += 5;
        length -= 6;
    }
    body = strndup(text, length);
    if (!body)
        return dtn_fail_nomem(err, "spec", length);
    rc = text_read(body, mesh, spec, err);
    free(body);
    return rc;
}

/* --------------------------------------------------------- for messages --- */

char *dtn_spec_format(const struct dtensor_spec *spec, char *buf, size_t size)
{
    char placements[DTENSOR_MAX_DIMS * 20], mesh[256];
    size_t used = strlen(dtn_spec_shape(spec, buf, size));

    dtensor_placements_format(spec->mesh, spec->placement, placements,
                              sizeof placements);
    snprintf(buf + used, size - used, "  %s  on %s", placements,
             dtn_mesh_format(spec->mesh, mesh, sizeof mesh));
    return buf;
}

int dtn_spec_check_same(const char *what, const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         struct dtensor_error *err)
{
    char from[400], to[400];

    if (dtn_spec_same_tensor(src, dst))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %.200s cannot become %.200s "
                    "(context, dtype and shape must be the same)", what,
                    dtn_spec_format(src, from, sizeof from),
                    dtn_spec_format(dst, to, sizeof to));
}

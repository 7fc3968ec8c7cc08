/* spec_text.c - read a spec as PyTorch prints it
 *
 * "Spec(f32[8, 8](S(0)[0]S(0)[1]))" is a dtype, a shape and placements, for a
 * mesh that the text does not name.  dtensor_spec_format() writes the text
 * inside Spec(), which is read, too.
 */
#include "base/error.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* "f32" of "f32[8, 8](...)"; *atp is then behind the bracket. */
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

/* "8, 8]"; *atp is then behind the bracket. */
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

/* `body`, without Spec(), is cut up. */
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
    if (length > 6 && strncmp(text, "Spec(", 5) == 0 && text[length - 1] == ')') {
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

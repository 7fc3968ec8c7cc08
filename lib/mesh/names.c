/* names.c - the names of mesh dimensions, read and looked up
 *
 * Names are given as one text, "dp, tp": words with commas between them; blanks
 * around a word are ignored.  Functions take the number of a dimension;
 * dtensor_mesh_dim() finds it by name: "tp" is 1.
 */
#include "mesh/names.h"
#include "base/error.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

bool dtn_mesh_next_name(const char **textp, char word[DTN_MESH_WORD_MAX])
{
    const char *begin = *textp, *end;

    if (!begin)
        return false;
    end = begin + strcspn(begin, ",");
    *textp = *end ? end + 1 : NULL;
    begin += strspn(begin, " ");
    while (end > begin && end[-1] == ' ')
        end--;
    snprintf(word, DTN_MESH_WORD_MAX, "%.*s", (int)(end - begin), begin);
    return true;
}

static int mesh_fail_names(const char *text, int ndim,
                           struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: names \"%.80s\" do not fit %d "
                    "dimensions (give one for each, or NULL)", text, ndim);
}

int dtn_mesh_names(const char *text, int n,
                   char names[][DTENSOR_NAME_MAX + 1],
                   struct dtensor_error *err)
{
    char word[DTN_MESH_WORD_MAX];
    int i = 0;

    for (const char *p = text; dtn_mesh_next_name(&p, word); i++) {
        if (i == n)
            return mesh_fail_names(text, n, err);
        if (!word[0] || strlen(word) > DTENSOR_NAME_MAX)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: name %d of \"%.80s\" "
                            "is empty or over %d characters", i + 1, text,
                            DTENSOR_NAME_MAX);
        for (int k = 0; k < i; k++)
            if (strcmp(names[k], word) == 0)
                return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension name "
                                "\"%s\" is given twice in \"%.80s\"", word,
                                text);
        strcpy(names[i], word);
    }
    return i == n ? 0 : mesh_fail_names(text, n, err);
}

int dtn_mesh_check_name(const char *name, struct dtensor_error *err)
{
    size_t n = strlen(name);

    if (n > 0 && n <= DTENSOR_NAME_MAX && !strchr(name, ',') &&
        name[0] != ' ' && name[n - 1] != ' ')
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: \"%.80s\" cannot name a "
                    "dimension (1 to %d characters, no comma, no blank at an "
                    "end)", name, DTENSOR_NAME_MAX);
}

int dtn_mesh_find_dim(const struct dtensor_mesh *mesh, const char *name)
{
    for (int d = 0; d < mesh->ndim; d++)
        if (name[0] && strcmp(mesh->dim_name[d], name) == 0)
            return d;
    return -1;
}

int dtn_mesh_check_dim(const struct dtensor_mesh *mesh, int *dim,
                       struct dtensor_error *err)
{
    char own[256];

    dtn_mesh_format(mesh, own, sizeof own);
    if (*dim == -1 && mesh->ndim > 1)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: which dimension of %s? (-1 "
                        "needs a mesh of one dimension, it has %d)", own,
                        mesh->ndim);
    if (*dim < -1 || *dim >= mesh->ndim)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no dimension %d in %s; "
                        "expected 0 to %d", *dim, own, mesh->ndim - 1);
    if (*dim == -1)
        *dim = 0;
    return 0;
}

int dtensor_mesh_dim(const struct dtensor_mesh *mesh, const char *name,
                     int *dimp, struct dtensor_error *err)
{
    int d = dtn_mesh_find_dim(mesh, name);
    char own[256];

    if (d < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no dimension \"%.80s\" in "
                        "%s", name, dtn_mesh_format(mesh, own, sizeof own));
    *dimp = d;
    return 0;
}

int dtensor_mesh_format(const struct dtensor_mesh *mesh, char *text,
                        size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s(",
                                   mesh->name[0] ? mesh->name : "mesh");

    for (int d = 0; d < mesh->ndim; d++)
        used += (size_t)snprintf(used < size ? text + used : NULL,
                                 used < size ? size - used : 0, "%s%s%s%d",
                                 d ? "," : "", mesh->dim_name[d],
                                 mesh->dim_name[d][0] ? "=" : "",
                                 mesh->size[d]);
    used += (size_t)snprintf(used < size ? text + used : NULL,
                             used < size ? size - used : 0, ")");
    return (int)used;
}

char *dtn_mesh_format(const struct dtensor_mesh *mesh, char *buf, size_t size)
{
    dtensor_mesh_format(mesh, buf, size);
    return buf;
}

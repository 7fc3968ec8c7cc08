/* refused.h - a call that must be refused, in these words, and write nothing
 *
 * REFUSED(dtensor_mesh_slice(mesh, "x", &out.mesh, &why), "mesh: no ...") is
 * true if it was: EINVAL, the words, and every output as it was before.
 */
#ifndef REFUSED_H
#define REFUSED_H

#include "dtensor.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <string.h>

/* Room for whatever a call might write. */
static struct outs {
    const struct dtensor_mesh *mesh;
    struct dtensor *t;
    struct dtensor_plan *plan, *pair[2];
    struct dtensor_batch *batch;
    struct dtensor_request *request;
    struct dtensor_spec spec;
    struct dtensor_placement placement[DTENSOR_MAX_DIMS];
    struct dtensor_meta meta;
    struct dtensor_plan_choice choice;
    struct dtensor_plan_step step;
    int number[DTENSOR_MAX_DIMS];
    float array[64];
} out;
static struct dtensor_error why;

static inline void outs_begin(void)
{
    memset(&out, 0x5a, sizeof out);
    memset(&why, 0, sizeof why);
}

static inline bool outs_untouched(void)
{
    const unsigned char *byte = (const unsigned char *)&out;

    for (size_t i = 0; i < sizeof out; i++)
        if (byte[i] != 0x5a)
            return false;
    return true;
}

static inline bool is_refused(const char *call, int rc, const char *words)
{
    if (rc == DTENSOR_EINVAL && why.code == rc && outs_untouched() &&
        strcmp(why.text, words) == 0)
        return true;
    note("%s is %s, \"%s\"%s", call, dtensor_errname(rc), why.text,
         outs_untouched() ? "" : ", and wrote");
    return false;
}

#define REFUSED(call, words) (outs_begin(), is_refused(#call, (call), words))

#endif

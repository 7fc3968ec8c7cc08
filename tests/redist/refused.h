/* refused.h - a call that must be refused, in these words, and write nothing
 *
 * REFUSED(dtensor_mesh_slice(mesh, "x", &out.mesh, &why), "mesh: no ...") is
 * true if it was: EINVAL, the words, and every output as it was before.
 */
#ifndef TESTS_REFUSED_H
#define TESTS_REFUSED_H

#include "dtensor.h"

#include <stdbool.h>

/* Room for whatever a call might write. */
struct outs {
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
};

extern struct outs out;
extern struct dtensor_error why;
void outs_begin(void);
bool outs_untouched(void);
bool is_refused(const char *call, int rc, const char *words);

#define REFUSED(call, words) (outs_begin(), is_refused(#call, (call), words))

#endif

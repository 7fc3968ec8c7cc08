/* golden_call.h - calls of operators from the lines of tests/golden/ops.txt */
#ifndef TESTS_GOLDEN_CALL_H
#define TESTS_GOLDEN_CALL_H

#include "dtensor.h"
#include "tests/support/golden.h"

#include <stdbool.h>

enum { GOLDEN_INPUTS = 8, GOLDEN_OUTPUTS = 64 };

/* A line: what PyTorch was asked, and what it answered. */
struct golden_call {
    struct dtensor_op_call call;           /* in our words                    */
    struct dtensor_spec in[GOLDEN_INPUTS];         /* of call.in              */
    char name[64];                         /* of the operator, PyTorch's      */
    const char *refused;                   /* why, or NULL                    */
    char want[GOLDEN_INPUTS][80];          /* placements of the inputs        */
    char out[GOLDEN_OUTPUTS][80];          /* of the outputs; "-": no tensor  */
    int nout;                              /* entries of out                  */
    double us;                             /* predicted                       */
    bool wrong;                            /* PyTorch's own result was wrong  */
};

/* Read the line that golden_next() found; false: we have no such operator. */
bool golden_call_read(struct golden *table, struct dtensor_ctx *ctx,
                      struct golden_call *g);

#endif

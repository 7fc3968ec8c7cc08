/* golden_counts.h - what PyTorch 2.15 moves for a style, on 4 ranks
 *
 * It leaves the gradients of layer_norm as terms, which its optimizer sums,
 * each for itself and three times; here the tape does, one allreduce for all.
 */
#ifndef TESTS_MODULE_GOLDEN_COUNTS_H
#define TESTS_MODULE_GOLDEN_COUNTS_H

#include "dtensor.h"

#include <stdbool.h>

enum { GOLDEN_COUNTS = 19 };

struct golden {
    const char *type;              /* of the module "m", as of single()       */
    struct dtensor_style plan[3];  /* styles                                  */
    const char *input;             /* how the input comes                     */
    bool watched;                  /* so does its gradient                    */
    const char *forward, *backward;    /* all-gathers, allreduces and         */
                                   /* reduce-scatters, "AG AR RS"             */
};

extern const struct golden golden[GOLDEN_COUNTS];

/* How many styles its plan has. */
int golden_styles(const struct golden *g);

#endif

/* failure.h - why a context is poisoned */
#ifndef DTN_JOB_FAILURE_H
#define DTN_JOB_FAILURE_H

#include "boot/boot.h"
#include "dtensor.h"

#include <stdint.h>

struct dtn_failure {
    struct dtensor_error err;     /* code != 0: poisoned; the first cause     */
    int64_t at_ns;                /* when, by dtn_now_ns()                    */
    struct dtn_mismatch mismatch; /* if it is one                             */
    enum dtn_loss loss;           /* how its culprit was lost, if it was      */
};

#endif

/* env.c - numbers in environment variables
 *
 * In a job of 8 ranks DTN_RANK=x gives an error with its range:
 * `DTN_RANK is "x", expected 0 to 7`.
 */
#include "cluster/env.h"
#include "base/error.h"
#include "base/units.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

int dtn_env_number(const char *variable, int min, int max, int *out,
                   struct dtensor_error *err)
{
    const char *text = getenv(variable);
    uint64_t value;

    if (!dtn_parse_u64(text, false, (uint64_t)max, &value) ||
        value < (uint64_t)min)
        return dtn_fail(err, DTENSOR_ECONF, "%s is \"%.40s\", expected %d to "
                        "%d", variable, text, min, max);
    *out = (int)value;
    return 0;
}

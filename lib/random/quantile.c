/* quantile.c - the normal distribution function and its inverse
 *
 * A normal value between two bounds is the inverse of the distribution function
 * at a uniform value.  For the bounds -2 and 2, the uniform value lies between
 * 0.02275 and 0.97725.  So each value needs one word for any bounds; a
 * rejection method would need an unknown number of words.
 */
#include "random/quantile.h"
#include "base/elementary.h"

#include <math.h>

/* The distribution function at -z, for z > 0: the density times a continued
 * fraction of 200 terms.  It is exact from z = 2 on.
 */
static double normal_tail(double z)
{
    const double density = exp_of_f64(-0.5 * z * z) * 0x1.9884533d43651p-2;
    double fraction = z;

    for (int k = 200; k > 0; k--)
        fraction = z + k / fraction;
    return density / fraction;
}

/* 1/2 plus the density times z + z^3/3 + z^5/15 + z^7/105 ... */
static double normal_middle(double z)
{
    const double density = exp_of_f64(-0.5 * z * z) * 0x1.9884533d43651p-2;
    double term = z, sum = z;

    for (int k = 3; k < 100; k += 2) {
        term *= z * z / k;
        sum += term;
    }
    return 0.5 + density * sum;
}

double dtn_normal_cdf(double z)
{
    if (z < -2.0)
        return z > -38.0 ? normal_tail(-z) : 0.0;
    if (z > 2.0)
        return 1.0 - (z < 38.0 ? normal_tail(z) : 0.0);
    return normal_middle(z);
}

double dtn_normal_quantile(double p)
{
    return normal_quantile(p);
}

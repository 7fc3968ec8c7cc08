/* quantile.h - the normal distribution function and its inverse */
#ifndef DTN_RANDOM_QUANTILE_H
#define DTN_RANDOM_QUANTILE_H

/* cdf: the probability that a normal value is at most z.  quantile: the z of
 * probability p, for p in (0, 1/2].
 */
double dtn_normal_cdf(double z);
double dtn_normal_quantile(double p);

#endif

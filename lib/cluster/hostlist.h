/* hostlist.h - host lists: node[001-064] */
#ifndef DTN_CLUSTER_HOSTLIST_H
#define DTN_CLUSTER_HOSTLIST_H

#include <stddef.h>

/* Expand "n[01-03,07]-ib,x" strictly: see dtensor-cluster(5).  On failure `why`
 * gets the reason: `range "2-1" in "n[2-1]" runs backwards; expected 1-2`.  The
 * caller frees *namesp with dtn_hostlist_free().
 */
int dtn_hostlist_expand(const char *text, char ***namesp, int *np, char *why,
                        size_t why_size);
void dtn_hostlist_free(char **names, int n);

/* The reverse, for messages: {n1,n2,n3,x} is "n[1-3],x".  A text that does not
 * fit ends in "...".  Returns `buf`, which has room for at least 4 bytes.
 */
char *dtn_hostlist_format(char *const names[], int n, char *buf, size_t size);

/* Expand "2(x3),1" to 2 2 2 1.  The caller frees *countsp. */
int dtn_counts_expand(const char *text, int **countsp, int *np, char *why,
                      size_t why_size);

#endif

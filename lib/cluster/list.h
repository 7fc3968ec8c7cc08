/* list.h - list values: numbers, devices, CPU sets, ranges of sizes */
#ifndef DTN_CLUSTER_LIST_H
#define DTN_CLUSTER_LIST_H

#include "cluster/file.h"

#include "base/ranks.h"

#include <stdbool.h>
#include <stdio.h>

/* Copy the next item, up to a `separator`, to `item`, without blanks around it.
 * False: there is none.  Separators inside [ ] do not count.  *cursor is the
 * text at the start and NULL after the last item.
 */
bool dtn_list_next(const char **cursor, char separator,
                   char item[DTN_ITEM_SIZE]);

/* Split the item "tp = 4" at the "=" and remove the blanks around it.  False:
 * it has no "=", or no name before it.
 */
bool dtn_list_assignment(char item[DTN_ITEM_SIZE], char **valuep);

/* The functions below return 0, ECONF with the reason in `why`, or ENOMEM. */

/* "0-3,8-14:2" is 0 1 2 3 8 10 12 14.  Numbers are at most `max`, and there are
 * at most DTN_MAX_WORLD.  `what` is the word for one in messages, "rank".
 */
int dtn_list_numbers(const char *text, const char *what, int max,
                     int **valuesp, int *np, char why[DTN_WHY_SIZE]);

/* Write numbers as "0-3,8,10". */
void dtn_list_print(const struct dtn_ranks *numbers, FILE *stream);

/* Read "mlx5_[0-1]:1, mlx5_4" for `nranks` ranks.  The result is one string for
 * each rank, with *nrailsp devices joined by "+".
 */
int dtn_hca_parse(const char *text, int nranks, char ***hcap, int *nrailsp,
                  char why[DTN_WHY_SIZE]);

/* Read "0-15 | 16-31": one CPU set for each rank, ascending and merged. */
int dtn_cpus_parse(const char *text, int nranks, char ***cpusp,
                   char why[DTN_WHY_SIZE]);

#endif

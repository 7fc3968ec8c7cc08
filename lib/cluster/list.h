/* list.h - list values: numbers, devices, CPU sets, ranges of sizes */
#ifndef DTN_CLUSTER_LIST_H
#define DTN_CLUSTER_LIST_H

#include "cluster/file.h"

#include <stdbool.h>
#include <stdio.h>

/* Copy the next of the items between `separator`s to `item`, blanks around it
 * removed; false at the end.  Separators inside [ ] do not count.  *cursor
 * starts as the text and is NULL after the last item.
 */
bool dtn_list_next(const char **cursor, char separator,
                   char item[DTN_ITEM_SIZE]);

/* Cut the item "tp = 4" in two at the "=", blanks around it removed; false when
 * there is none, or no name before it.
 */
bool dtn_list_assignment(char item[DTN_ITEM_SIZE], char **valuep);

/* The functions below return 0, ECONF with the words in `why`, or ENOMEM. */

/* "0-3,8-14:2" is 0 1 2 3 8 10 12 14.  No number above `max`, at most
 * DTN_MAX_WORLD numbers.  `what` names one, "rank".
 */
int dtn_numbers_parse(const char *text, const char *what, int max,
                      int **valuesp, int *np, char why[DTN_WHY_SIZE]);

/* Write them back, "0-3,8,10". */
void dtn_numbers_print(const int values[], int n, FILE *stream);

/* "mlx5_[0-1]:1, mlx5_4" for `nranks` ranks: one string for each rank, in which
 * *nrailsp devices are joined by "+".
 */
int dtn_hca_parse(const char *text, int nranks, char ***hcap, int *nrailsp,
                  char why[DTN_WHY_SIZE]);

/* "0-15 | 16-31": one CPU set for each rank, ascending and merged. */
int dtn_cpus_parse(const char *text, int nranks, char ***cpusp,
                   char why[DTN_WHY_SIZE]);

#endif

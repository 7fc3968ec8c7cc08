/* words.h - suggestions for unknown names */
#ifndef DTN_BASE_WORDS_H
#define DTN_BASE_WORDS_H

/* The name in `known` (ended by NULL) of what another library calls `word`:
 * avg for "mean", allreduce for "MPI_Allreduce".  NULL: none.
 */
const char *dtn_synonym(const char *word, const char *const known[]);

/* The name in `known` with the most similar spelling; NULL: none is similar. */
const char *dtn_nearest(const char *word, const char *const known[]);

#endif

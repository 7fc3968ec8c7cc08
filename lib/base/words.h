/* words.h - the right word for an unknown one */
#ifndef DTN_BASE_WORDS_H
#define DTN_BASE_WORDS_H

/* The name in `known` (NULL-terminated) for which another library uses `word`,
 * such as avg for "mean" and allreduce for "MPI_Allreduce"; NULL: none.
 */
const char *dtn_synonym(const char *word, const char *const known[]);

/* The one that is spelled nearly so, if it is near enough to be meant; or NULL.
 */
const char *dtn_nearest(const char *word, const char *const known[]);

#endif

/* aliases.h - the words of nccl-tests and OSU for what is called otherwise */
#ifndef BENCH_ALIASES_H
#define BENCH_ALIASES_H

/* Ours for a word of theirs: "f16" for "half", "avg" for "mean", "all_to_all"
 * for "alltoall_perf"; the word itself if it is no such word.
 */
const char *alias_dtype(const char *word);
const char *alias_redop(const char *word);
const char *alias_test(const char *word);

/* What to do for an option of theirs, such as "-x"; NULL: it is none. */
const char *alias_option(const char *word);

#endif

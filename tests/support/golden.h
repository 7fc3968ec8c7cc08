/* golden.h - reading the tables of tests/golden
 *
 * A table is lines of words; those that begin with '#' say what they are and
 * which PyTorch made them.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct golden {
    FILE *file;
    char origin[32];              /* "PyTorch 2.15.0"                         */
    char line[1024];              /* as it stands, for messages               */
    char words[1024];             /* the same, cut up as it is read           */
    char *next;
};

bool golden_open(struct golden *table, const char *name);
void golden_close(struct golden *table);

/* Go to the next line that is a case; false at the end. */
bool golden_next(struct golden *table);

/* The next word of the line; "" when there are no more. */
const char *golden_word(struct golden *table);

/* "13x2" into {13, 2}; returns how many, 0 for "-". */
int golden_sizes(const char *word, int64_t sizes[]);
char *golden_format(int n, const int64_t sizes[], char *text, size_t size);

/* 24 bits of FNV-1a over whole numbers, as make.py has it. */
unsigned golden_hash(const double *values, int64_t n);

#endif

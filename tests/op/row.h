/* row.h - a call of an operator as a row of a table, and a job of such rows */
#ifndef TESTS_OP_ROW_H
#define TESTS_OP_ROW_H

struct row {
    const char *op, *args, *in;        /* the call; inputs: see draw.h    */
    double bound;                      /* relative; 0: bit for bit        */
};

/* One job. */
struct suite {
    const struct row *row;             /* [n]                             */
    int n, each;                       /* rows; placements of each        */
    const char *file;                  /* of the cluster; NULL: usual     */
};

#endif

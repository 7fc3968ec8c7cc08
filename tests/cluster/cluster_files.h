/* cluster_files.h - cluster files made for a test, and what reading them says
 *
 * read_text() writes a text to a scratch file, reads it, and returns what was
 * reported, one line each, with the file's name as "F".
 */
#ifndef TESTS_CLUSTER_FILES_H
#define TESTS_CLUSTER_FILES_H

#include "dtensor.h"
#include "tests/support/tap.h"

#include <stddef.h>

struct report {
    const char *path;
    char text[16384];
};

int read_path(const char *path, struct dtensor_cluster **clusterp,
              struct report *report, struct dtensor_error *err);

/* A file without a name: no test leaves one behind. */
int read_bytes(const void *bytes, size_t n, struct dtensor_cluster **clusterp,
               struct report *report, struct dtensor_error *err);
int read_text(const char *text, struct dtensor_cluster **clusterp,
              struct report *report, struct dtensor_error *err);

#endif

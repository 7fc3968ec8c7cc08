/* reader.h - bytes to a document: sections and their keys */
#ifndef DTN_CLUSTER_READER_H
#define DTN_CLUSTER_READER_H

#include "dtensor.h"

#include <stddef.h>

struct dtn_findings;
struct dtn_kind;

#define DTN_MAX_SECTIONS 4096

struct dtn_entry {
    int line;
    char *key;
    char *value;
};

struct dtn_section {
    const struct dtn_kind *kind;
    char name[DTENSOR_NAME_MAX + 1];          /* "" for [kind]               */
    int line;
    int first, n;                             /* entries of the document     */
};

struct dtn_document {
    int nsections;
    struct dtn_section *sections;
    int nentries;
    struct dtn_entry *entries;
    char *text;                               /* keys and values, one block  */
    size_t text_used;
};

/* Phase 1 of the file at findings->path.  What is wrong with its form goes to
 * `findings`.  `doc`, zeroed by the caller, is to be freed by
 * dtn_document_fini() in any case.
 *
 * Errors: those of dtn_bytes_read()
 */
int dtn_document_read(struct dtn_document *doc, struct dtn_findings *findings,
                      struct dtensor_error *err);
void dtn_document_fini(struct dtn_document *doc);

/* The entry of that key, or NULL. */
const struct dtn_entry *dtn_section_get(const struct dtn_document *doc,
                                        const struct dtn_section *section,
                                        const char *key);

/* "[mesh "world"]" or "[cluster]", for messages. */
#define DTN_TITLE_SIZE 64
char *dtn_section_title(const struct dtn_section *section, char *buf);

#endif

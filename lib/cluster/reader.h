/* reader.h - a document: the sections of a file and their keys */
#ifndef DTN_CLUSTER_READER_H
#define DTN_CLUSTER_READER_H

#include "dtensor.h"

#include <stddef.h>

struct dtn_findings;
struct dtn_section_kind;

#define DTN_MAX_SECTIONS 4096

struct dtn_entry {
    int line;                                 /* of the file, from 1          */
    char *key;                                /* in the document's text       */
    char *value;                              /* in the document's text       */
};

struct dtn_section {
    const struct dtn_section_kind *kind;      /* its row of dtn_section_kinds */
    char name[DTENSOR_NAME_MAX + 1];          /* "" for [kind]                */
    int line;                                 /* of its title, from 1         */
    int first, n;                             /* entries of the document      */
};

struct dtn_document {
    int nsections;                            /* sections                     */
    struct dtn_section *sections;             /* in the order of the file     */
    int nentries;                             /* entries of all sections      */
    struct dtn_entry *entries;                /* in the order of the file     */
    char *text;                               /* keys and values, one block   */
    size_t text_used;                         /* bytes of `text` in use       */
};

/* Phase 1: read the file at findings->path.  Errors of form go to `findings`.
 * The caller zeroes `doc` before, and calls dtn_document_fini() in any case.
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

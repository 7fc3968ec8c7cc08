/* file.h - inside the cluster room: from the bytes of a file to its meaning
 *
 * findings.c  what is wrong, with line numbers, sorted, at most 20
 * bytes.c     the file as bytes, taken with care
 * reader.c    bytes to a document: sections and their keys, form checked
 * sections.c  which sections and keys there are: the tables
 * value.c     scalar values: numbers, sizes, times, words, names
 * list.c      list values: numbers, devices, CPU sets, ranges of sizes
 * file.c      document to cluster, section by section
 * nodes.c     [nodes "N"]: hosts and what they have
 * meshes.c    [mesh "M"]; submesh.c: with a parent
 * seed.c      [seed]; tuning.c: [tuning]
 *
 * Two phases.  Reading finds what is wrong with the form, and unknown and
 * repeated names; only a document without such findings is checked for values,
 * sums and references.  So one slip does not make ten messages.
 */
#ifndef DTN_CLUSTER_FILE_H
#define DTN_CLUSTER_FILE_H

#include "cluster/cluster.h"

#define DTN_FILE_MAX (1 << 20)     /* bytes of a cluster file                 */
#define DTN_LINE_MAX 197           /* bytes of a line, what inih leaves whole */
#define DTN_ITEM_SIZE 200         /* a buffer that holds any value            */
#define DTN_WHY_SIZE 600           /* ... the words about what is wrong       */
#define DTN_MAX_WORLD (1 << 20)    /* ranks                                   */
#define DTN_MAX_MESHES 256

/* ---------------------------------------------------------- findings.c --- */

#define DTN_MAX_FINDINGS 20

/* Collected during a phase, then reported in the order of their lines. */
struct dtn_findings {
    const char *path;
    dtensor_report_f *report;      /* NULL: nobody listens                    */
    void *arg;
    int n;                         /* kept in line[] and text[]               */
    int nerrors;                   /* all, kept or not                        */
    int line[DTN_MAX_FINDINGS];    /* 0: of the file as a whole               */
    bool is_warning[DTN_MAX_FINDINGS];
    char text[DTN_MAX_FINDINGS][DTN_WHY_SIZE];
};

/* Add an error, "WHAT; expected WHAT". */
void dtn_finding(struct dtn_findings *findings, int line, const char *fmt, ...)
    DTN_PRINTF(3, 4);
void dtn_finding_warn(struct dtn_findings *findings, int line, const char *fmt,
                      ...) DTN_PRINTF(3, 4);

/* Report and forget them; the first error goes to *err.  0 or ECONF. */
int dtn_findings_flush(struct dtn_findings *findings,
                       struct dtensor_error *err);

/* ---------------------------------------------------------- sections.c --- */

enum dtn_value_type {
    DTN_VALUE_INT,                 /* int, min..max                           */
    DTN_VALUE_HEX,                 /* int, decimal or 0x, written as 0x       */
    DTN_VALUE_U64,                 /* uint64_t, decimal or 0x                 */
    DTN_VALUE_SIZE_BYTES,          /* uint64_t, min..max                      */
    DTN_VALUE_TIME_NS,             /* int64_t, min..max                       */
    DTN_VALUE_SHARE,               /* struct dtn_share, min..max or 1% to 100% */
    DTN_VALUE_WORD,                /* int: the `number` of one of `words`     */
    DTN_VALUE_NAME,                /* char[DTENSOR_NAME_MAX + 1]              */
    DTN_VALUE_OTHER,               /* read by the section's own code          */
    DTN_VALUE_ABSENT               /* "none": not in this build               */
};

struct dtn_word {
    const char *text;              /* NULL ends a list                        */
    int number;
};

struct dtn_key {
    const char *name;
    enum dtn_value_type type;
    size_t offset;                 /* in the section's struct                 */
    int64_t min, max;
    const struct dtn_word *words;
    const char *expected;          /* DTN_VALUE_WORD: the words in a sentence */
    const char *required;          /* "version = 1": must be given, like this */
};

enum dtn_kind_id { DTN_KIND_CLUSTER, DTN_KIND_NODES, DTN_KIND_TRANSPORT,
                   DTN_KIND_MESH, DTN_KIND_SEED, DTN_KIND_TUNING,
                   DTN_KIND_REDISTRIBUTE, DTN_KIND_PLAN, DTN_NKINDS };

struct dtn_kind {
    const char *name;
    bool named;                    /* [kind "name"], any number of them       */
    bool absent;                   /* not in this build: refused              */
    const struct dtn_key *keys;    /* ended by a NULL name                    */
};

extern const struct dtn_kind dtn_kinds[DTN_NKINDS];

/* The scalars of [cluster]. */
struct dtn_cluster_section {
    int version;
    char name[DTENSOR_NAME_MAX + 1];
    int world_size;
    int repro;
};

const struct dtn_kind *dtn_kind_find(const char *name);
const struct dtn_key *dtn_key_find(const struct dtn_kind *kind,
                                   const char *name);

/* The word for `number`; NULL when there is none. */
const char *dtn_word_text(const struct dtn_word words[], int number);

extern const struct dtn_word dtn_algorithm_words[];

/* ------------------------------------------------------------- bytes.c --- */

/* Read the file at findings->path: *bytesp, *np bytes and a NUL, is the
 * caller's, for free().
 *
 * Errors: ESYS  it cannot be read;  ECONF  it is no regular file, or too
 *         large;  ENOMEM.  All but ENOMEM have been reported.
 */
int dtn_bytes_read(struct dtn_findings *findings, char **bytesp, size_t *np,
                   struct dtensor_error *err);

/* The first byte that is neither UTF-8 nor printable, or -1. */
int dtn_bytes_bad(const char *text, size_t n);

/* ------------------------------------------------------------ reader.c --- */

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

/* ------------------------------------------------------------- value.c --- */

/* Read a scalar into the struct at `base`.  False: *why says what is wrong,
 * `"four" is not a whole number; expected 1 to 1024`.
 */
bool dtn_value_parse(const struct dtn_key *key, const char *text, void *base,
                     char why[DTN_WHY_SIZE]);

/* Write the scalar back in its shortest form, "512K", "10s"; "default" for
 * a number that was not given.
 */
void dtn_value_print(const struct dtn_key *key, const void *base, FILE *stream);

/* An exact size or time: 524288 is "512K", 60000000000 is "1min". */
char *dtn_exact_size(uint64_t bytes, char *buf, size_t size);
char *dtn_exact_time(int64_t ns, char *buf, size_t size);

/* A letter, then at most 31 letters, digits, "-" or "_". */
bool dtn_name_ok(const char *name);
#define DTN_NAME_GRAMMAR \
    "a letter, then at most 31 letters, digits, \"-\" or \"_\""

/* -------------------------------------------------------------- list.c --- */

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

/* --------------------------------------------------------------- check --- */

/* Phase 2 under way. */
struct dtn_check {
    const struct dtn_document *doc;
    struct dtn_findings *findings;
    struct dtensor_error *err;
    struct dtensor_cluster *cluster;          /* being filled in             */
    bool world_known;                         /* no [nodes] is wrong         */
};

/* Read the scalars of a section into the struct at `base`, and miss what is
 * required; true when nothing was wrong.
 */
bool dtn_check_scalars(struct dtn_check *check,
                       const struct dtn_section *section, void *base);

/* Check all sections of a kind.  A wrong file is a finding, not a failure:
 * they fail with ENOMEM only.
 */
int dtn_check_nodes(struct dtn_check *check);
int dtn_check_meshes(struct dtn_check *check);
int dtn_check_seed(struct dtn_check *check);
int dtn_check_tuning(struct dtn_check *check);

/* The mesh that `parent` and "select" make; without dims after a finding. */
int dtn_check_submesh(struct dtn_check *check,
                      const struct dtn_section *section,
                      const struct dtn_entry *parent,
                      struct dtn_mesh_def *mesh);

/* The next section of that kind after `section` (NULL: the first), or NULL. */
const struct dtn_section *dtn_section_next(const struct dtn_document *doc,
                                           enum dtn_kind_id kind,
                                           const struct dtn_section *section);

/* The section of that kind and name, or NULL. */
const struct dtn_section *dtn_section_find(const struct dtn_document *doc,
                                           enum dtn_kind_id kind,
                                           const char *name);

/* Make room for one more element of `size` bytes in *arrayp of n, zeroed.
 * Grows by doubling: capacity is the power of two that holds n.
 */
int dtn_array_grow(void *arrayp, int n, size_t size, struct dtensor_error *err);

/* Index of the mesh of that name, or -1. */
int dtn_mesh_lookup(const struct dtensor_cluster *cluster, const char *name);

/* Index of the dimension of that name, or -1. */
int dtn_mesh_dim(const struct dtn_mesh_def *mesh, const char *name);

/* As dtn_mesh_lookup for the value of `entry`; -1 after a finding. */
int dtn_check_mesh_name(struct dtn_check *check, const struct dtn_entry *entry);

/* As dtn_mesh_dim for `name`, found in `entry`; -1 after a finding. */
int dtn_check_dim_name(struct dtn_check *check, const struct dtn_entry *entry,
                       const struct dtn_mesh_def *mesh, const char *name);

#endif

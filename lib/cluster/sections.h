/* sections.h - tables of the sections and keys */
#ifndef DTN_CLUSTER_SECTIONS_H
#define DTN_CLUSTER_SECTIONS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtn_value_type {
    DTN_VALUE_INT,                 /* int, min..max                           */
    DTN_VALUE_HEX,                 /* int, decimal or 0x, written as 0x       */
    DTN_VALUE_U64,                 /* uint64_t, decimal or 0x                 */
    DTN_VALUE_SIZE_BYTES,          /* uint64_t, min..max                      */
    DTN_VALUE_TIME_NS,             /* int64_t, min..max                       */
    DTN_VALUE_SHARE,              /* struct dtn_share, min..max or 1% to 100% */
    DTN_VALUE_WORD,                /* int: the `number` of one of `words`     */
    DTN_VALUE_NAME,                /* char[DTENSOR_NAME_MAX + 1]              */
    DTN_VALUE_OTHER                /* read by the section's own code          */
};

struct dtn_word {
    const char *text;              /* NULL ends a list                        */
    int number;                    /* what the word stands for                */
};

struct dtn_key {
    const char *name;              /* of the key, in the file                 */
    enum dtn_value_type type;      /* how its value is read                   */
    size_t offset;                 /* in the section's struct                 */
    int64_t min, max;              /* bounds of a value that is a number      */
    const struct dtn_word *words;  /* of DTN_VALUE_WORD, else NULL            */
    const char *required;          /* "version = 1": must be given, like this */
};

enum dtn_section_kind_id { DTN_KIND_CLUSTER, DTN_KIND_NODES, DTN_KIND_TRANSPORT,
                   DTN_KIND_MESH, DTN_KIND_SEED, DTN_KIND_TUNING,
                   DTN_KIND_REDISTRIBUTE, DTN_KIND_DEVICE, DTN_KIND_PLAN,
                   DTN_NKINDS };

struct dtn_section_kind {
    const char *name;              /* in the title, "cluster"                 */
    bool named;                    /* [kind "name"], any number of them       */
    bool open;                     /* has other keys, which its code reads    */
    const struct dtn_key *keys;    /* ended by a NULL name                    */
};

extern const struct dtn_section_kind dtn_section_kinds[DTN_NKINDS];

/* The scalars of [cluster]. */
struct dtn_cluster_section {
    int version;                   /* of the format; 1                        */
    char name[DTENSOR_NAME_MAX + 1]; /* of the cluster                        */
    int world_size;                /* ranks                                   */
    int auth;                      /* enum dtn_auth                           */
    int repro;                     /* 1: reproducible sums                    */
};

const struct dtn_section_kind *dtn_section_kind_find(const char *name);
const struct dtn_key *dtn_key_find(const struct dtn_section_kind *kind,
                                   const char *name);

/* The word that stands for `number`; NULL: none. */
const char *dtn_word_text(const struct dtn_word words[], int number);

/* The names of enum dtn_algorithm, without AUTO. */
extern const struct dtn_word dtn_algorithm_words[];

#endif

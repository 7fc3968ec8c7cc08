/* lru.h - a cache of 256 entries that drops the least recently used */
#ifndef DTN_BASE_LRU_H
#define DTN_BASE_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTN_LRU_LIMIT 256
#define DTN_LRU_BUCKETS 512

/* What is cached begins with this; zeroed before it is added. */
struct dtn_lru_entry {
    struct dtn_lru_entry *next;           /* in its bucket, or NULL            */
    struct dtn_lru_entry *newer, *older;  /* by last use, or NULL              */
    uint64_t hash;                        /* of its key                        */
    size_t bytes;                         /* it counts for, set before adding  */
    int holders;                          /* > 0: it is not dropped            */
};

/* What the entries of a cache are.  A key is what the user looks up by. */
struct dtn_lru_kind {
    uint64_t (*hash)(const void *key);
    bool (*is)(const struct dtn_lru_entry *entry, const void *key);
    void (*destroy)(struct dtn_lru_entry *entry);
};

/* Zeroed: an empty cache. */
struct dtn_lru {
    int n;                                /* entries                           */
    size_t bytes;                         /* of all entries                    */
    uint64_t dropped;                     /* entries, ever                     */
    struct dtn_lru_entry *newest, *oldest;     /* by last use; NULL: none      */
    struct dtn_lru_entry *bucket[DTN_LRU_BUCKETS];
};

/* Find an entry that is not the newest, which it becomes; or NULL. */
struct dtn_lru_entry *dtn_lru_search(struct dtn_lru *lru,
                                     const struct dtn_lru_kind *kind,
                                     const void *key);

/* Find an entry, which becomes the newest, or NULL.  Most calls repeat, so that
 * the newest is compared before anything is hashed.
 */
static inline struct dtn_lru_entry *dtn_lru_find(struct dtn_lru *lru,
                                                 const struct dtn_lru_kind *kind,
                                                 const void *key)
{
    if (lru->newest && kind->is(lru->newest, key))
        return lru->newest;
    return dtn_lru_search(lru, kind, key);
}

/* Add an entry, as the newest.  Before, entries without holders are dropped, the
 * oldest first, until there is one place and all have at most max_bytes.
 */
void dtn_lru_add(struct dtn_lru *lru, const struct dtn_lru_kind *kind,
                 const void *key, struct dtn_lru_entry *entry,
                 size_t max_bytes);

/* Destroy all entries. */
void dtn_lru_clear(struct dtn_lru *lru, const struct dtn_lru_kind *kind);

#endif

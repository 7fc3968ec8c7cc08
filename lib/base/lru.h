/* lru.h - a cache of 256 entries that drops the least recently used */
#ifndef DTN_BASE_LRU_H
#define DTN_BASE_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTN_LRU_LIMIT 256
#define DTN_LRU_BUCKETS 512

/* A cached struct begins with this.  Zero it before you add it. */
struct dtn_lru_entry {
    struct dtn_lru_entry *next;           /* in the same bucket, or NULL      */
    struct dtn_lru_entry *newer, *older;  /* neighbours by last use, or NULL  */
    uint64_t hash;                        /* of its key                       */
    size_t bytes;                         /* its memory; set before adding    */
    int holders;                          /* users; above 0 it is not evicted */
};

/* What a cache has to know of its entries and their keys. */
struct dtn_lru_kind {
    uint64_t (*hash)(const void *key);    /* hash of a key                    */
    /* Does the entry have this key? */
    bool (*is)(const struct dtn_lru_entry *entry, const void *key);
    void (*destroy)(struct dtn_lru_entry *entry); /* free an evicted entry    */
};

/* Zeroed: an empty cache. */
struct dtn_lru {
    int n;                                /* entries                          */
    size_t bytes;                         /* of all entries together          */
    uint64_t dropped;                     /* entries evicted since the start  */
    struct dtn_lru_entry *newest, *oldest;     /* by last use; NULL: none     */
    /* The entries by hash; NULL: none. */
    struct dtn_lru_entry *bucket[DTN_LRU_BUCKETS];
};

/* Make an entry that is not the newest the newest. */
void dtn_lru_renew(struct dtn_lru *lru, struct dtn_lru_entry *entry);

/* An entry is used again without being looked up. */
static inline void dtn_lru_touch(struct dtn_lru *lru,
                                 struct dtn_lru_entry *entry)
{
    if (lru->newest != entry)
        dtn_lru_renew(lru, entry);
}

/* Find an entry that is not the newest and make it the newest; or NULL. */
struct dtn_lru_entry *dtn_lru_search(struct dtn_lru *lru,
                                     const struct dtn_lru_kind *kind,
                                     const void *key);

/* Find an entry and make it the newest; or NULL.  Most calls repeat the last
 * one, so the newest entry is compared before anything is hashed.
 */
static inline struct dtn_lru_entry *dtn_lru_find(
    struct dtn_lru *lru, const struct dtn_lru_kind *kind, const void *key)
{
    if (lru->newest && kind->is(lru->newest, key))
        return lru->newest;
    return dtn_lru_search(lru, kind, key);
}

/* Add an entry as the newest.  Before that, entries without holders are
 * evicted, the least recently used first, until one more fits and all together
 * have at most max_bytes.
 */
void dtn_lru_add(struct dtn_lru *lru, const struct dtn_lru_kind *kind,
                 const void *key, struct dtn_lru_entry *entry,
                 size_t max_bytes);

/* Destroy all entries. */
void dtn_lru_clear(struct dtn_lru *lru, const struct dtn_lru_kind *kind);

#endif

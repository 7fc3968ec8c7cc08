/* sums.h - checksums at the end of a file */
#ifndef DTN_FILE_SUMS_H
#define DTN_FILE_SUMS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_slabs;

enum { DTN_SUM_PIECE_BYTES = 4 << 20,   /* at most, that one checksum covers  */
       DTN_SUMS_END_BYTES = 64 };       /* of the record that ends the file   */

/* The checksum of a piece of the elements, as it is in the file: little-endian.
 */
struct dtn_sum {
    uint64_t at;                  /* first byte, from the first element on    */
    uint64_t bytes;               /* of the piece                             */
    uint64_t hash;                /* XXH3_64bits() of it                      */
};

/* Where things are in a file. */
struct dtn_file_map {
    enum dtensor_dtype dtype;     /* of the elements                          */
    uint64_t header_bytes;        /* before the first element                 */
    uint64_t data_bytes;          /* of the elements                          */
    uint64_t header_hash;         /* XXH3_64bits() of the header              */
    uint64_t sums;                /* checksums; 0 also for a file without     */
    uint64_t sums_hash;           /* XXH3_64bits() of them                    */
};

uint64_t dtn_sums_count(const struct dtn_slabs *slabs); /* pieces of a rank   */
uint64_t dtn_sums_at(const struct dtn_file_map *map);   /* first, in the file */
uint64_t dtn_sums_end_at(const struct dtn_file_map *map);

struct dtn_sum dtn_sum_make(uint64_t at, const void *piece, uint64_t bytes);
bool dtn_sum_fits(const struct dtn_sum *sum, const void *piece);

/* The three numbers of a checksum on this machine. */
struct dtn_sum dtn_sum_decode(const struct dtn_sum *sum);

/* The record that ends a file of this map.  parse(): false: it is none. */
void dtn_sums_end_format(const struct dtn_file_map *map,
                         unsigned char buf[DTN_SUMS_END_BYTES]);
bool dtn_sums_end_parse(const unsigned char buf[DTN_SUMS_END_BYTES],
                        struct dtn_file_map *map);

uint64_t dtn_file_hash(const void *bytes, size_t n);

#endif

/* transformer.h - attention and a transformer layer, of modules */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include <dtensor.h>

enum { HEAD = 4 };                /* numbers of a head                        */

/* Causal attention of width / HEAD heads, with the children q, k, v and out;
 * the heads may be sharded.  Below `parent`, or with NULL the top of a tree.
 */
struct dtensor_module *attention(struct dtensor_ctx *ctx,
                                 struct dtensor_module *parent,
                                 const char *name, int64_t width);

/* x + attn(norm1(x)), and the same with norm2 and mlp, which is up, act, down.
 */
struct dtensor_module *layer(struct dtensor_ctx *ctx,
                             struct dtensor_module *parent, const char *name,
                             int64_t width);

/* How a layer is sharded: heads and the MLP; by_sequence shards the positions
 * too, which are gathered before attention and MLP and scattered after each.
 */
extern const struct dtensor_style by_heads[4], by_sequence[7];

#endif

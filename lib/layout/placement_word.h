/* placement_word.h - the words of a text of placements */
#ifndef DTN_LAYOUT_PLACEMENT_WORD_H
#define DTN_LAYOUT_PLACEMENT_WORD_H

#include <stdbool.h>

struct dtensor_mesh;

/* One word of the text: where it begins and ends, to read it and to quote it.
 */
struct dtn_placement_word {
    const struct dtensor_mesh *mesh;   /* of the tensor                       */
    int ndim;                          /* of the tensor                       */
    const char *text;                  /* all words, for messages             */
    const char *stop;                  /* where they end                      */
    const char *begin, *end;           /* this one, without spaces around     */
    int number;                        /* from 1                              */
    int place;                         /* in brackets; -1: none               */
};

/* "word 2 of "R,s0" is "s0"", the beginning of most messages; long texts are
 * cut.
 */
#define DTN_WORD "placements: word %d of \"%.80s\" is \"%.*s\""
#define DTN_WORD_ARGS(w) (w)->number, (w)->text, \
                         dtn_placement_word_length(w), (w)->begin

static inline int dtn_placement_word_length(const struct dtn_placement_word *w)
{
    return w->end - w->begin < 40 ? (int)(w->end - w->begin) : 40;
}

/* Find the next word after *posp.  It ends at a comma outside parentheses, or
 * where another word begins.  False at the end of the text.
 */
bool dtn_placement_next(struct dtn_placement_word *w, const char **posp);

/* Is the word `name`, or "name(...)" if `inner` is not NULL?  *inner is then
 * the text after "(", which ends at w->end - 1.
 */
bool dtn_placement_named(const struct dtn_placement_word *w, const char *name,
                         const char **inner);

/* " (did you mean S(0)?)"; "" if there is no suggestion. */
const char *dtn_placement_guess(const struct dtn_placement_word *w,
                                char guess[64]);

extern const char *const dtn_placement_reductions[];   /* ends with NULL      */

#endif

/* style.h - tensor-parallel styles: the table, and their text */
#ifndef DTN_CLUSTER_STYLE_H
#define DTN_CLUSTER_STYLE_H

#include "cluster/file.h"

#include <stdbool.h>

enum { DTN_LAYOUTS = 8, DTN_LAYOUT_SIZE = 80 };

/* The tensors that come to a module, and those that leave it. */
enum dtn_style_side { DTN_STYLE_INPUT, DTN_STYLE_OUTPUT, DTN_STYLE_SIDES };

/* A row of the table: what a style does to modules of a type. */
struct dtn_style_row {
    const char *name;             /* of the style                             */
    const char *type;             /* of the modules; NULL: any                */
    struct {
        const char *name;         /* of a parameter; NULL ends                */
        const char *placement;    /* that it gets                             */
    } params[3];                  /* others become R                          */
    const char *layout[DTN_STYLE_SIDES]; /* that inputs and outputs get       */
                                  /* unless the text names others; NULL: they */
                                  /* stay as they come                        */
};

/* "rowwise output=S(1)", as read. */
struct dtn_style_words {
    const struct dtn_style_row *row;  /* the first one of that name           */
    char text[DTN_LAYOUT_SIZE];   /* all of it, with one blank between words  */
    struct {
        int n;                    /* layouts that the text names              */
        char layout[DTN_LAYOUTS][DTN_LAYOUT_SIZE]; /* of each tensor          */
    } side[DTN_STYLE_SIDES];      /* of inputs, of outputs                    */
};

/* Read the text of a style.  The words of its layouts are not looked into.
 * False: the reason is in `why`.
 */
bool dtn_style_words_read(const char *text, struct dtn_style_words *words,
                          char why[DTN_WHY_SIZE]);

/* May the outputs of this style be terms? */
bool dtn_style_takes_terms(const struct dtn_style_words *words);

/* Is it a style that leaves a tensor alone where the layout is "-"? */
bool dtn_style_takes_dash(const struct dtn_style_words *words);

/* The row of the same style for modules of that type; NULL: there is none. */
const struct dtn_style_row *dtn_style_row_for(const struct dtn_style_row *row,
                                              const char *type);

/* The row of the same name that follows; NULL: it was the last one. */
const struct dtn_style_row *dtn_style_row_next(const struct dtn_style_row *row);

#endif

/* note.c - frees what a note holds */
#include "tape/tape.h"
#include "dtensor.h"

#include <stdlib.h>

void dtn_note_release(struct dtn_note *note)
{
    for (int i = 0; i < note->nin + note->nout; i++) {
        dtensor_destroy(note->operand[i].kept);
        note->operand[i].kept = NULL;
    }
}

void dtn_note_free(struct dtn_note *note)
{
    free(note->own);
    free(note);
}

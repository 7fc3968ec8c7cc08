/* graph.h - what a device does in a persistent call, recorded */
#ifndef DTN_EXEC_GRAPH_H
#define DTN_EXEC_GRAPH_H

#include "sched/sched.h"

#include <stdbool.h>

struct dtn_exec;
struct dtn_exec_peer;
struct dtn_exec_run;

/* There is no graph: go on after run->progress.step without. */
enum { DTN_UNRECORDED = 1 };

/* All READY came: launch what was recorded, or record the rest of the run.
 * Also DTN_UNRECORDED.
 */
int dtn_graph_meet(struct dtn_exec_run *run);

/* Note a word that the device writes (posts) or waits for, while the run is
 * recorded.  The last one launches the graph.   Also DTN_UNRECORDED.
 */
int dtn_graph_note(struct dtn_exec_run *run, const struct dtn_exec_peer *peer,
                   enum dtn_tag tag, bool posts);

bool dtn_graph_wanted(const struct dtn_exec *exec);
void dtn_graph_end(struct dtn_exec_run *run);
void dtn_graph_destroy(struct dtn_exec *exec);

#endif

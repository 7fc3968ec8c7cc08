/* completions.h - the completion queue of a rail */
#ifndef DTN_TRANSPORT_VERBS_COMPLETIONS_H
#define DTN_TRANSPORT_VERBS_COMPLETIONS_H

struct dtensor_error;
struct dtn_verbs_rail;

/* For peers with so many queue pairs each, of a world of nranks.
 * Errors: ENOMEM, ESYS
 */
int dtn_verbs_completions_open(struct dtn_verbs_rail *rail, int queues,
                               int nranks, struct dtensor_error *err);

/* One more queue pair will complete its requests there: make room for them. */
void dtn_verbs_completions_add(struct dtn_verbs_rail *rail);

#endif

/* words.h - completion statuses, timeouts and paths as words */
#ifndef DTN_TRANSPORT_VERBS_WORDS_H
#define DTN_TRANSPORT_VERBS_WORDS_H

#include <stddef.h>

struct dtn_transport_conf;
struct dtn_verbs;

/* Timeout of queue pairs: t of 4.096 us * 2^t. */
int dtn_verbs_timeout(const struct dtn_transport_conf *conf);

/* How long a silent peer is waited for: "1.88 s = 7 x 4.096 us x 2^16". */
char *dtn_verbs_give_up_text(const struct dtn_transport_conf *conf, char *buf,
                             size_t size);

/* What is known of a peer's failure: its bad completion, what that means and
 * what to look at, or else how it was reached; and what our own device said.
 */
char *dtn_verbs_words(const struct dtn_verbs *verbs, int peer, char *buf,
                      size_t size);

#endif

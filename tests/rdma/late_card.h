/* late_card.h - a card whose writes into a GPU are late */
#ifndef TESTS_RDMA_LATE_CARD_H
#define TESTS_RDMA_LATE_CARD_H

/* How many times bytes that were late came, because of a READ. */
extern unsigned long late_card_flushed;

/* READs of the n-th card that registers memory, from 0, bring nothing: as if a
 * library did not post them.  -1: of none.
 */
void late_card_forgets(int card);

#endif

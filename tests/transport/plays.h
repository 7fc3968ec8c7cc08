/* plays.h - scenarios of test_transport, each played by all ranks */
#ifndef TESTS_TRANSPORT_PLAYS_H
#define TESTS_TRANSPORT_PLAYS_H

struct wire;

/* plays_eager.c: data that go with a signal */
void play_eager(struct wire *w);
void play_eager_full(struct wire *w);
void play_eager_stray(struct wire *w);

/* plays_kept.c: data that the transport keeps */
void play_kept(struct wire *w);
void play_kept_full(struct wire *w);

/* plays_memory.c */
void play_map(struct wire *w);
void play_outside(struct wire *w);
void play_fetch(struct wire *w);
void play_stray(struct wire *w);

/* plays_puts.c */
void play_puts(struct wire *w);
void play_strided(struct wire *w);

#endif

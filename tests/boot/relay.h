/* relay.h - who hears all that rank 1 and rank 0 say to each other */
#ifndef TESTS_BOOT_RELAY_H
#define TESTS_BOOT_RELAY_H

#include "tests/boot/boot_job.h"

#include <stddef.h>

extern long relay_flip;           /* byte of the way up that it changes; -1   */
extern int relay_twice;           /* so many reads of the way up later it     */
                                  /* says one twice; -1: it does not          */
extern unsigned char relay_heard[1 << 16];  /* [relay_n] what rank 1 said     */
extern size_t relay_n;
extern unsigned char relay_version; /* that both seem to speak; 0: theirs     */
extern int relay_refused;         /* enum dtn_refusal of relay_repeat(), -1   */

void relay_open(void);
void relay_close(void);

/* A job of two hosts, of which rank 1 connects to the relay. */
struct boot_job relay_job(void);

/* For job_run(): relay; relay each attempt of rank 1; or, to another job, say
 * what rank 1 said before.
 */
void relay_run(void);
void relay_all(void);
void relay_mirror(void);
void relay_repeat(void);

#endif

/* stranger.h - who knows all of a job but its key */
#ifndef TESTS_BOOT_STRANGER_H
#define TESTS_BOOT_STRANGER_H

#include <stddef.h>

/* The KNOCK of rank 2 on host n1 of a job of job_even(); returns its bytes. */
size_t stranger_knock(unsigned char frame[256]);

#endif

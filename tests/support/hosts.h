/* hosts.h - ranks on several hosts, which are addresses of the loopback
 *
 * The cluster file gives host h<i> the address 127.0.0.<i + 2>, and each rank
 * says by DTN_HOST which one it is on.
 */
#ifndef TESTS_HOSTS_H
#define TESTS_HOSTS_H

enum { HOSTS_MAX = 4 };

struct hosts {
    int n;
    int ranks[HOSTS_MAX];
};

/* Write the file, with more lines in [cluster], and in [transport] and after.
 */
void hosts_write(const struct hosts *hosts, const char *path,
                 const char *cluster, const char *transport);

/* The port of the job, which two tests at once hardly share. */
int hosts_port(void);

/* Be this rank on its host; how many there are on it. */
int hosts_be(const struct hosts *hosts, int rank);

#endif

/* open.h - what is behind a descriptor of the simulated kernel */
#ifndef TESTS_SIM_OPEN_H
#define TESTS_SIM_OPEN_H

#include "tests/sim/kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum sim_kind { SIM_SOCKET, SIM_LISTENER, SIM_EPOLL, SIM_PIDFD };
enum { SIM_PORTS = 1024, SIM_CHUNK_FDS = 256 };

struct sim_chunk {
    struct sim_chunk *next;
    int64_t at;                   /* when it comes                            */
    size_t begin, end;            /* of bytes[]                               */
    int nfds;
    int fds[SIM_CHUNK_FDS];       /* real descriptors; only of AF_UNIX        */
    unsigned char bytes[];
};

struct sim_watch {
    struct sim_watch *next;
    int fd;
    struct epoll_event event;
};

struct sim_open {
    enum sim_kind kind;
    int refs;                     /* descriptors                              */
    struct sim_process *process;  /* that has it                              */
    struct sim_open *next;        /* of a backlog, or of listeners            */
    int family;
    struct sockaddr_storage local, remote;
    socklen_t local_size, remote_size;
    struct sim_open *backlog;     /* of a listener: connections to accept     */
    struct sim_watch *watches;    /* of an epoll                              */
    struct sim_process *of;       /* of a pidfd; of a socket: the other side  */
    struct sim_open *peer;        /* NULL: closed                             */
    int64_t up_at;                /* when it is connected, or fails           */
    int error;                    /* then                                     */
    struct sim_chunk *head, **tail; /* what comes                             */
    size_t queued;                /* bytes of it                              */
    int64_t last_at;              /* when the last of it comes                */
    int64_t ends_at;              /* when its end comes                       */
    int64_t off_at;               /* the other host was off; SIM_NEVER        */
    size_t capacity;              /* of what may be queued                    */
    bool wants_room;              /* its sender waits for room                */
};

struct sim_file {                 /* a descriptor                             */
    struct sim_file *next, **link;            /* of the process               */
    struct sim_open *file;
    int fd;
};

extern struct sim_open *sim_listeners[SIM_PORTS]; /* lists, by port           */

struct sim_open *sim_open_of(int fd);         /* NULL: EBADF                  */
struct sim_open *sim_open_make(enum sim_kind kind);
int sim_open_as(struct sim_open *file);       /* a new descriptor             */
void sim_chunk_free(struct sim_chunk *chunk);

/* When something comes to that socket that is sent to it now. */
int64_t sim_travel(const struct sim_open *to);

#endif

#!/usr/bin/env python3
"""uml-pair.py KERNEL DIR SECONDS - two User Mode Linux guests on one cable

The cable is a pair of sockets that keep packets apart: what one guest sends
the other receives, 9000 bytes at a time, at the speed of the host.  Guest N, 1
or 2, runs DIR/init as its first process, with GUEST_ID=N and OUT=DIR, on the
host's files, which it cannot write to except in DIR.  Its console is
DIR/console.N.  The file DIR/kill.N, made by anybody, kills guest N at once.

Each guest lives in a process namespace, because of what a guest's program is
on the host: a process traced by the guest's kernel, which would run on, and on
the host, if only the kernel were killed.  All end when this program does.
Exits with 0 when both guests have ended, 1 when one had to be killed after
SECONDS.
"""
import os
import socket
import subprocess
import sys
import time


def start(kernel, folder, number, cable):
    """Start guest `number` with its end of the cable."""
    jail = ["setpriv", "--pdeathsig", "KILL",
            "unshare", "--pid", "--fork", "--kill-child",
            "sh", "-c", '"$@"; exit $?', "sh"]
    if os.geteuid() != 0:
        jail = ["unshare", "--user", "--map-root-user"] + jail
    fd = cable.fileno()
    guest = [kernel, "mem=768M", "root=/dev/root", "rootfstype=hostfs",
             "rootflags=/", "ro", "quiet", "con=null",
             "con0=null,fd:1", f"uml_dir={folder}", f"umid=uml.{number}",
             f"init={folder}/init", f"GUEST_ID={number}", f"OUT={folder}",
             f"vec0:transport=fd,fd={fd},mtu=9000,mac=02:00:00:00:00:0{number}"]
    with open(f"{folder}/console.{number}", "wb") as console:
        return subprocess.Popen(jail + guest, pass_fds=[fd],
                                stdin=subprocess.DEVNULL, stdout=console,
                                stderr=console, start_new_session=True)


def swallow(end):
    """Take what still comes for a guest that has ended.

    Its end of the cable stays open, too: a guest that finds the other end
    closed or full does nothing else any more than try again.
    """
    try:
        while True:
            end.recv(16384, socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass


def main():
    kernel, folder, seconds = sys.argv[1:4]
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    guests = {n: start(kernel, folder, n, ends[n - 1]) for n in (1, 2)}
    give_up = time.monotonic() + float(seconds)
    while any(guest.poll() is None for guest in guests.values()):
        late = time.monotonic() > give_up
        for number, guest in guests.items():
            if guest.poll() is not None:
                swallow(ends[number - 1])
            elif late or os.path.exists(f"{folder}/kill.{number}"):
                guest.kill()
        if late:
            return 1
        time.sleep(0.01)
    return 0


if __name__ == "__main__":
    sys.exit(main())

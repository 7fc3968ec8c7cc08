#!/bin/bash
# page.sh - print dtensor-faults(7), made of faults.txt
cat <<'HEAD'
.\" dtensor-faults(7) - part of libdtensor; made by tests/faults/page.sh
.TH DTENSOR-FAULTS 7 2026-11-27 libdtensor "libdtensor"
.SH NAME
dtensor\-faults \- failures, timeouts and dead ranks: what happens
.SH DESCRIPTION
Every wait has a deadline, and every failure is an error of one line.
The first failure ends the job: all ranks get EPEER, ETIME, EMISMATCH or another
error, and name the same rank.
.PP
Below is each class of failure, when it strikes, what the library does, and the
test of the source that shows it.
Where no test shows it, the reason is given.
.SH FAULTS
HEAD
LC_ALL=C awk -F ' [|] ' '
    function text(s) { gsub(/-/, "\\-", s); return s }
    /^[0-9]/ {
        print ".TP"
        print ".B " $1 ". " text($3)
        print "When: " text($2) "."
        if ($5 == "-") {
            print ".br"
            print "Not tested: " text($6) "."
        } else {
            print ".br"
            print text($4) "."
            print ".br"
            print "Shown by " text($5) "."
        }
    }' "$(dirname "$0")/faults.txt"
cat <<'FOOT'
.SH NOTES
make fault\-matrix, in the source, runs all of these tests that can run on one
machine and prints this list with the results; make check\-rdma runs those in
tests/rdma.
.PP
A host without power and one whose network is cut are both silent; the message
names both causes.
.SH SEE ALSO
.BR dtensor (7),
.BR dtensor\-cluster (5),
.BR dtensor\-rdma (7)
FOOT

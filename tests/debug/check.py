"""What ranks have written: does it load, and is it whole?  FOLDER has trace.R,
open.R and json.R of each rank; what is wrong is printed, and makes FOLDER/bad."""
import json
import os
import sys

folder = sys.argv[1]


def bad(text):
    print(text)
    open(os.path.join(folder, "bad"), "w").close()


def check_trace(name, rank):
    trace = json.load(open(os.path.join(folder, name)))
    events = trace["traceEvents"]
    names = [e for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    open_, last, seen, flights, meanwhile = [], 0.0, set(), {}, 0.0
    if len(names) != 1 or not names[0]["args"]["name"].startswith("rank %d" % rank):
        bad(name + ": no name of its process")
    for e in events:
        if e["pid"] != rank or not isinstance(e["tid"], int):
            bad(name + ": pid or tid of %r" % e)
        if e["ph"] == "M":
            continue
        if e["ph"] in "be":
            flights.setdefault((e["id"], e["cat"], e["name"]), []).append((e["ph"], e["ts"]))
            continue
        if e["ph"] not in "BE" or e["ts"] < last:
            bad(name + ": kind or time of %r" % e)
        last = e["ts"]
        if e["ph"] == "B":
            if not e["name"] or not e["cat"]:
                bad(name + ": no name or category: %r" % e)
            if e["cat"] == "redistribute" and not e["args"]["reason"]:
                bad(name + ": no reason: %r" % e)
            seen.add(e["cat"])
            meanwhile = e["ts"] if e["name"] == "meanwhile" else meanwhile
            open_.append(e)
        elif not open_:
            bad(name + ": an end without a begin")
        else:
            open_.pop()
    for key, flight in flights.items():
        if [ph for ph, _ in flight] != ["b", "e"] or not flight[0][1] <= flight[1][1]:
            bad(name + ": %r is %r" % (key, flight))
    if not flights or rank == 0 and not any(f[0][1] < meanwhile < f[1][1] for f in flights.values()):
        bad(name + ": nothing is under way while the CPU is elsewhere")
    if open_:
        bad(name + ": %d begins without an end" % len(open_))
    want = {"scope", "module", "operator", "redistribute", "collective", "backward"}
    if not want <= seen:
        bad(name + ": lacks " + ", ".join(want - seen))


def check_scope(scope, inside):
    counts = {}
    for direction in "forward", "backward":
        side = scope[direction]
        for c in side["collectives"]:
            counts[direction, c["kind"]] = c["calls"]
            if c["predicted_bytes"] < 0 or c["time_ns"] < 0:
                bad("json: a negative count: %r" % c)
        for o in side["operations"]:
            if not o["name"] or o["direction"] != direction:
                bad("json: an operation: %r" % o)
    below = {}
    for child in scope["scopes"]:
        for key, calls in check_scope(child, True).items():
            below[key] = below.get(key, 0) + calls
    for key, calls in below.items():
        if counts.get(key, 0) < calls:
            bad("json: %s: %r: %d, but %d below" % (scope["name"], key, counts.get(key, 0), calls))
    return counts


rank = 0
while os.path.exists(os.path.join(folder, "trace.%d" % rank)):
    check_trace("trace.%d" % rank, rank)
    check_trace("open.%d" % rank, rank)
    document = json.load(open(os.path.join(folder, "json.%d" % rank)))
    if document["rank"] != rank or document["all"]["scopes"][0]["name"] != 'a "step"\\\n\ufffd':
        bad("json.%d: rank or scope" % rank)
    counts = check_scope(document["all"], False)
    if counts != {("forward", "allreduce"): 1, ("forward", "allgather"): 1, ("forward", "reduce_scatter"): 1,
                  ("backward", "allgather"): 1, ("backward", "reduce_scatter"): 1}:
        bad("json.%d: %r" % (rank, counts))
    rank += 1
if rank != 4:
    bad("%d ranks" % rank)

/* test_malformed_values.c - what a user reads after a wrong value
 *
 * Each row puts a wrong value, or one that only looks wrong, into a good
 * cluster file and says, word for word, everything that is then reported:
 * errors, only warnings, or nothing.
 *
 * Without this test, a wrong value could be accepted in silence, or be reported
 * on the wrong line.
 */
#include "base/compiler.h"
#include "tests/cluster/malformed.h"
#include "tests/support/tap.h"

#include <stdlib.h>

#define NOT_SIZE "is not a size; expected a number of bytes with an optional " \
                 "K, M, G or T (powers of 1024)"
#define NOT_TIME "is not a time; expected a whole number with its unit us, " \
                 "ms, s or min, such as 30s"
#define A_LIST "expected a list such as node[001-064]"

#define PATTERN "expected names or wildcards (* ? [0-3]) of 1 to 33 bytes " \
                "joined by \".\", or \".\" for the model itself"
#define LAYOUT "expected R, S(dim), SS(dim,factor), C(dim,block), HT(dim), " \
               "P or P(reduction), with dim from -8 to 7"

static const struct malformed rows[] = {
    /* [cluster] */
    { "no [cluster]", "-1\n-2\n-3",
      "F: error: no [cluster] section; expected [cluster] with "
      "\"version = 1\"" },
    { "a byte order mark", "=1 \xEF\xBB\xBF[cluster]", "" },
    { "no version", "-2",
      "F:1: error: [cluster] has no \"version\"; expected version = 1" },
    { "a newer version", "=2 version = 2",
      "F:2: error: version: this is format 2; expected 1, the only one this "
      "release reads" },
    { "a wrong world_size", "=3 world_size = 16",
      "F:3: error: world_size: 16, but the [nodes] sections add up to 8 "
      "ranks" },
    { "a name of digits", "=3 name = 5x",
      "F:3: error: name: bad name \"5x\"; expected a letter, then at most 31 "
      "letters, digits, \"-\" or \"_\"" },
    { "auth", "=3 auth = kerberos",
      "F:3: error: auth: \"kerberos\"; expected auto, none, key or munge" },
    { "no auth", "=3 auth = none", "" },

    /* [nodes] */
    { "no [nodes]", "-4\n-5\n-6\n-7\n-8",
      "F: error: no [nodes \"name\"] section; expected at least one" },
    { "no hosts", "-5",
      "F:4: error: [nodes \"a\"] has no \"hosts\"; expected hosts = a list "
      "such as node[001-064]" },
    { "no ranks", "-6",
      "F:4: error: [nodes \"a\"] has no \"ranks\"; expected ranks = 1 to "
      "1024" },
    { "ranks not a number", "=6 ranks = four",
      "F:6: error: ranks: \"four\" is not a whole number; expected 1 to "
      "1024" },
    { "ranks zero", "=6 ranks = 0",
      "F:6: error: ranks: 0 is out of range; expected 1 to 1024" },
    { "ranks beyond 64 bits", "=6 ranks = 99999999999999999999",
      "F:6: error: ranks: 99999999999999999999 is out of range; expected 1 to "
      "1024" },
    { "a bracket not closed", "=5 hosts = n[1-2",
      "F:5: error: hosts: \"[\" and \"]\" do not match in \"n[1-2\"; " A_LIST },
    { "a range backwards", "=5 hosts = n[2-1]",
      "F:5: error: hosts: range \"2-1\" in \"n[2-1]\" runs backwards; expected "
      "1-2" },
    { "a bad character", "=5 hosts = n 1",
      "F:5: error: hosts: bad character \" \" in \"n 1\"; expected letters, "
      "digits, \".\", \"-\" and ranges in [ ]" },
    { "a host twice", "=5 hosts = n1,n1",
      "F:5: error: hosts: \"n1\" is listed twice" },
    { "a host in two sections",
      "+9 [nodes \"b\"]\n+9 hosts = n[2-4]\n+9 ranks = 4\n"
      "=16 dims = dp=5, tp=4",
      "F:10: error: hosts: \"n2\" is also in [nodes \"a\"]; expected each host "
      "once" },
    { "localhost among others", "=5 hosts = n1,localhost",
      "F:5: error: hosts: \"localhost\" stands for one machine, this one; "
      "expected it as the only host" },
    { "addresses do not match", "+6 addresses = 10.0.0.[1-3]",
      "F:6: error: addresses: 3 addresses for 2 hosts; expected one address "
      "for each host" },
    { "gpus", "=7 gpus = 0-3", "" },
    { "a gpu for two ranks", "=7 gpus = 0,0,1,1", "" },
    { "all gpus", "=7 gpus = all", "" },
    { "no gpus", "=7 gpus = none", "" },
    { "a gpu by its name", "=7 gpus = cuda:0",
      "F:7: error: gpus: \"cuda:0\" is not a GPU or a range of them; expected a "
      "list such as 0-3,8" },
    { "a gpu number", "=7 gpus = 1024",
      "F:7: error: gpus: GPU 1024 does not exist; expected 0 to 1023" },
    { "other memory", "+17 memory = gpu",
      "F:17: error: memory: \"gpu\"; expected host or cuda" },
    { "an hca port", "=8 hca = mlx5_0:x",
      "F:8: error: hca: bad port \"x\" in \"mlx5_0:x\"; expected 1 to 254" },
    { "hcas do not divide the ranks", "=8 hca = mlx5_[0-2]",
      "F:8: error: hca: 3 devices for 4 ranks on each node; expected a number "
      "of devices that divides 4" },
    { "an hca range", "=8 hca = mlx5_[1-0]:1",
      "F:8: error: hca: range \"1-0\" in \"mlx5_[1-0]\" runs backwards; "
      "expected 0-1" },
    { "a rail twice", "=8 hca = mlx5_0 + mlx5_0:1",
      "F:8: error: hca: \"mlx5_0:1\" is twice in \"mlx5_0 + mlx5_0:1\"; expected "
      "another device for each rail" },
    { "rails of unlike lists", "=8 hca = mlx5_[0-1]+mlx5_[2-4]",
      "F:8: error: hca: \"mlx5_[0-1]+mlx5_[2-4]\" joins 2 devices and 3; "
      "expected as many on each side of a \"+\"" },
    { "ranks with more rails than others", "=8 hca = mlx5_0+mlx5_1, mlx5_2",
      "F:8: error: hca: \"mlx5_2\" has 1 rail, those before it 2; expected as "
      "many for every rank" },
    { "hosts with more rails than others", "+9 [nodes \"b\"]\n+9 hosts = m1\n"
      "+9 ranks = 8\n+9 hca = a+b\n=18 base = 8\n=16 dims = dp=4, tp=4",
      "F:12: error: hca: 2 rails for each rank of [nodes \"b\"], 1 of [nodes "
      "\"a\"]; expected as many for every rank" },
    { "and hosts of which hca says nothing", "=8 hca = a+b\n+9 [nodes \"b\"]\n"
      "+9 hosts = m1\n+9 ranks = 8\n=16 dims = dp=4, tp=4",
      "F:8: error: hca: 1 rail for each rank of [nodes \"b\"], 2 of [nodes "
      "\"a\"]; expected as many for every rank" },
    { "too many rails", "=8 hca = a+b+c+d+e+f+g+h+i",
      "F:8: error: hca: 9 rails in \"a+b+c+d+e+f+g+h+i\"; expected at most 8" },
    { "half a rail", "=8 hca = mlx5_0+",
      "F:8: error: hca: nothing beside a \"+\" in \"mlx5_0+\"; expected a device"
    },
    { "gid_index", "+9 gid_index = 300",
      "F:9: error: gid_index: 300 is out of range; expected 0 to 255" },
    { "the number of CPU sets", "=8 cpus = 0-3 | 4-7",
      "F:8: error: cpus: 2 CPU sets for 4 ranks on each node; expected none, "
      "numa, or one set for each rank, separated by \"|\"" },
    { "CPUs of two ranks", "=8 cpus = 0-3 | 4-7,20 | 8-11 | 12,15-30",
      "F:8: warning: cpus: local ranks 1 and 3 of each host share CPU 20; "
      "expected sets without common CPUs" },
    { "CPUs apart", "=8 cpus = 0-3,16 | 4-7,17 | 8-11 | 12-15,18-30", "" },
    { "too many ranks", "=5 hosts = n[1-65536]\n=6 ranks = 1024\n-7",
      "F: error: 67108864 ranks on 65536 hosts; expected at most 1048576 ranks "
      "on 1048576 hosts" },

    /* [transport], [redistribute] */
    { "a transport", "=10 inter_node = infiniband",
      "F:10: error: inter_node: \"infiniband\"; infiniband is rc here" },
    { "the mtu", "=11 mtu = 9000",
      "F:11: error: mtu: \"9000\"; expected 256, 512, 1024, 2048 or "
      "4096" },
    { "a size's suffix", "=12 register_limit = 512KB",
      "F:12: error: register_limit: \"512KB\" " NOT_SIZE },
    { "a size out of range", "=25 pipeline = 1",
      "F:25: error: pipeline: 1 is out of range; expected 4K to 1T" },
    { "sizes of messages, which are no settings", "=11 eager_limit = 8K",
      "F:11: error: unknown key \"eager_limit\" in [transport]; expected one of "
      "intra_node, inter_node, port, mtu, traffic_class, service_level, pkey, "
      "qp_per_peer, retry_count, rnr_retry, timeout, gpu_flush, connect_timeout, "
      "op_timeout, stall_after, heartbeat, dead_after, register_limit, arena" },
    { "a time without unit", "=14 dead_after = 10",
      "F:14: error: dead_after: \"10\" " NOT_TIME },
    { "a time out of range", "=13 heartbeat = 1us",
      "F:13: error: heartbeat: 1us is out of range; expected 10ms to "
      "10080min" },
    { "a heartbeat of less than 10 ms", "=13 heartbeat = 9ms",
      "F:13: error: heartbeat: 9ms is out of range; expected 10ms to "
      "10080min" },
    { "parts of seconds", "=13 heartbeat = 15ms\n=14 dead_after = 31ms", "" },
    { "dead after less than two heartbeats", "=13 heartbeat = 6s",
      "F:14: error: dead_after: 10s with a heartbeat of 6s; expected 12s or "
      "more" },
    { "a stall that would be reported after its deadline",
      "=13 op_timeout = 5s\n=14 stall_after = 5s",
      "F:14: error: stall_after: 5s acts on nothing with an op_timeout of 5s; "
      "expected less" },
    { "the port of the first rank of a host may be the last there is",
      "=11 port = 65535", "" },
    { "but not the one after it", "=11 port = 65536",
      "F:11: error: port: 65536 is out of range; expected 1024 to 65535" },
    { "an arena of no bytes", "=11 arena = 0",
      "F:11: error: arena: 0 is out of range; expected 16M to 64T" },
    { "of more than there is", "=11 arena = 101%",
      "F:11: error: arena: \"101%\" is not a part of the memory; expected 1% "
      "to 100%, or a size" },
    { "of much more, in many digits", "=11 arena = 0000001000%",
      "F:11: error: arena: \"0000001000%\" is not a part of the memory; "
      "expected 1% to 100%, or a size" },
    { "of half a percent", "=11 arena = 0.5%",
      "F:11: error: arena: \"0.5%\" is not a part of the memory; expected 1% "
      "to 100%, or a size" },
    { "of much", "=11 arena = much", "F:11: error: arena: \"much\" " NOT_SIZE },
    { "max_scratch", "=24 max_scratch = much",
      "F:24: error: max_scratch: \"much\" " NOT_SIZE },

    /* [mesh] */
    { "the product of the dims", "=16 dims = dp=2, tp=2",
      "F:16: error: dims: dp=2 x tp=2 is 4 ranks, but mesh \"world\" has 8" },
    { "a dim twice", "=16 dims = dp=2, tp=2, tp=2",
      "F:16: error: dims: dim \"tp\" is listed twice" },
    { "a dim of size 0", "=16 dims = dp=0, tp=4",
      "F:16: error: dims: dim \"dp\" has size 0; expected 1 or more" },
    { "dims without sizes", "=16 dims = dp, tp",
      "F:16: error: dims: bad entry \"dp\"; expected name=number, such as "
      "dp=2, tp=4" },
    { "a product beyond 64 bits",
      "=16 dims = a=1048576, b=1048576, c=1048576, dp=1048576, tp=1",
      "F:16: error: dims: a=1048576 x b=1048576 x c=1048576 x dp=1048576 x "
      "tp=1 is 1099511627776 or more ranks, but mesh \"world\" has 8" },
    { "a dim too large", "=16 dims = dp=99999999999, tp=4",
      "F:16: error: dims: dim \"dp\" has size 99999999999; expected at most "
      "1048576" },
    { "nine dims", "=16 dims = a=2, b=2, c=2, d=1, e=1, f=1, dp=1, tp=1, g=1",
      "F:16: error: dims: dim \"g\" is one too many; expected at most 8" },
    { "no dims", "-16",
      "F:15: error: [mesh \"world\"] has no \"dims\"; expected dims = "
      "name=number, such as dp=2, tp=4, or a parent and what to select" },
    { "a rank that does not exist", "+17 ranks = 0-8",
      "F:17: error: ranks: rank 8 does not exist; expected 0 to 7" },
    { "a rank twice", "+17 ranks = 0-6,3",
      "F:17: error: ranks: rank 3 is listed twice" },
    { "a step of 0", "+17 ranks = 0-6:0",
      "F:17: error: ranks: \"0-6:0\" is not a rank or a range of them; "
      "expected a list such as 0-3,8" },
    { "a world of half the ranks", "=16 dims = dp=1, tp=4\n+17 ranks = 0-3",
      "F:17: error: ranks: mesh \"world\" has 4 of 8 ranks; expected all of "
      "them" },
    { "an unknown parent",
      "+17 [mesh \"x\"]\n+17 parent = wrold\n+17 select = dp=0",
      "F:18: error: parent: no mesh \"wrold\"; did you mean \"world\"?" },
    { "a parent below",
      "+15 [mesh \"x\"]\n+15 parent = world\n+15 select = dp=0",
      "F:16: error: parent: mesh \"world\" is defined below, on line 18; "
      "expected it above" },
    { "its own parent", "+17 [mesh \"x\"]\n+17 parent = x\n+17 select = dp=0",
      "F:18: error: parent: mesh \"x\" is defined below, on line 17; expected "
      "it above" },
    { "a parent and dims",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 dims = a=8",
      "F:19: error: \"dims\" beside \"parent\"; expected one or the other" },
    { "select without parent", "+17 [mesh \"x\"]\n+17 select = dp=0",
      "F:18: error: \"select\" without \"parent\"; expected parent = the name "
      "of a mesh" },
    { "nothing selected", "+17 [mesh \"x\"]\n+17 parent = world",
      "F:17: error: [mesh \"x\"] has no \"select\"; expected select = dp=0" },
    { "an unknown dim selected",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 select = pp=0",
      "F:19: error: select: mesh \"world\" has no dim \"pp\"; did you mean "
      "\"dp\"?" },
    { "an index too high",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 select = dp=2",
      "F:19: error: select: dp=2 does not exist; expected 0 to 1" },
    { "everything selected",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 select = dp=0, tp=1",
      "F:19: error: select: leaves no dim of mesh \"world\"; expected one at "
      "least to stay" },
    { "a dim selected without an index",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 select = dp",
      "F:19: error: select: bad entry \"dp\"; expected dim=index, such as "
      "pp=0" },
    { "a dim selected twice",
      "+17 [mesh \"x\"]\n+17 parent = world\n+17 select = dp=0, dp=0",
      "F:19: error: select: dim \"dp\" is listed twice" },
    { "a world that is a part", "+17 parent = world",
      "F:17: error: parent: mesh \"world\" is all ranks; expected \"dims\"" },
    { "ranks backwards", "+17 ranks = 7-0",
      "F:17: error: ranks: range \"7-0\" runs backwards; expected 0-7" },
    { "a wrong mesh is not blamed on what names it", "=16 dims = dp, tp",
      "F:16: error: dims: bad entry \"dp\"; expected name=number, such as "
      "dp=2, tp=4" },

    /* [seed] */
    { "a seed without base", "-18",
      "F:17: error: [seed] has no \"base\"; expected base = a whole number" },
    { "a base that is no number", "=18 base = random",
      "F:18: error: base: \"random\" is not a whole number; expected 0 to "
      "18446744073709551615, or 0x and hexadecimal digits" },
    { "distinct without mesh", "-19",
      "F:19: error: distinct: dims of no mesh; expected mesh = the name of a "
      "mesh" },
    { "an unknown distinct dim", "=20 distinct = zz",
      "F:20: error: distinct: mesh \"world\" has no dim \"zz\"; expected one "
      "of dp, tp" },
    { "a distinct dim twice", "=20 distinct = dp, dp",
      "F:20: error: distinct: dim \"dp\" is listed twice" },
    { "no distinct dim", "=20 distinct = none", "" },
    { "distinct seeds that are all the same", "+18 stride = 0",
      "F:21: error: distinct: stride = 0 gives all of them the same seed; "
      "expected a stride of 1 or more, or no distinct" },
    { "an unknown tracker", "+18 tracker = globl",
      "F:18: error: tracker: \"globl\"; did you mean \"global\"?" },
    { "a tracker like none", "+18 tracker = everywhere",
      "F:18: error: tracker: \"everywhere\"; expected global, offset, megatron "
      "or local" },
    { "a GPU without threads", "+18 threads_per_sm = 0",
      "F:18: error: threads_per_sm: 0 is out of range; expected 256 to "
      "1048576" },

    /* [tuning] */
    { "an algorithm", "=22 allreduce = 0-inf:rng",
      "F:22: error: allreduce: no algorithm \"rng\"; did you mean \"ring\"?" },
    { "an algorithm almost right", "=22 allreduce = 0-inf:hierarchic",
      "F:22: error: allreduce: no algorithm \"hierarchic\"; did you mean "
      "\"hierarchical\"?" },
    { "an algorithm like no other", "=22 allreduce = 0-inf:quantum",
      "F:22: error: allreduce: no algorithm \"quantum\"; expected direct, "
      "ring, tree, twotree, doubling, halving, bruck, pairwise, "
      "hierarchical, rails, device or stream" },
    { "a bandwidth that is none", "=22 intra_bandwidth = fast",
      "F:22: error: intra_bandwidth: \"fast\" is not a size; expected a "
      "number of bytes with an optional K, M, G or T (powers of 1024)" },
    { "tuning that does not begin at 0", "=22 reduce = 1K-inf:ring",
      "F:22: error: reduce: begins at 1K; expected 0" },
    { "tuning with a gap", "=22 allreduce = 0-1K:tree, 2K-inf:ring",
      "F:22: error: allreduce: a range ends at 1K and the next begins at 2K; "
      "expected no gap or overlap" },
    { "tuning that ends", "=22 broadcast = 0-1M:tree",
      "F:22: error: broadcast: ends at 1M; expected inf" },
    { "tuning after inf", "=22 reduce = 0-inf:ring, 5-6:tree",
      "F:22: error: reduce: a range follows the one to inf; expected inf "
      "last" },
    { "tuning of no size", "=22 reduce = 0-1K:tree, 1K-1K:ring, 1K-inf:ring",
      "F:22: error: reduce: range 1K-1K is empty; expected a larger second "
      "number" },
    { "tuning of too many sizes", "=22 reduce = 0-1:ring,1-2:tree,2-3:ring,"
      "3-4:tree,4-5:ring,5-6:tree,6-7:ring,7-8:tree,8-9:ring,9-10:tree,"
      "10-11:ring,11-12:tree,12-13:ring,13-14:tree,14-15:ring,15-16:tree,"
      "16-inf:ring",
      "F:22: error: reduce: too many ranges; expected at most 16" },
    { "tuning of nothing", "=22 allgather = ring",
      "F:22: error: allgather: bad entry \"ring\"; expected from-to:algorithm, "
      "such as 0-64K:direct, 64K-inf:ring" },

    /* [device] */
    { "device", "+27 [device]\n+27 direct = required", "" },
    { "a word for direct", "+27 [device]\n+27 direct = yes",
      "F:28: error: direct: \"yes\"; expected auto or required" },
    { "direct over tcp", "=10 mtu = 4096\n-11\n+27 [device]\n"
      "+27 direct = required", "F:27: error: direct: required, but [transport] "
      "inter_node = tcp stages memory of GPUs; expected auto, or inter_node = "
      "rc" },

    /* [plan] */
    { "a plan", "+27 [plan \"p\"]\n+27 mesh = world\n+27 dim = tp\n"
      "+27 layers.*.up = colwise\n+27 layers.*.down = rowwise  output=S(-1)\n"
      "+27 n[0-3] = sequence dim=-2\n+27 . = prepare input=R,- "
      "output=S(0:3,5)\n+27 [plan \"q\"]\n+27 up = colwise output=SS(0,2)\n"
      "+27 a = prepare input=HT(1),P(max),C(0,64)",
      "" },
    { "its mesh, its dim and a style, all at once", "+27 [plan \"p\"]\n"
      "+27 mesh = word\n+27 dim = pp\n+27 layers.*.up = columns",
      "F:28: error: mesh: no mesh \"word\"; did you mean \"world\"?\n"
      "F:30: error: layers.*.up: no style \"columns\"; expected colwise, "
      "rowwise, sequence or prepare" },
    { "a style almost right", "+27 [plan \"p\"]\n+27 up = colwize",
      "F:28: error: up: no style \"colwize\"; did you mean \"colwise\"?" },
    { "a dim of its mesh", "+27 [plan \"p\"]\n+27 mesh = world\n+27 dim = pp\n"
      "+27 up = colwise",
      "F:29: error: dim: mesh \"world\" has no dim \"pp\"; did you mean "
      "\"dp\"?" },
    { "a mesh of two dims", "+27 [plan \"p\"]\n+27 mesh = world\n"
      "+27 up = colwise",
      "F:28: error: mesh: \"world\" has 2 dims; expected dim = one of them" },
    { "a dim of no mesh", "+27 [plan \"p\"]\n+27 dim = tp\n+27 up = colwise",
      "F:28: error: dim: of no mesh; expected mesh = the name of a mesh" },
    { "a plan of nothing", "+27 [plan \"p\"]\n+27 mesh = world\n+27 dim = tp",
      "F:27: error: [plan \"p\"] has 0 entries; expected 1 to 1024 of PATTERN = "
      "STYLE, such as layers.*.up = colwise" },
    { "a pattern given twice", "+27 [plan \"p\"]\n+27 up = colwise\n"
      "+27 up = rowwise",
      "F:29: error: \"up\" was already given on line 28" },
    { "two styles for one module", "+27 [plan \"p\"]\n"
      "+27 layers.0.up = colwise\n+27 layers.*.up = rowwise\n"
      "+27 layers.*.* = sequence\n+27 layers.?.down = rowwise",
      "F:29: error: layers.*.up: its modules have a style by \"layers.0.up\" on "
      "line 28; expected one style for each module\n"
      "F:30: error: layers.*.*: its modules have a style by \"layers.0.up\" on "
      "line 28; expected one style for each module\n"
      "F:31: error: layers.?.down: its modules have a style by \"layers.*.*\" "
      "on line 30; expected one style for each module" },
    { "patterns of different modules", "+27 [plan \"p\"]\n"
      "+27 layers.0.up = colwise\n+27 layers.[1-9].up = rowwise\n"
      "+27 *.up = rowwise\n+27 up = colwise\n+27 . = prepare output=R", "" },
    { "bad patterns", "+27 [plan \"p\"]\n+27 a..b = colwise\n"
      "+27 .a = colwise\n+27 a. = colwise\n+27 a[0 = colwise\n"
      "+27 a{b = colwise",
      "F:28: error: bad pattern \"a..b\"; " PATTERN "\n"
      "F:29: error: bad pattern \".a\"; " PATTERN "\n"
      "F:30: error: bad pattern \"a.\"; " PATTERN "\n"
      "F:31: error: bad pattern \"a[0\"; " PATTERN "\n"
      "F:32: error: bad pattern \"a{b\"; " PATTERN },
    { "layouts that no tensor has", "+27 [plan \"p\"]\n"
      "+27 a = rowwise output=S(9)\n+27 b = prepare input=R,SS(0,0)\n"
      "+27 c = prepare output=P(some),HT(0:1)\n+27 d = rowwise output=-",
      "F:28: error: a: no layout \"S(9)\"; " LAYOUT "\n"
      "F:29: error: b: no layout \"SS(0,0)\"; " LAYOUT "\n"
      "F:30: error: c: no layout \"P(some)\"; " LAYOUT "\n"
      "F:30: error: c: no layout \"HT(0:1)\"; " LAYOUT "\n"
      "F:31: error: d: no layout \"-\"; " LAYOUT },
    { "a layout that the style cannot take", "+27 [plan \"p\"]\n"
      "+27 a = colwise output=P\n+27 b = rowwise output=R,R",
      "F:28: error: a: output=P: the output of colwise is no term; expected R "
      "or S\nF:29: error: b: \"R\": too many or too long layouts (expected at "
      "most 1)" },
    { "options that the style does not have", "+27 [plan \"p\"]\n"
      "+27 a = rowwise input=R\n+27 b = sequence dim=8\n+27 c = prepare",
      "F:28: error: a: rowwise has no option \"input=R\" (expected "
      "output=LAYOUT)\n"
      "F:29: error: b: dim=8: not a dimension (expected 0 to 7, or -1 to -7)\n"
      "F:30: error: c: prepare without input=LAYOUTS or output=LAYOUTS" },

    /* several values at once */
    { "values of three sections, in the order of the lines",
      "=2 version = 2\n=12 register_limit = x\n=6 ranks = 0",
      "F:2: error: version: this is format 2; expected 1, the only one this "
      "release reads\n"
      "F:6: error: ranks: 0 is out of range; expected 1 to 1024\n"
      "F:12: error: register_limit: \"x\" " NOT_SIZE },
};

int main(void)
{
    unsetenv("SLURM_STEP_NODELIST");
    malformed_good();
    malformed_rows(rows, DTN_COUNT(rows));
    return done();
}

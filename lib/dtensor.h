/* dtensor.h - distributed tensors on a fixed cluster, in C
 *
 * A program starts on every rank of a cluster, calls dtensor_init(), and then
 * works on tensors that are spread over a mesh of ranks.  Nothing else runs:
 * no MPI, no NCCL, no daemon.  Link with `pkg-config --libs dtensor`.
 *
 * Words.  A *rank* is one process, 0..world_size-1.  A *mesh* lays ranks out
 * on an n-dimensional grid.  A *placement* says, for one mesh dimension, what
 * its ranks hold: S(d) a shard of tensor dimension d, R a replica, P(op) a
 * term of a sum or other reduction that is still to be done.  A *spec* is a
 * mesh, one placement for each of its dimensions, and the global shape and
 * dtype.
 *
 * Rules that hold everywhere
 *   - A function that can fail returns 0 or a negative enum dtensor_errcode.
 *     Its last parameter explains: NULL if the code alone is enough.  Out
 *     parameters are written on success only.
 *   - *Collective* calls must be made by every rank named, in the same order.
 *     If a rank makes another call, the calls fail with EMISMATCH before any
 *     data is used.
 *   - A call that *Blocks* waits for peers, at most [transport] op_timeout.
 *   - If a collective call fails with any code except EINVAL, the context
 *     becomes unusable: every later collective call on it fails the same way.
 *     Only destroy it.
 *   - A context and its objects may be used by one thread at a time.
 *     Meshes and specs never change after they are made; threads may share
 *     them.
 *   - Pass NULL only where a contract says what it means.  Elsewhere the
 *     library need not check for it, and the program may crash.
 *   - The library does not print, exit, or install signal handlers.  With
 *     DTN_LOG=warn|info|debug in the environment it logs its choices on stderr.
 *
 * The contract of a function is the comment above it, or above a group of
 * similar functions; "All in this section" holds for the whole section.
 *   - Collective  which ranks must make the call, or no
 *   - Blocks      what it waits for, or no
 *   - Owns        who owns the result, and until when
 *   - Errors      the codes, and what each means here
 *   - Semantics   the function of PyTorch, MPI or NCCL that it follows, or "its
 *                 own"
 * A function without `err` cannot fail, does not block and is not collective,
 * unless its contract says otherwise.  A size, or bytes, is in bytes; a count,
 * or a shape, in elements; times name their unit.  Arrays are row-major.
 *
 * The parts below are chapters, to be read in this order.  Programs include
 * this file only: what is in which part may change.
 */
#ifndef DTENSOR_H
#define DTENSOR_H

/* A struct and the function that fills it may share a name, as stat does, of
 * which GCC warns in C++.
 */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

#include "dtensor/types.h"       /* errors, element types, reductions         */
#include "dtensor/context.h"     /* joining a job; memory; the machines       */
#include "dtensor/device.h"      /* memory of GPUs                            */
#include "dtensor/mesh.h"        /* ranks on a grid                           */
#include "dtensor/spec.h"        /* placements: what each rank holds          */
#include "dtensor/tensor.h"      /* tensors: made, asked, redistributed       */
#include "dtensor/file.h"        /* tensors in files                          */
#include "dtensor/random.h"      /* random numbers                            */
#include "dtensor/collective.h"  /* allreduce and its kin, on plain arrays    */
#include "dtensor/simulate.h"    /* collectives on machines described         */
#include "dtensor/plan.h"        /* redistributions planned and explained     */
#include "dtensor/op.h"          /* operators: computing with tensors         */
#include "dtensor/define.h"      /* operators of the program                  */
#include "dtensor/attention.h"   /* attention on sharded sequences            */
#include "dtensor/tape.h"        /* gradients                                 */
#include "dtensor/module.h"      /* modules: a model as a tree                */
#include "dtensor/debug.h"       /* counters and traces                       */

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif

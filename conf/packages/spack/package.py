# Copyright (c) 2026, the libdtensor authors.  SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe of libdtensor: put it in packages/dtensor/ of a repository of
yours, and "git" at where your source is."""

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Dtensor(AutotoolsPackage):
    """Distributed tensors on a fixed cluster: DTensor's meshes, placements and
    redistribution in C, over InfiniBand verbs, TCP and shared memory."""

    git = "file:///usr/src/dtensor"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("blas", default=True, description="Multiply matrices by OpenBLAS")
    variant("cuda", default=False, description="Build kernels for GPUs")
    variant("hwloc", default=True, description="Bind ranks by NUMA node")
    variant("munge", default=True, description="Prove identity by munge")
    variant("sodium", default=True, description="Authenticate ranks")
    variant("verbs", default=True, description="Use InfiniBand verbs")
    conflicts("+munge", when="~sodium")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libinih")
    depends_on("jansson")
    depends_on("xxhash", type="build")
    depends_on("openblas", when="+blas")
    depends_on("cuda", type="build", when="+cuda")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("libsodium@1.0.12:", when="+sodium")
    depends_on("munge", when="+munge")
    depends_on("rdma-core", when="+verbs")

    def autoreconf(self, spec, prefix):
        Executable("./bootstrap")()

    def configure_args(self):
        args = []
        for name in ("hwloc", "munge", "sodium", "verbs"):
            args += self.with_or_without(name)
        # The name is what dlopen() is given: with its folder it is found anywhere.
        if self.spec.satisfies("+blas"):
            libs = self.spec["openblas"].libs.libraries
            args.append(f"--with-blas={libs[0]}")
        else:
            args.append("--without-blas")
        if self.spec.satisfies("+cuda"):
            args.append(f"--with-cuda={self.spec['cuda'].prefix}")
        else:
            args.append("--without-cuda")
        return args

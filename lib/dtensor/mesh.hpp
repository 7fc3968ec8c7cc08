/* dtensor/mesh.hpp - C++: specs, and meshes with their collectives */
#ifndef DTENSOR_MESH_HPP
#define DTENSOR_MESH_HPP

#include <dtensor.h>
#include <dtensor/call.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dt {

/* How a tensor lies: a dtensor_spec, to be read and changed as one. */
class spec : public dtensor_spec {
public:
    explicit spec(const dtensor_spec &of) : dtensor_spec(of) {}
    spec(const dtensor_mesh *on, const std::string &placements,
         dtensor_dtype type, const std::vector<std::int64_t> &sizes)
    {
        call([&](auto *err) {
            return dtensor_spec_on(this, on, placements.c_str(), type,
                                   static_cast<int>(sizes.size()),
                                   sizes.data(), err);
        });
    }

    /* The part of a rank of the world: its shape, and the global index of its
     * first element.
     */
    struct part {
        std::vector<std::int64_t> shape, offset;
    };
    part local(int rank) const
    {
        std::vector<std::int64_t> sizes(DTENSOR_MAX_DIMS), first(sizes);

        dtensor_spec_local(this, rank, sizes.data(), first.data());
        sizes.resize(static_cast<std::size_t>(ndim));
        first.resize(static_cast<std::size_t>(ndim));
        return { sizes, first };
    }
};

/* What was started.  The destructor waits too, and ignores an error. */
class request {
public:
    explicit request(dtensor_request *owned) : request_(owned) {}
    dtensor_request *get() const { return request_.get(); }

    /* Is it complete?  wait() comes after it in any case. */
    bool test() const
    {
        int done = 0;

        call([&](auto *err) { return dtensor_test(get(), &done, err); });
        return done != 0;
    }

    void wait()
    {
        dtensor_request *started = request_.release();

        call([&](auto *err) { return dtensor_wait(started, err); });
    }

private:
    struct finish {
        void operator()(dtensor_request *started) const
        {
            dtensor_wait(started, nullptr);
        }
    };
    std::unique_ptr<dtensor_request, finish> request_;
};

/* Ranks on a grid, and the collectives on plain arrays among them.  The context
 * owns the mesh.
 */
class mesh {
public:
    mesh(const dtensor_mesh *of) : mesh_(of) {}
    const dtensor_mesh *get() const { return mesh_; }
    operator const dtensor_mesh *() const { return mesh_; }
    int size() const { return dtensor_mesh_size(mesh_); }
    int ndim() const { return dtensor_mesh_ndim(mesh_); }

    /* The position of this rank, row-major, or -1 outside the mesh. */
    int index() const
    {
        int at = 0, along = 0;

        for (int dim = 0; dim < ndim() && along >= 0; dim++) {
            call([&](auto *err) {
                return dtensor_mesh_coord_along(mesh_, dim, &along, err);
            });
            at = at * dtensor_mesh_dim_size(mesh_, dim) + along;
        }
        return along < 0 ? -1 : at;
    }

    /* The slice of these dimensions that has this rank: grid["tp"]. */
    mesh operator[](const std::string &names) const
    {
        return made<const dtensor_mesh>([&](auto **slice, auto *err) {
            return dtensor_mesh_slice(mesh_, names.c_str(), slice, err);
        });
    }

    template <class T>
    void allreduce(const T *in, T *out, std::size_t count,
                   dtensor_redop op = DTENSOR_SUM) const
    {
        call([&](auto *err) {
            return dtensor_allreduce(mesh_, in, out, count, dtype_of<T>::value,
                                     op, err);
        });
    }

    /* On all ranks but the root, `out` of reduce and gather may be nullptr, and
     * so may `in` of scatter.
     */
    template <class T>
    void reduce(int root, const T *in, same_as<T> *out, std::size_t count,
                dtensor_redop op = DTENSOR_SUM) const
    {
        call([&](auto *err) {
            return dtensor_reduce(mesh_, root, in, out, count,
                                  dtype_of<T>::value, op, err);
        });
    }

    template <class T>
    void broadcast(int root, T *buf, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_broadcast(mesh_, root, buf, count,
                                     dtype_of<T>::value, err);
        });
    }

    template <class T>
    void allgather(const T *in, T *out, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_allgather(mesh_, in, out, count, dtype_of<T>::value,
                                     err);
        });
    }

    template <class T>
    void gather(int root, const T *in, same_as<T> *out, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_gather(mesh_, root, in, out, count,
                                  dtype_of<T>::value, err);
        });
    }

    template <class T>
    void scatter(int root, const same_as<T> *in, T *out,
                 std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_scatter(mesh_, root, in, out, count,
                                   dtype_of<T>::value, err);
        });
    }

    template <class T>
    void reduce_scatter(const T *in, T *out, std::size_t count,
                        dtensor_redop op = DTENSOR_SUM) const
    {
        call([&](auto *err) {
            return dtensor_reduce_scatter(mesh_, in, out, count,
                                          dtype_of<T>::value, op, err);
        });
    }

    template <class T>
    void all_to_all(const T *in, T *out, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_all_to_all(mesh_, in, out, count, dtype_of<T>::value,
                                      err);
        });
    }

    /* counts, in_counts, out_counts: size() of each. */
    template <class T>
    void allgatherv(const T *in, T *out, const std::size_t *counts) const
    {
        call([&](auto *err) {
            return dtensor_allgatherv(mesh_, in, out, counts,
                                      dtype_of<T>::value, err);
        });
    }

    template <class T>
    void reduce_scatterv(const T *in, T *out, const std::size_t *counts,
                         dtensor_redop op = DTENSOR_SUM) const
    {
        call([&](auto *err) {
            return dtensor_reduce_scatterv(mesh_, in, out, counts,
                                           dtype_of<T>::value, op, err);
        });
    }

    template <class T>
    void gatherv(int root, const T *in, same_as<T> *out,
                 const std::size_t *counts) const
    {
        call([&](auto *err) {
            return dtensor_gatherv(mesh_, root, in, out, counts,
                                   dtype_of<T>::value, err);
        });
    }

    template <class T>
    void scatterv(int root, const same_as<T> *in, T *out,
                  const std::size_t *counts) const
    {
        call([&](auto *err) {
            return dtensor_scatterv(mesh_, root, in, out, counts,
                                    dtype_of<T>::value, err);
        });
    }

    template <class T>
    void all_to_allv(const T *in, const std::size_t *in_counts, T *out,
                     const std::size_t *out_counts) const
    {
        call([&](auto *err) {
            return dtensor_all_to_allv(mesh_, in, in_counts, out, out_counts,
                                       dtype_of<T>::value, err);
        });
    }

    template <class T> void send(int to, const T *buf, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_send(mesh_, to, buf, count, dtype_of<T>::value, err);
        });
    }

    template <class T> void recv(int from, T *buf, std::size_t count) const
    {
        call([&](auto *err) {
            return dtensor_recv(mesh_, from, buf, count, dtype_of<T>::value,
                                err);
        });
    }

    void barrier() const
    {
        call([&](auto *err) { return dtensor_barrier(mesh_, err); });
    }

private:
    const dtensor_mesh *mesh_;
};

} // namespace dt
#endif

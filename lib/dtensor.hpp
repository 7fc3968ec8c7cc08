/* dtensor.hpp - libdtensor for C++17: owners and exceptions around dtensor.h
 *
 * A dt::context, dt::tensor or dt::tape ends what it owns when it goes out of
 * scope; a failure is thrown as dt::error.  Every member does what the function
 * of dtensor.h with its name does, whose page says which calls are collective.
 * get() gives the pointer that the functions of dtensor.h take, for what has no
 * member here.  The namespace is dt, since `dtensor` is a struct of C.
 *
 *   int main()
 *   {
 *       return dt::run([](dt::context &job) {
 *           dt::spec spec = job.spec("world", "S(0)", DTENSOR_F32, {8, 8});
 *           dt::tensor rows = dt::arange(spec);
 *           dt::tensor columns = rows.redistribute("S(1)");
 *       });
 *   }
 *
 * Destroy tensors before their context: without dt::run() declare the context
 * first.
 */
#ifndef DTENSOR_HPP
#define DTENSOR_HPP

#include <dtensor.h>
#include <dtensor/call.hpp>
#include <dtensor/mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace dt {

/* ------------------------------------------------------------ context --- */

/* A job that this process has joined, until the end of the scope. */
class context {
public:
    explicit context(const char *path = nullptr)
        : ctx_(made<dtensor_ctx>([&](auto **ctx, auto *err) {
              return dtensor_init(path, ctx, err);
          })) {}

    /* Without peers, for plans: dtensor_init_offline(). */
    context(const char *path, int nranks, int per_host)
        : ctx_(made<dtensor_ctx>([&](auto **ctx, auto *err) {
              return dtensor_init_offline(path, nranks, per_host, ctx, err);
          })) {}

    dtensor_ctx *get() const { return ctx_.get(); }
    operator dtensor_ctx *() const { return ctx_.get(); }
    int rank() const { return dtensor_rank(get()); }
    int world_size() const { return dtensor_world_size(get()); }
    int local_rank() const { return dtensor_local_rank(get()); }
    std::string host() const { return dtensor_host(get()); }
    void set_repro(bool on) const { dtensor_set_repro(get(), on); }

    bool should_report(const error &failure) const
    {
        return dtensor_should_report(get(), &failure.why()) != 0;
    }

    dt::mesh mesh(const std::string &name = "world") const
    {
        return made<const dtensor_mesh>([&](auto **found, auto *err) {
            return dtensor_mesh_find(get(), name.c_str(), found, err);
        });
    }

    /* A mesh of ranks 0, 1, 2, ...: mesh({2, 4}, "dp,tp"). */
    dt::mesh mesh(const std::vector<int> &sizes, const std::string &names) const
    {
        return made<const dtensor_mesh>([&](auto **grid, auto *err) {
            return dtensor_mesh_create(get(), static_cast<int>(sizes.size()),
                                       sizes.data(), names.c_str(), nullptr,
                                       grid, err);
        });
    }

    /* What `calls` sends, receives and reduces is done together at the end:
     * group([&] { mesh.send(next, &a, 1); mesh.recv(last, &b, 1); }).  After an
     * error of one of them the group stays open: leave the job.
     */
    template <class F> void group(F calls) const
    {
        call([&](auto *err) { return dtensor_group_begin(get(), err); });
        calls();
        call([&](auto *err) { return dtensor_group_end(get(), err); });
    }

    /* The same, but only started: compute, then wait(); the buffers are the
     * library's until then.
     */
    template <class F> request start(F calls) const
    {
        call([&](auto *err) { return dtensor_group_begin(get(), err); });
        calls();
        return request(made<dtensor_request>([&](auto **started, auto *err) {
            return dtensor_group_start(get(), started, err);
        }));
    }

    dt::spec spec(const std::string &on, const std::string &placements,
                  dtensor_dtype type,
                  const std::vector<std::int64_t> &sizes) const
    {
        return dt::spec(mesh(on), placements, type, sizes);
    }

private:
    struct finish {
        void operator()(dtensor_ctx *ctx) const { dtensor_fini(ctx); }
    };
    std::unique_ptr<dtensor_ctx, finish> ctx_;
};

/* Join the job, call work(job), and leave it: the whole of main().  Of an error
 * that `work` or joining throws, one rank prints the text.  0, or then 1.
 */
template <class F> int run(F work, const char *path = nullptr)
{
    try {
        context job(path);

        try {
            work(job);
            return 0;
        } catch (const error &failure) {
            if (job.should_report(failure))
                std::fprintf(stderr, "%s\n", failure.what());
        }
    } catch (const error &failure) {
        if (dtensor_should_report(nullptr, &failure.why()))
            std::fprintf(stderr, "%s\n", failure.what());
    }
    return 1;
}

/* ------------------------------------------------------------ tensors --- */

/* A tensor that is spread over a mesh; this rank's part is here. */
class tensor {
public:
    tensor() = default;
    explicit tensor(::dtensor *owned) : t_(owned) {}
    ::dtensor *get() const { return t_.get(); }
    ::dtensor *release() { return t_.release(); } /* to another owner         */
    explicit operator bool() const { return t_ != nullptr; }
    const dtensor_spec &spec() const { return *dtensor_spec_of(get()); }

    /* The elements of this rank, which may be none. */
    template <class T> view<T> local() const
    {
        must_hold(dtype_of<T>::value);
        return view<T>(static_cast<T *>(dtensor_to_local(get())),
                       dtensor_local_bytes(get()) / sizeof(T));
    }

    /* All elements, on every rank. */
    template <class T> elements<T> full_tensor() const
    {
        elements<T> all(size());

        must_hold(dtype_of<T>::value);
        call([&](auto *err) {
            return dtensor_full_tensor(get(), all.data(),
                                       all.size() * sizeof(T), err);
        });
        return all;
    }

    /* All elements on position `root` of the mesh; none on the others. */
    template <class T> elements<T> full_tensor_at(int root) const
    {
        elements<T> all(mesh(spec().mesh).index() == root ? size() : 0);

        must_hold(dtype_of<T>::value);
        call([&](auto *err) {
            return dtensor_full_tensor_at(get(), root,
                                          all.empty() ? nullptr : all.data(),
                                          all.size() * sizeof(T), err);
        });
        return all;
    }

    /* Elements of the whole. */
    std::size_t size() const
    {
        std::size_t count = 1;

        for (int i = 0; i < spec().ndim; i++)
            count *= static_cast<std::size_t>(spec().shape[i]);
        return count;
    }

    void fill_value(double value)
    {
        call([&](auto *err) { return dtensor_fill_value(get(), value, err); });
    }

    tensor redistribute(const std::string &placements) const
    {
        return tensor(made<::dtensor>([&](auto **t, auto *err) {
            return dtensor_redistribute(get(), placements.c_str(), t, err);
        }));
    }

    tensor redistribute_to(const dtensor_spec &to) const
    {
        return tensor(made<::dtensor>([&](auto **t, auto *err) {
            return dtensor_redistribute_to(get(), &to, t, err);
        }));
    }

    void redistribute_into(tensor &dst) const
    {
        call([&](auto *err) {
            return dtensor_redistribute_into(get(), dst.get(), err);
        });
    }

    tensor clone() const
    {
        return tensor(made<::dtensor>([&](auto **t, auto *err) {
            return dtensor_clone(get(), t, err);
        }));
    }

    void save(const std::string &path) const
    {
        call([&](auto *err) { return dtensor_save(get(), path.c_str(), err); });
    }

    void print(std::FILE *stream = stdout) const
    {
        call([&](auto *err) { return dtensor_print(get(), stream, err); });
    }

    void draw(std::FILE *stream = stdout) const { dtensor_draw(get(), stream); }

private:
    void must_hold(dtensor_dtype type) const
    {
        dtensor_error why = dtensor_error();

        if (spec().dtype == type)
            return;
        why.code = DTENSOR_EINVAL;
        why.rank = -1;
        std::snprintf(why.text, sizeof(why.text),
                      "elements: the tensor is %s, not %s (ask for the C++ "
                      "type of its dtype)", dtensor_dtype_name(spec().dtype),
                      dtensor_dtype_name(type));
        throw error(why);
    }

    struct destroy {
        void operator()(::dtensor *t) const { dtensor_destroy(t); }
    };
    std::unique_ptr<::dtensor, destroy> t_;
};

/* A generator of random numbers. */
class generator {
public:
    explicit generator(std::uint64_t seed)
        : gen_(made<dtensor_generator>([&](auto **gen, auto *err) {
              return dtensor_generator_create(seed, gen, err);
          }))
    {
    }
    dtensor_generator *get() const { return gen_.get(); }
    operator dtensor_generator *() const { return gen_.get(); }

private:
    struct destroy {
        void operator()(dtensor_generator *gen) const
        {
            dtensor_generator_destroy(gen);
        }
    };
    std::unique_ptr<dtensor_generator, destroy> gen_;
};

/* The tensor that a function of dtensor.h makes of a spec. */
template <class F> tensor made_of(const dtensor_spec &of, F function)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return function(&of, t, err);
    }));
}

/* By the functions of dtensor.h with these names.  A generator is that of the
 * context unless another is given.
 */
inline tensor empty(const dtensor_spec &s) { return made_of(s, dtensor_empty); }
inline tensor zeros(const dtensor_spec &s) { return made_of(s, dtensor_zeros); }
inline tensor ones(const dtensor_spec &s) { return made_of(s, dtensor_ones); }
inline tensor arange(const dtensor_spec &s)
{
    return made_of(s, dtensor_arange);
}

inline tensor full(const dtensor_spec &of, double value)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_full(&of, value, t, err);
    }));
}

inline tensor rand(const dtensor_spec &of, dtensor_generator *gen = nullptr)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_rand(&of, gen, t, err);
    }));
}

inline tensor randn(const dtensor_spec &of, dtensor_generator *gen = nullptr)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_randn(&of, gen, t, err);
    }));
}

inline tensor load(const dtensor_spec &of, const std::string &path)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_load(&of, path.c_str(), t, err);
    }));
}

/* All elements on position `root` of the mesh, or with -1 on every rank. */
template <class T>
tensor distribute(const dtensor_spec &of, const T *all, int root = 0)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_distribute(&of, all, root, t, err);
    }));
}

template <class T>
tensor from_local(const dtensor_spec &of, const T *mine, std::size_t count)
{
    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_from_local(&of, mine, count * sizeof(T), t, err);
    }));
}

inline bool equal(const tensor &a, const tensor &b)
{
    int same = 0;

    call([&](auto *err) {
        return dtensor_equal(a.get(), b.get(), &same, err);
    });
    return same != 0;
}

/* ---------------------------------------------------------- operators --- */

/* A tensor that is only read: one here, or of C, as tape.grad(w) or a parameter
 * of a module.
 */
class operand {
public:
    operand(const tensor &t) : t_(t.get()) {}
    operand(const tensor *t) : t_(t->get()) {}
    operand(const ::dtensor *t) : t_(t) {}
    const ::dtensor *get() const { return t_; }

private:
    const ::dtensor *t_;
};

/* Arguments of an operator: a struct, or as text, "dim=0,keep=1". */
class op_args : public dtensor_op_args {
public:
    op_args() : dtensor_op_args() {}
    op_args(const dtensor_op_args &args) : dtensor_op_args(args) {}
    op_args(const std::string &text) : op_args(text.c_str()) {}
    op_args(const char *text) : dtensor_op_args()
    {
        call([&](auto *err) { return dtensor_op_args_parse(text, this, err); });
    }
};

inline std::vector<const ::dtensor *>
pointers(std::initializer_list<operand> in)
{
    std::vector<const ::dtensor *> list;

    for (const operand &t : in)
        list.push_back(t.get());
    return list;
}

/* The operator of that name, with one output: op("sum", {&x}, "dim=0"). */
inline tensor op(const char *name, std::initializer_list<operand> in,
                 const op_args &args = op_args())
{
    const std::vector<const ::dtensor *> list = pointers(in);

    return tensor(made<::dtensor>([&](auto **t, auto *err) {
        return dtensor_op(name, static_cast<int>(list.size()), list.data(),
                          &args, 1, t, err);
    }));
}

/* The same into a tensor that exists: op_into("add_", {&w, &step}, w). */
inline void op_into(const char *name, std::initializer_list<operand> in,
                    tensor &out, const op_args &args = op_args())
{
    const std::vector<const ::dtensor *> list = pointers(in);
    ::dtensor *const to[] = {out.get()};

    call([&](auto *err) {
        return dtensor_op_into(name, static_cast<int>(list.size()), list.data(),
                               &args, 1, to, err);
    });
}

inline tensor matmul(const tensor &a, const tensor &b)
{
    return op("matmul", {&a, &b});
}

inline tensor operator+(const tensor &a, const tensor &b)
{
    return op("add", {&a, &b});
}

inline tensor operator-(const tensor &a, const tensor &b)
{
    return op("sub", {&a, &b});
}

inline tensor operator*(const tensor &a, const tensor &b)
{
    return op("mul", {&a, &b});
}

/* ---------------------------------------------------------- gradients --- */

/* Notes the operators between begin() and end(), and differentiates them. */
class tape {
public:
    explicit tape(const context &job)
        : tape_(made<dtensor_tape>([&](auto **of, auto *err) {
              return dtensor_tape_create(job, of, err);
          })) {}

    dtensor_tape *get() const { return tape_.get(); }

    void watch(operand t) const
    {
        call([&](auto *err) {
            return dtensor_tape_watch(get(), t.get(), err);
        });
    }

    void begin() const
    {
        call([&](auto *err) { return dtensor_tape_begin(get(), err); });
    }

    void end() const
    {
        call([&](auto *err) { return dtensor_tape_end(get(), err); });
    }

    void backward(operand loss) const
    {
        call([&](auto *err) {
            return dtensor_tape_backward(get(), loss.get(), nullptr, err);
        });
    }

    /* The tape's own, until clear(); NULL: the loss does not depend on t. */
    const ::dtensor *grad(operand t) const
    {
        return dtensor_tape_grad(get(), t.get());
    }

    void clear() const { dtensor_tape_clear(get()); }

private:
    struct destroy {
        void operator()(dtensor_tape *of) const { dtensor_tape_destroy(of); }
    };
    std::unique_ptr<dtensor_tape, destroy> tape_;
};

} // namespace dt
#endif

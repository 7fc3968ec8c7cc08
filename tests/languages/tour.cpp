/* tour.cpp - what dtensor.hpp has, each member once
 *
 * Prints the same on any number of ranks, from rank 0.
 */
#include <dtensor.hpp>

#include <cstdio>
#include <string>

static void tensors(const dt::context &job)
{
    dt::spec spec = job.spec("world", "S(0)", DTENSOR_F32, { 8, 8 });
    dt::tensor rows = dt::arange(spec);
    dt::tensor columns = rows.redistribute("S(1)");
    std::vector<float> all = columns.full_tensor<float>();
    float sum = 0, total;

    for (float mine : columns.local<float>())
        sum += mine;
    job.mesh().allreduce(&sum, &total, 1);
    bool equal = dt::equal(rows, columns);
    if (job.rank() == 0)
        std::printf("sum %g, last %g, equal %d\n", total, all[63], equal);
    dt::tensor moved(std::move(rows));
    dt::tensor back = columns.redistribute_to(moved.spec()).clone();
    moved.fill_value(-1);
    columns.redistribute_into(moved);
    ::dtensor *given = moved.release();
    moved = dt::tensor(given);
    equal = dt::equal(moved, back);
    if (job.rank() == 0)
        std::printf("moved %d, left %d\n", bool(moved), bool(rows));
    back.save("tour.npy");
    columns = dt::load(columns.spec(), "tour.npy");
    bool same = dt::equal(back, columns) && equal;
    back.fill_value(2);
    bool filled = back.full_tensor<float>()[63] == 2;
    if (job.rank() == 0)
        std::printf("loaded %d, filled %d\n", same, filled);
}

/* Types that C++ lacks, or whose vectors have no elements. */
static void types(const dt::context &job)
{
    const dt::mesh world = job.mesh();
    dt::tensor yes = dt::ones(dt::spec(world, "S(0)", DTENSOR_BOOL, { 5 }));
    dt::tensor half = dt::full(dt::spec(world, "R", DTENSOR_BF16, { 3 }), 1.5);
    dt::tensor third = dt::ones(dt::spec(world, "R", DTENSOR_F16, { 3 }));
    dt::tensor small = dt::ones(dt::spec(world, "R", DTENSOR_F8E4M3, { 3 }));
    dt::tensor range = dt::ones(dt::spec(world, "R", DTENSOR_F8E5M2, { 3 }));
    std::vector<unsigned char> all = yes.full_tensor<bool>();
    dt::bf16 sum[3];
    bool right = all.size() == 5;

    for (unsigned char one : all)
        right = right && one == 1;
    for (bool mine : yes.local<bool>())
        right = right && mine;
    world.allreduce(half.local<dt::bf16>().data(), sum, 3, DTENSOR_MAX);
    right = right && sum[2].bits == 0x3fc0 &&
            third.local<dt::f16>()[0].bits == 0x3c00 &&
            small.local<dt::f8e4m3>()[0].bits == 0x38 &&
            range.full_tensor<dt::f8e5m2>()[2].bits == 0x3c;
    if (job.rank() == 0)
        std::printf("types right %d\n", right);
}

static void generators(const dt::context &job)
{
    dt::generator gen(1234);
    dt::tensor t = dt::randn(job.spec("world", "S(0)", DTENSOR_F32, { 3, 3 }),
                             gen);
    dt::tensor many = dt::ones(job.spec("world", "S(1)", DTENSOR_F32,
                                        { 8, 8 }));
    int last = job.world_size() - 1;
    int held = static_cast<int>(many.full_tensor_at<float>(last).size());
    int all = job.rank() == last && job.mesh().index() == last ? held : -held;

    job.mesh().allreduce(&all, &held, 1);
    float first = t.full_tensor<float>()[0];
    if (job.rank() == 0)
        std::printf("all %d on the last rank, first of the tutorial %g\n",
                    held, first);
}

static void operators(const dt::context &job)
{
    dt::spec spec = job.spec("world", "S(0)", DTENSOR_F64, { 4, 4 });
    dt::tensor x = dt::full(spec, 0.5), one = dt::ones(spec);
    dt::tape tape(job);

    tape.watch(x.get());
    tape.begin();
    dt::tensor y = dt::matmul(x * x + one, one - x);
    dt::tensor loss = dt::op("sum", { &y }, "");
    tape.end();
    tape.backward(loss);
    double value = loss.full_tensor<double>()[0];
    dt::tensor means = dt::op("mean", { &y }, "dim=0,keep=1");
    if (job.rank() == 0)
        std::printf("loss %g, dims %d, gradient %d\n", value,
                    means.spec().ndim, tape.grad(x) != nullptr);
    dtensor_op_args twice = dtensor_op_args();
    twice.value = -2;
    dt::tensor step = dt::op("scale", { tape.grad(x) }, twice);
    dt::op_into("add_", { &x, &step }, x);
    dt::op_into("clamp", { &step }, step, "low=-9,high=-1");
    value = x.full_tensor<double>()[0] - step.full_tensor<double>()[0];
    if (job.rank() == 0)
        std::printf("after a step %g\n", value);
    tape.clear();
}

static void collectives(const dt::context &job)
{
    dt::mesh world = job.mesh();
    std::size_t n = static_cast<std::size_t>(world.size());
    std::vector<int> ranks(n), twice(n), listed(n), mine(1, job.rank());
    std::vector<std::size_t> ones(n, 1);
    int last = job.rank(), most = -1, share = 0;

    world.allgather(mine.data(), ranks.data(), 1);
    world.all_to_all(ranks.data(), twice.data(), 1);
    world.all_to_allv(ranks.data(), ones.data(), listed.data(), ones.data());
    world.reduce_scatter(ranks.data(), &share, 1, DTENSOR_MAX);
    world.reduce(0, &last, &most, 1, DTENSOR_MAX);
    world.broadcast(world.size() - 1, &last, 1);
    world["world"].barrier();
    bool right = share == job.rank() && last == world.size() - 1 &&
                 (job.rank() != 0 || most == world.size() - 1);
    for (std::size_t i = 0; i < n; i++)
        right = right && ranks[i] == static_cast<int>(i) &&
                twice[i] == job.rank() && listed[i] == twice[i];
    int wrong = !right, all = 0;
    world.allreduce(&wrong, &all, 1);
    if (job.rank() == 0)
        std::printf("collectives wrong on %d\n", all);
}

/* Rank r has r + 1 numbers r.  They are gathered, and scattered again. */
static void lists(const dt::context &job)
{
    const dt::mesh world = job.mesh();
    const int me = job.rank(), n = world.size(), last = n - 1;
    const std::size_t ranks = static_cast<std::size_t>(n);
    const std::size_t share = static_cast<std::size_t>(me) + 1;
    std::vector<std::size_t> counts(ranks);
    std::vector<int> mine(share, me), all(ranks * (ranks + 1) / 2), sums(share);
    std::vector<int> each(ranks), back(share, -1);
    int *const there = me == last ? all.data() : nullptr, one = -1;

    for (std::size_t i = 0; i < ranks; i++)
        counts[i] = i + 1;
    world.allgatherv(mine.data(), all.data(), counts.data());
    bool right = all.front() == 0 && all.back() == last;
    world.reduce_scatterv(all.data(), sums.data(), counts.data());
    right = right && sums[0] == n * me && sums.back() == n * me;
    world.gatherv(last, mine.data(), there, counts.data());
    world.scatterv(last, there, back.data(), counts.data());
    world.gather(0, &me, me == 0 ? each.data() : nullptr, 1);
    if (me == 0)
        world.scatter(0, each.data(), &one, 1);
    else
        world.scatter(0, nullptr, &one, 1);
    int wrong = !right || back != mine || one != me, total = 0;
    if (me == 0)
        world.reduce(0, &wrong, &total, 1);
    else
        world.reduce(0, &wrong, nullptr, 1);
    if (me == 0)
        std::printf("lists wrong on %d\n", total);
}

/* On a grid of one row each rank has some columns, and sends the first of its
 * elements to the next rank.
 */
static void messages(const dt::context &job)
{
    const int n = job.world_size(), me = job.rank();
    dt::mesh grid = job.mesh({ 1, n }, "row,col"), row = grid["col"];
    dt::spec spec(row, "S(0)", DTENSOR_F64, { 8 });
    dt::tensor t = dt::arange(spec);
    const dt::spec::part part = spec.local(me);
    double first = t.local<double>()[0], got = -1;

    job.group([&] {
        row.send((me + 1) % n, &first, 1);
        row.recv((me + n - 1) % n, &got, 1);
    });
    int zero = me;
    dt::request started = job.start([&] { row.broadcast(0, &zero, 1); });
    while (!started.test())
        continue;
    started.wait();
    int wrong = zero != 0 || part.shape != std::vector<std::int64_t>{ 8 / n } ||
                static_cast<double>(part.offset[0]) != first ||
                static_cast<int>(first - got + 8) % 8 != 8 / n % 8;
    int all = 0;

    row.allreduce(&wrong, &all, 1);
    if (me == 0)
        std::printf("messages wrong on %d\n", all);
}

/* said WORDS: rank 0 prints the error of what fails. */
template <class F> static void said(const dt::context &job, F fails)
{
    try {
        fails();
        std::printf("no error\n");
    } catch (const dt::error &failure) {
        if (job.should_report(failure))
            std::printf("%d: %s\n", failure.code(), failure.what());
    }
}

static void tour(const dt::context &job)
{
    dt::tensor numbers = dt::rand(job.spec("world", "R", DTENSOR_F32, { 4 }));

    tensors(job);
    types(job);
    generators(job);
    operators(job);
    collectives(job);
    lists(job);
    messages(job);
    said(job, [&] { numbers.redistribute("S(4)"); });
    said(job, [&] { numbers.local<double>(); });
    said(job, [&] { job.mesh("nowhere"); });
    job.mesh("thrown");
}

/* With an argument, of a cluster file that is not there. */
int main(int argc, char *argv[])
{
    return dt::run(tour, argc > 1 ? argv[1] : nullptr) == 1 ? 0 : 1;
}

! tour.f90 - what dtensor.f90 has, each function once
!
! Prints the same on any number of ranks, from rank 0.
program tour
    use dtensor
    implicit none
    type(c_ptr) :: ctx = c_null_ptr
    type(dtensor_error) :: err

    call must(dtensor_init('', ctx, err))
    call layout()
    call tensors()
    call operators()
    call generators()
    call collectives()
    call lists()
    call messages()
    call errors()
    call dtensor_fini(ctx)

contains

    subroutine must(rc)
        integer(c_int), intent(in) :: rc

        if (rc == 0) return
        print '(a)', dtensor_error_text(err)
        error stop 1
    end subroutine

    ! The types have the sizes that those of C have; languages.sh compares them.
    subroutine layout()
        type(dtensor_spec) :: spec
        type(dtensor_op_args) :: args

        if (dtensor_rank(ctx) == 0) print '(a, 4(1x, i0))', 'sizes', &
            c_sizeof(err), c_sizeof(spec%placement(1)), c_sizeof(spec), &
            c_sizeof(args)
    end subroutine

    subroutine tensors()
        type(dtensor_spec) :: spec, columns_spec
        type(c_ptr) :: rows = c_null_ptr, columns = c_null_ptr
        type(c_ptr) :: again = c_null_ptr, copy = c_null_ptr
        real(c_float), pointer :: mine(:)
        real(c_float) :: all(8, 8), total(1)
        type(c_ptr) :: world = c_null_ptr
        integer(c_int) :: same

        call must(dtensor_spec_init(spec, ctx, 'world', 'S(0)', DTENSOR_F32, &
            [8_c_int64_t, 8_c_int64_t], err))
        call must(dtensor_spec_init(columns_spec, ctx, 'world', 'S(1)', &
            DTENSOR_F32, [8_c_int64_t, 8_c_int64_t], err))
        call must(dtensor_arange(spec, rows, err))
        call must(dtensor_redistribute(rows, 'S(1)', columns, err))
        call c_f_pointer(dtensor_to_local(columns), mine, &
            [dtensor_local_bytes(columns) / 4])
        call must(dtensor_mesh_find(ctx, 'world', world, err))
        call must(dtensor_allreduce(world, [sum(mine)], total, 1_c_size_t, &
            DTENSOR_F32, DTENSOR_SUM, err))
        call must(dtensor_full_tensor(columns, all, c_sizeof(all), err))
        call must(dtensor_equal(rows, columns, same, err))
        if (dtensor_rank(ctx) == 0) print '(a, 3(1x, i0))', 'sum', &
            nint(total(1)), nint(all(3, 2)), same
        call must(dtensor_save(rows, 'tour.npy', err))
        call must(dtensor_load(columns_spec, 'tour.npy', again, err))
        call must(dtensor_equal(again, columns, same, err))
        if (dtensor_rank(ctx) == 0) print '(a, 1x, i0)', 'loaded', same
        call must(dtensor_fill_value(again, -1.0_c_double, err))
        call must(dtensor_redistribute_into(rows, again, err))
        call must(dtensor_redistribute_to(again, spec, copy, err))
        call must(dtensor_equal(copy, rows, same, err))
        if (dtensor_rank(ctx) == 0) print '(a, 1x, i0)', 'copied', same
        call dtensor_destroy(copy)
        call dtensor_destroy(again)
        call dtensor_destroy(columns)
        call dtensor_destroy(rows)
    end subroutine

    ! With x of 0.5 an element of the product is 4 * (x * x + 1) * x.
    subroutine operators()
        type(dtensor_spec) :: spec
        type(c_ptr) :: t(10)
        real(c_double) :: whole(4, 4), shares(4, 4)
        integer :: i

        t = c_null_ptr
        call must(dtensor_spec_init(spec, ctx, 'world', 'S(0)', DTENSOR_F64, &
            [4_c_int64_t, 4_c_int64_t], err))
        call must(dtensor_full(spec, 0.5_c_double, t(1), err))
        call must(dtensor_ones(spec, t(2), err))
        call must(dtensor_mul(t(1), t(1), t(3), err))
        call must(dtensor_add(t(3), t(2), t(4), err))
        call must(dtensor_scale(t(2), 0.5_c_double, t(5), err))
        call must(dtensor_matmul(t(4), t(5), t(6), err))
        call must(dtensor_softmax(t(6), 1_c_int, t(7), err))
        call must(dtensor_full_tensor(t(6), whole, c_sizeof(whole), err))
        call must(dtensor_full_tensor(t(7), shares, c_sizeof(shares), err))
        if (dtensor_rank(ctx) == 0) print '(a, 2(1x, f5.2))', 'product', &
            whole(1, 1), shares(4, 4)
        call must(dtensor_op('sum', [t(6)], 'dim=0,keep=1', t(10), err))
        call must(dtensor_full_tensor(t(10), whole(:, 1), 32_c_size_t, err))
        call must(dtensor_op_into('add_', [t(2), t(5)], '', t(2), err))
        call must(dtensor_full_tensor(t(2), shares, c_sizeof(shares), err))
        if (dtensor_rank(ctx) == 0) print '(a, 2(1x, f5.2), 1x, l1)', 'any', &
            whole(4, 1), shares(4, 4), dtensor_op('sum', [t(6)], 'dim=x', &
            t(10), err) == DTENSOR_EINVAL
        call must(dtensor_rand(spec, c_null_ptr, t(8), err))
        call must(dtensor_randn(spec, c_null_ptr, t(9), err))
        call must(dtensor_full_tensor(t(8), whole, c_sizeof(whole), err))
        if (dtensor_rank(ctx) == 0) print '(a, 1x, l1)', 'random', &
            all(whole >= 0 .and. whole < 1) .and. minval(whole) < maxval(whole)
        do i = 1, size(t)
            call dtensor_destroy(t(i))
        end do
        call must(dtensor_zeros(spec, t(1), err))
        call must(dtensor_empty(spec, t(2), err))
        whole = 7
        call must(dtensor_distribute(spec, whole, 0_c_int, t(3), err))
        call must(dtensor_from_local(spec, whole, &
            dtensor_local_bytes(t(3)), t(4), err))
        call must(dtensor_full_tensor(t(4), shares, c_sizeof(shares), err))
        if (dtensor_rank(ctx) == 0) print '(a, 1x, l1)', 'given', &
            minval(shares) > 6.9 .and. maxval(shares) < 7.1
        do i = 1, 4
            call dtensor_destroy(t(i))
        end do
    end subroutine

    ! The numbers that dtensor-tutorial(7) shows, gathered on the last rank.
    subroutine generators()
        type(dtensor_spec) :: spec
        type(c_ptr) :: gen = c_null_ptr, t = c_null_ptr, world = c_null_ptr
        real(c_float) :: whole(3, 3)
        integer(c_int) :: last, right(1), all(1)

        last = dtensor_world_size(ctx) - 1
        call must(dtensor_spec_init(spec, ctx, 'world', 'S(0)', DTENSOR_F32, &
            [3_c_int64_t, 3_c_int64_t], err))
        call must(dtensor_generator_create(1234_c_int64_t, gen, err))
        call must(dtensor_randn(spec, gen, t, err))
        whole = 0
        if (dtensor_rank(ctx) == last) then
            call must(dtensor_full_tensor_at(t, last, whole, &
                c_sizeof(whole), err))
        else
            call must(dtensor_full_tensor_at(t, last, size=0_c_size_t, &
                err=err))
        end if
        right = merge(1, 0, abs(whole(1, 3) - 0.103622) < 1e-6)
        call must(dtensor_mesh_find(ctx, 'world', world, err))
        call must(dtensor_allreduce(world, right, all, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_SUM, err))
        if (dtensor_rank(ctx) == 0) print '(a, 1x, l1)', 'as in the tutorial', &
            all(1) == 1
        call must(dtensor_print(t, err))
        call dtensor_destroy(t)
        call dtensor_generator_destroy(gen)
    end subroutine

    subroutine collectives()
        type(c_ptr) :: world = c_null_ptr
        integer(c_int) :: me, n, most(1), last(1), share(1), wrong(1), total(1)
        integer(c_int), allocatable :: ranks(:), mine(:), listed(:)
        integer(c_size_t), allocatable :: ones(:)

        call must(dtensor_mesh_find(ctx, 'world', world, err))
        me = dtensor_rank(ctx)
        n = dtensor_mesh_size(world)
        allocate (ranks(0:n - 1), mine(0:n - 1), listed(0:n - 1))
        allocate (ones(0:n - 1), source=1_c_size_t)
        most = me
        last = me
        call must(dtensor_allgather(world, [me], ranks, 1_c_size_t, &
            DTENSOR_I32, err))
        call must(dtensor_all_to_all(world, ranks, mine, 1_c_size_t, &
            DTENSOR_I32, err))
        call must(dtensor_all_to_allv(world, ranks, ones, listed, ones, &
            DTENSOR_I32, err))
        call must(dtensor_reduce_scatter(world, ranks, share, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_MAX, err))
        call must(dtensor_reduce(world, 0_c_int, [me], most, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_MAX, err))
        call must(dtensor_broadcast(world, n - 1, last, 1_c_size_t, &
            DTENSOR_I32, err))
        call must(dtensor_barrier(world, err))
        wrong = merge(0, 1, all(mine == me) .and. all(listed == me) .and. &
            ranks(me) == me .and. &
            share(1) == me .and. last(1) == n - 1 .and. &
            (me /= 0 .or. most(1) == n - 1))
        call must(dtensor_allreduce(world, wrong, total, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_SUM, err))
        if (me == 0) print '(a, 1x, i0, 1x, l1)', 'collectives wrong on', &
            total, n == dtensor_world_size(ctx) .and. &
            dtensor_mesh_ndim(world) == 1 .and. dtensor_local_rank(ctx) == me
    end subroutine

    ! Rank r has r + 1 numbers r.  They are gathered, and scattered again.
    subroutine lists()
        type(c_ptr) :: world = c_null_ptr
        integer(c_int) :: me, n, last, one(1), wrong(1), total(1), i
        integer(c_int), allocatable :: mine(:), all(:), sums(:), back(:), each(:)
        integer(c_size_t), allocatable :: counts(:)

        call must(dtensor_mesh_find(ctx, 'world', world, err))
        n = dtensor_mesh_dim_size(world, 0_c_int)
        me = dtensor_mesh_rank(world, dtensor_rank(ctx))
        last = n - 1
        allocate (mine(me + 1), back(me + 1), source=me)
        allocate (all(n * (n + 1) / 2), sums(me + 1), each(n), counts(n))
        counts(:) = [(int(i, c_size_t), i = 1, n)]
        call must(dtensor_allgatherv(world, mine, all, counts, DTENSOR_I32, &
            err))
        call must(dtensor_reduce_scatterv(world, all, sums, counts, &
            DTENSOR_I32, DTENSOR_SUM, err))
        all = -1
        back = -1
        call must(dtensor_gatherv(world, last, mine, all, counts, &
            DTENSOR_I32, err))
        call must(dtensor_scatterv(world, last, all, back, counts, &
            DTENSOR_I32, err))
        call must(dtensor_gather(world, 0_c_int, [me], each, 1_c_size_t, &
            DTENSOR_I32, err))
        call must(dtensor_scatter(world, 0_c_int, each, one, 1_c_size_t, &
            DTENSOR_I32, err))
        wrong = merge(0, 1, count(sums == n * me) == me + 1 .and. &
            count(back == me) == me + 1 .and. &
            one(1) == me)
        call must(dtensor_allreduce(world, wrong, total, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_SUM, err))
        if (me == 0) print '(a, 1x, i0)', 'lists wrong on', total
    end subroutine

    ! On a grid of one row each rank has some columns, and sends the first of
    ! its elements to the next rank.
    subroutine messages()
        type(c_ptr) :: grid = c_null_ptr, row = c_null_ptr, t = c_null_ptr
        type(c_ptr) :: copy = c_null_ptr, reversed = c_null_ptr
        type(c_ptr) :: request = c_null_ptr
        type(dtensor_spec) :: spec
        integer(c_int) :: me, n, at(2), last(1), wrong(1), total(1), done, i
        integer(c_int), asynchronous :: zero(1)
        integer(c_int64_t) :: part(2), first(2)
        real(c_double), pointer :: mine(:)
        real(c_double) :: got(1)

        me = dtensor_rank(ctx)
        n = dtensor_world_size(ctx)
        zero = me
        call must(dtensor_mesh_create(ctx, [1_c_int, n], 'row,col', grid, err))
        call must(dtensor_mesh_create(ctx, [n], 'back', reversed, err, &
            [(n - 1 - i, i = 0, n - 1)]))
        call must(dtensor_mesh_slice(grid, 'col', row, err))
        call must(dtensor_spec_on(spec, row, 'S(0)', DTENSOR_F64, &
            [8_c_int64_t], err))
        call must(dtensor_arange(spec, t, err))
        call must(dtensor_clone(t, copy, err))
        call dtensor_spec_local(spec, me, part, first)
        call c_f_pointer(dtensor_to_local(copy), mine, [part(1)])
        call must(dtensor_group_begin(ctx, err))
        call must(dtensor_send(row, modulo(me + 1, n), mine, 1_c_size_t, &
            DTENSOR_F64, err))
        call must(dtensor_recv(row, modulo(me - 1, n), got, 1_c_size_t, &
            DTENSOR_F64, err))
        call must(dtensor_group_end(ctx, err))
        call must(dtensor_group_begin(ctx, err))
        call must(dtensor_broadcast(row, 0_c_int, zero, 1_c_size_t, &
            DTENSOR_I32, err))
        call must(dtensor_group_start(ctx, request, err))
        done = 0
        do while (done == 0)
            call must(dtensor_test(request, done, err))
        end do
        call must(dtensor_wait(request, err))
        last = me
        call must(dtensor_broadcast(reversed, 0_c_int, last, 1_c_size_t, &
            DTENSOR_I32, err))
        wrong = merge(0, 1, dtensor_mesh_coord(grid, me, at) == 1 .and. &
            at(1) == 0 .and. at(2) == me .and. last(1) == n - 1 .and. &
            zero(1) == 0 .and. &
            first(1) == nint(mine(1)) .and. &
            modulo(nint(mine(1) - got(1)), 8) == modulo(8 / n, 8))
        call must(dtensor_allreduce(grid, wrong, total, 1_c_size_t, &
            DTENSOR_I32, DTENSOR_SUM, err))
        if (me == 0) print '(a, 1x, i0)', 'messages wrong on', total
        call dtensor_destroy(copy)
        call dtensor_destroy(t)
    end subroutine

    subroutine errors()
        type(c_ptr) :: world = c_null_ptr

        if (dtensor_mesh_find(ctx, 'nowhere', world, err) == 0) return
        if (dtensor_should_report(ctx, err) /= 0) print '(i0, 2a)', err%code, &
            ': ', dtensor_error_text(err)
    end subroutine
end program

! dtensor.f90 - libdtensor for Fortran 2018: the calls that most programs need
!
! Compile this file with your program, by your compiler:
!
!   gfortran $(pkg-config --variable=includedir dtensor)/dtensor.f90 turn.f90 \
!       $(pkg-config --libs dtensor)
!
! Names, arguments and results are those of dtensor.h, whose pages say what each
! function does and which calls are collective.  A context, mesh or tensor is a
! type(c_ptr), a text is a character(*), arrays of elements have any type; one
! number is passed as an array, as [x].  A result that is not 0 is an error, which
! dtensor_error_text(err) explains; the other results are untouched then.
!
! The elements of a tensor are row-major, those of a Fortran array column-major:
! a tensor of shape [m, n] is an array a(n, m).  Dimensions and ranks count
! from 0.
module dtensor
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: output_unit
    implicit none
    private :: c_text, op_args_read, output_unit
    integer, parameter :: DTENSOR_MAX_DIMS = 8

    enum, bind(C) ! errors
        enumerator :: DTENSOR_EINVAL = -1, DTENSOR_ENOMEM = -2, &
            DTENSOR_ESYS = -3, DTENSOR_ECONF = -4, DTENSOR_ENODEV = -5, &
            DTENSOR_EPEER = -6, DTENSOR_ETIME = -7, DTENSOR_EAGAIN = -8, &
            DTENSOR_EMISMATCH = -9, DTENSOR_EABORT = -10
    end enum

    enum, bind(C) ! types of elements
        enumerator :: DTENSOR_F32 = 0, DTENSOR_F64, DTENSOR_F16, DTENSOR_BF16, &
            DTENSOR_I8, DTENSOR_U8, DTENSOR_I32, DTENSOR_I64, DTENSOR_I16, &
            DTENSOR_U16, DTENSOR_U32, DTENSOR_U64, DTENSOR_BOOL, DTENSOR_C64, &
            DTENSOR_C128, DTENSOR_F8E4M3, DTENSOR_F8E5M2
    end enum

    enum, bind(C) ! reductions
        enumerator :: DTENSOR_SUM = 0, DTENSOR_AVG, DTENSOR_PROD, DTENSOR_MIN, &
            DTENSOR_MAX, DTENSOR_BAND, DTENSOR_BOR, DTENSOR_BXOR
    end enum

    type, bind(C) :: dtensor_error
        integer(c_int) :: code, sys_errno, rank
        character(kind=c_char) :: text(500)
    end type

    type, bind(C) :: dtensor_placement
        integer(c_int) :: kind, dim, op
        integer(c_int64_t) :: block
        type(c_ptr) :: sizes
    end type

    type, bind(C) :: dtensor_spec
        type(c_ptr) :: mesh
        integer(c_int) :: dtype, ndim
        integer(c_int64_t) :: shape(DTENSOR_MAX_DIMS)
        type(dtensor_placement) :: placement(DTENSOR_MAX_DIMS)
    end type

    type, bind(C) :: dtensor_op_args
        integer(c_int) :: ndims, dim(DTENSOR_MAX_DIMS), keep, ndim
        integer(c_int64_t) :: shape(DTENSOR_MAX_DIMS), count, start, end, step
        real(c_double) :: p, value
        integer(c_int) :: causal
        real(c_double) :: low, high, eps
        integer(c_int) :: dtype, reduction
    end type

    interface ! what takes no text is the function of C itself
        subroutine dtensor_fini(ctx) bind(C, name="dtensor_fini")
            import :: c_ptr
            type(c_ptr), value, intent(in) :: ctx
        end subroutine
        integer(c_int) function dtensor_rank(ctx) bind(C, name="dtensor_rank")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: ctx
        end function
        integer(c_int) function dtensor_world_size(ctx) &
            bind(C, name="dtensor_world_size")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: ctx
        end function
        integer(c_int) function dtensor_local_rank(ctx) &
            bind(C, name="dtensor_local_rank")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: ctx
        end function
        integer(c_int) function dtensor_should_report(ctx, err) &
            bind(C, name="dtensor_should_report")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: ctx
            type(dtensor_error), intent(in) :: err
        end function
        integer(c_int) function dtensor_mesh_size(mesh) &
            bind(C, name="dtensor_mesh_size")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: mesh
        end function
        integer(c_int) function dtensor_mesh_ndim(mesh) &
            bind(C, name="dtensor_mesh_ndim")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: mesh
        end function
        integer(c_int) function dtensor_mesh_coord(mesh, rank, coord) &
            bind(C, name="dtensor_mesh_coord")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: rank
            integer(c_int), intent(inout) :: coord(*)
        end function
        integer(c_int) function dtensor_mesh_dim_size(mesh, dim) &
            bind(C, name="dtensor_mesh_dim_size")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: dim
        end function
        integer(c_int) function dtensor_mesh_rank(mesh, i) &
            bind(C, name="dtensor_mesh_rank")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: i
        end function
        subroutine dtensor_spec_local(spec, rank, local_shape, offset) &
            bind(C, name="dtensor_spec_local")
            import :: c_int, c_int64_t, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            integer(c_int), value, intent(in) :: rank
            integer(c_int64_t), intent(inout) :: local_shape(*), offset(*)
        end subroutine
        integer(c_int) function dtensor_empty(spec, t, err) &
            bind(C, name="dtensor_empty")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_zeros(spec, t, err) &
            bind(C, name="dtensor_zeros")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_ones(spec, t, err) &
            bind(C, name="dtensor_ones")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_full(spec, value, t, err) &
            bind(C, name="dtensor_full")
            import :: c_double, c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            real(c_double), value, intent(in) :: value
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_arange(spec, t, err) &
            bind(C, name="dtensor_arange")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_clone(t, copy, err) &
            bind(C, name="dtensor_clone")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: t
            type(c_ptr), intent(inout) :: copy
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_rand(spec, gen, t, err) &
            bind(C, name="dtensor_rand")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), value, intent(in) :: gen
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_randn(spec, gen, t, err) &
            bind(C, name="dtensor_randn")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), value, intent(in) :: gen
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_generator_create(seed, gen, err) &
            bind(C, name="dtensor_generator_create")
            import :: c_int, c_int64_t, c_ptr, dtensor_error
            integer(c_int64_t), value, intent(in) :: seed
            type(c_ptr), intent(inout) :: gen
            type(dtensor_error), intent(inout) :: err
        end function
        subroutine dtensor_generator_destroy(gen) &
            bind(C, name="dtensor_generator_destroy")
            import :: c_ptr
            type(c_ptr), value, intent(in) :: gen
        end subroutine
        integer(c_int) function dtensor_distribute(spec, all, root, t, err) &
            bind(C, name="dtensor_distribute")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(*), dimension(*), intent(in) :: all
            integer(c_int), value, intent(in) :: root
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_from_local(spec, local, size, t, err) &
            bind(C, name="dtensor_from_local")
            import :: c_int, c_ptr, c_size_t, dtensor_error, dtensor_spec
            type(dtensor_spec), intent(in) :: spec
            type(*), dimension(*), intent(in) :: local
            integer(c_size_t), value, intent(in) :: size
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        function dtensor_to_local(t) &
            result(rc) bind(C, name="dtensor_to_local")
            import :: c_ptr
            type(c_ptr), value, intent(in) :: t
            type(c_ptr) :: rc
        end function
        function dtensor_local_bytes(t) &
            result(rc) bind(C, name="dtensor_local_bytes")
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: t
            integer(c_size_t) :: rc
        end function
        integer(c_int) function dtensor_full_tensor(t, all, size, err) &
            bind(C, name="dtensor_full_tensor")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: t
            type(*), dimension(*), intent(inout) :: all
            integer(c_size_t), value, intent(in) :: size
            type(dtensor_error), intent(inout) :: err
        end function
        ! Only position `root` of the mesh gives `all`.
        integer(c_int) function dtensor_full_tensor_at(t, root, all, size, &
            err) bind(C, name="dtensor_full_tensor_at")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: t
            integer(c_int), value, intent(in) :: root
            type(*), dimension(*), intent(inout), optional :: all
            integer(c_size_t), value, intent(in) :: size
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_redistribute_to(t, spec, to, err) &
            bind(C, name="dtensor_redistribute_to")
            import :: c_int, c_ptr, dtensor_error, dtensor_spec
            type(c_ptr), value, intent(in) :: t
            type(dtensor_spec), intent(in) :: spec
            type(c_ptr), intent(inout) :: to
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_redistribute_into(src, dst, err) &
            bind(C, name="dtensor_redistribute_into")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: src, dst
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_fill_value(t, value, err) &
            bind(C, name="dtensor_fill_value")
            import :: c_int, c_double, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: t
            real(c_double), value, intent(in) :: value
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_equal(a, b, same, err) &
            bind(C, name="dtensor_equal")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a, b
            integer(c_int), intent(inout) :: same
            type(dtensor_error), intent(inout) :: err
        end function
        subroutine dtensor_destroy(t) bind(C, name="dtensor_destroy")
            import :: c_ptr
            type(c_ptr), value, intent(in) :: t
        end subroutine
        integer(c_int) function dtensor_matmul(a, b, t, err) &
            bind(C, name="dtensor_matmul")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a, b
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_add(a, b, t, err) &
            bind(C, name="dtensor_add")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a, b
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_mul(a, b, t, err) &
            bind(C, name="dtensor_mul")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a, b
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_scale(a, factor, t, err) &
            bind(C, name="dtensor_scale")
            import :: c_double, c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a
            real(c_double), value, intent(in) :: factor
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_softmax(a, dim, t, err) &
            bind(C, name="dtensor_softmax")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: a
            integer(c_int), value, intent(in) :: dim
            type(c_ptr), intent(inout) :: t
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_allreduce(mesh, in, out, count, &
            dtype, op, err) bind(C, name="dtensor_allreduce")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            integer(c_int), value, intent(in) :: dtype, op
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_reduce(mesh, root, in, out, count, &
            dtype, op, err) bind(C, name="dtensor_reduce")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype, op
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_broadcast(mesh, root, buf, count, &
            dtype, err) bind(C, name="dtensor_broadcast")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype
            type(*), dimension(*), intent(inout), asynchronous :: buf
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_allgather(mesh, in, out, count, &
            dtype, err) bind(C, name="dtensor_allgather")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            integer(c_int), value, intent(in) :: dtype
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_reduce_scatter(mesh, in, out, count, &
            dtype, op, err) bind(C, name="dtensor_reduce_scatter")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            integer(c_int), value, intent(in) :: dtype, op
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_all_to_all(mesh, in, out, count, &
            dtype, err) bind(C, name="dtensor_all_to_all")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            integer(c_int), value, intent(in) :: dtype
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_all_to_allv(mesh, in, in_counts, &
            out, out_counts, dtype, err) bind(C, name="dtensor_all_to_allv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            integer(c_size_t), dimension(*), intent(in) :: in_counts
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), dimension(*), intent(in) :: out_counts
            integer(c_int), value, intent(in) :: dtype
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_gather(mesh, root, in, out, count, &
            dtype, err) bind(C, name="dtensor_gather")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_scatter(mesh, root, in, out, count, &
            dtype, err) bind(C, name="dtensor_scatter")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_allgatherv(mesh, in, out, counts, &
            dtype, err) bind(C, name="dtensor_allgatherv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), dimension(*), intent(in) :: counts
            integer(c_int), value, intent(in) :: dtype
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_reduce_scatterv(mesh, in, out, &
            counts, dtype, op, err) bind(C, name="dtensor_reduce_scatterv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), dimension(*), intent(in) :: counts
            integer(c_int), value, intent(in) :: dtype, op
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_gatherv(mesh, root, in, out, counts, &
            dtype, err) bind(C, name="dtensor_gatherv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), dimension(*), intent(in) :: counts
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_scatterv(mesh, root, in, out, counts, &
            dtype, err) bind(C, name="dtensor_scatterv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: root, dtype
            type(*), dimension(*), intent(in), asynchronous :: in
            type(*), dimension(*), intent(inout), asynchronous :: out
            integer(c_size_t), dimension(*), intent(in) :: counts
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_barrier(mesh, err) &
            bind(C, name="dtensor_barrier")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_send(mesh, to, buf, count, dtype, &
            err) bind(C, name="dtensor_send")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: to, dtype
            type(*), dimension(*), intent(in), asynchronous :: buf
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_recv(mesh, from, buf, count, dtype, &
            err) bind(C, name="dtensor_recv")
            import :: c_int, c_ptr, c_size_t, dtensor_error
            type(c_ptr), value, intent(in) :: mesh
            integer(c_int), value, intent(in) :: from, dtype
            type(*), dimension(*), intent(inout), asynchronous :: buf
            integer(c_size_t), value, intent(in) :: count
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_group_begin(ctx, err) &
            bind(C, name="dtensor_group_begin")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: ctx
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_group_end(ctx, err) &
            bind(C, name="dtensor_group_end")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: ctx
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_group_start(ctx, request, err) &
            bind(C, name="dtensor_group_start")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: ctx
            type(c_ptr), intent(inout) :: request
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_test(request, done, err) &
            bind(C, name="dtensor_test")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: request
            integer(c_int), intent(inout) :: done
            type(dtensor_error), intent(inout) :: err
        end function
        integer(c_int) function dtensor_wait(request, err) &
            bind(C, name="dtensor_wait")
            import :: c_int, c_ptr, dtensor_error
            type(c_ptr), value, intent(in) :: request
            type(dtensor_error), intent(inout) :: err
        end function
    end interface

contains

    ! The text of an error.
    function dtensor_error_text(err) result(text)
        type(dtensor_error), intent(in) :: err
        character(:), allocatable :: text
        integer :: i

        text = ''
        do i = 1, size(err%text)
            if (err%text(i) == c_null_char) exit
            text = text // err%text(i)
        end do
    end function

    ! Join the job; without a path by DTN_CLUSTER, or as the launcher says.
    integer(c_int) function dtensor_init(path, ctx, err) result(rc)
        character(*), intent(in) :: path
        type(c_ptr), intent(inout) :: ctx
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_init(path, ctx, err) &
                bind(C, name="dtensor_init")
                import :: c_ptr, c_int, dtensor_error
                type(c_ptr), value, intent(in) :: path
                type(c_ptr), intent(inout) :: ctx
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        character(kind=c_char), target :: name(len_trim(path) + 1)

        name = c_text(path)
        rc = c_init(merge(c_null_ptr, c_loc(name), len_trim(path) == 0), ctx, &
            err)
    end function

    integer(c_int) function dtensor_mesh_find(ctx, name, mesh, err) result(rc)
        type(c_ptr), intent(in) :: ctx
        character(*), intent(in) :: name
        type(c_ptr), intent(inout) :: mesh
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_find(ctx, name, mesh, err) &
                bind(C, name="dtensor_mesh_find")
                import :: c_ptr, c_int, c_char, dtensor_error
                type(c_ptr), value, intent(in) :: ctx
                character(kind=c_char), intent(in) :: name(*)
                type(c_ptr), intent(inout) :: mesh
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_find(ctx, c_text(name), mesh, err)
    end function

    ! Ranks on a grid, of as many dimensions as `sizes` has; without `ranks` they
    ! are 0, 1, 2, ...
    integer(c_int) function dtensor_mesh_create(ctx, sizes, names, mesh, err, &
        ranks) result(rc)
        type(c_ptr), intent(in) :: ctx
        integer(c_int), intent(in) :: sizes(:)
        character(*), intent(in) :: names
        type(c_ptr), intent(inout) :: mesh
        type(dtensor_error), intent(inout) :: err
        integer(c_int), intent(in), optional :: ranks(:)
        interface
            integer(c_int) function c_create(ctx, ndim, sizes, names, ranks, &
                mesh, err) bind(C, name="dtensor_mesh_create")
                import :: c_ptr, c_int, c_char, dtensor_error
                type(c_ptr), value, intent(in) :: ctx
                integer(c_int), value, intent(in) :: ndim
                integer(c_int), intent(in) :: sizes(*)
                character(kind=c_char), intent(in) :: names(*)
                integer(c_int), intent(in), optional :: ranks(*)
                type(c_ptr), intent(inout) :: mesh
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_create(ctx, int(size(sizes), c_int), sizes, c_text(names), &
            ranks, mesh, err)
    end function

    integer(c_int) function dtensor_mesh_slice(mesh, names, slice, err) &
        result(rc)
        type(c_ptr), intent(in) :: mesh
        character(*), intent(in) :: names
        type(c_ptr), intent(inout) :: slice
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_slice(mesh, names, slice, err) &
                bind(C, name="dtensor_mesh_slice")
                import :: c_ptr, c_int, c_char, dtensor_error
                type(c_ptr), value, intent(in) :: mesh
                character(kind=c_char), intent(in) :: names(*)
                type(c_ptr), intent(inout) :: slice
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_slice(mesh, c_text(names), slice, err)
    end function

    ! A spec on a mesh; its number of dimensions is the size of `shape`.
    integer(c_int) function dtensor_spec_on(spec, mesh, placements, dtype, &
        shape, err) result(rc)
        type(dtensor_spec), intent(inout) :: spec
        type(c_ptr), intent(in) :: mesh
        character(*), intent(in) :: placements
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(in) :: shape(:)
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_spec_on(spec, mesh, placements, dtype, &
                ndim, shape, err) bind(C, name="dtensor_spec_on")
                import :: c_ptr, c_int, c_int64_t, c_char, dtensor_error, &
                    dtensor_spec
                type(dtensor_spec), intent(inout) :: spec
                type(c_ptr), value, intent(in) :: mesh
                character(kind=c_char), intent(in) :: placements(*)
                integer(c_int), value, intent(in) :: dtype, ndim
                integer(c_int64_t), intent(in) :: shape(*)
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_spec_on(spec, mesh, c_text(placements), dtype, &
            int(size(shape), c_int), shape, err)
    end function

    ! The same on the mesh of that name.
    integer(c_int) function dtensor_spec_init(spec, ctx, mesh, placements, &
        dtype, shape, err) result(rc)
        type(dtensor_spec), intent(inout) :: spec
        type(c_ptr), intent(in) :: ctx
        character(*), intent(in) :: mesh, placements
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(in) :: shape(:)
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_spec(spec, ctx, mesh, placements, &
                dtype, ndim, shape, err) bind(C, name="dtensor_spec_init")
                import :: c_ptr, c_int, c_int64_t, c_char, dtensor_error, &
                    dtensor_spec
                type(dtensor_spec), intent(inout) :: spec
                type(c_ptr), value, intent(in) :: ctx
                character(kind=c_char), intent(in) :: mesh(*), placements(*)
                integer(c_int), value, intent(in) :: dtype, ndim
                integer(c_int64_t), intent(in) :: shape(*)
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_spec(spec, ctx, c_text(mesh), c_text(placements), dtype, &
            int(size(shape), c_int), shape, err)
    end function

    integer(c_int) function dtensor_redistribute(t, placements, to, err) &
        result(rc)
        type(c_ptr), intent(in) :: t
        character(*), intent(in) :: placements
        type(c_ptr), intent(inout) :: to
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_redistribute(t, placements, to, err) &
                bind(C, name="dtensor_redistribute")
                import :: c_ptr, c_int, c_char, dtensor_error
                type(c_ptr), value, intent(in) :: t
                character(kind=c_char), intent(in) :: placements(*)
                type(c_ptr), intent(inout) :: to
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_redistribute(t, c_text(placements), to, err)
    end function

    ! Any operator, with one result, as dtensor_op('sum', [x], 'dim=0', t, err).
    ! The arguments are those of dtensor_op_args_parse(3), '' is none.
    integer(c_int) function dtensor_op(op, inputs, args, t, err) result(rc)
        character(*), intent(in) :: op, args
        type(c_ptr), intent(in) :: inputs(:)
        type(c_ptr), intent(inout) :: t
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_op(op, nin, inputs, args, nout, t, err) &
                bind(C, name="dtensor_op")
                import :: c_ptr, c_int, c_char, dtensor_error, dtensor_op_args
                character(kind=c_char), intent(in) :: op(*)
                integer(c_int), value, intent(in) :: nin, nout
                type(c_ptr), intent(in) :: inputs(*)
                type(dtensor_op_args), intent(in) :: args
                type(c_ptr), intent(inout) :: t
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        type(dtensor_op_args) :: read

        rc = op_args_read(args, read, err)
        if (rc == 0) rc = c_op(c_text(op), int(size(inputs), c_int), inputs, &
            read, 1_c_int, t, err)
    end function

    ! The same into a tensor that exists: dtensor_op_into('add_', [t, x], '', t,
    ! err).
    integer(c_int) function dtensor_op_into(op, inputs, args, t, err) &
        result(rc)
        character(*), intent(in) :: op, args
        type(c_ptr), intent(in) :: inputs(:), t
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_into(op, nin, inputs, args, nout, t, &
                err) bind(C, name="dtensor_op_into")
                import :: c_ptr, c_int, c_char, dtensor_error, dtensor_op_args
                character(kind=c_char), intent(in) :: op(*)
                integer(c_int), value, intent(in) :: nin, nout
                type(c_ptr), intent(in) :: inputs(*), t
                type(dtensor_op_args), intent(in) :: args
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        type(dtensor_op_args) :: read

        rc = op_args_read(args, read, err)
        if (rc == 0) rc = c_into(c_text(op), int(size(inputs), c_int), inputs, &
            read, 1_c_int, t, err)
    end function

    integer(c_int) function op_args_read(text, args, err) result(rc)
        character(*), intent(in) :: text
        type(dtensor_op_args), intent(out) :: args
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_parse(text, args, err) &
                bind(C, name="dtensor_op_args_parse")
                import :: c_int, c_char, dtensor_error, dtensor_op_args
                character(kind=c_char), intent(in) :: text(*)
                type(dtensor_op_args), intent(out) :: args
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_parse(c_text(text), args, err)
    end function

    ! Print a tensor on the standard output, after what the program has printed.
    integer(c_int) function dtensor_print(t, err) result(rc)
        type(c_ptr), intent(in) :: t
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_print(t, stream, err) &
                bind(C, name="dtensor_print")
                import :: c_ptr, c_int, dtensor_error
                type(c_ptr), value, intent(in) :: t, stream
                type(dtensor_error), intent(inout) :: err
            end function
            type(c_ptr) function c_open(fd, mode) bind(C, name="fdopen")
                import :: c_ptr, c_int, c_char
                integer(c_int), value, intent(in) :: fd
                character(kind=c_char), intent(in) :: mode(*)
            end function
            integer(c_int) function c_flush(stream) bind(C, name="fflush")
                import :: c_ptr, c_int
                type(c_ptr), value, intent(in) :: stream
            end function
        end interface
        type(c_ptr), save :: stream = c_null_ptr

        flush (output_unit)
        if (.not. c_associated(stream)) stream = c_open(1_c_int, c_text('w'))
        rc = DTENSOR_ESYS
        err%text(:26) = c_text('print: no standard output')
        if (.not. c_associated(stream)) return
        rc = c_print(t, stream, err)
        if (c_flush(stream) /= 0 .and. rc == 0) rc = DTENSOR_ESYS
    end function

    integer(c_int) function dtensor_save(t, path, err) result(rc)
        type(c_ptr), intent(in) :: t
        character(*), intent(in) :: path
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_save(t, path, err) &
                bind(C, name="dtensor_save")
                import :: c_ptr, c_int, c_char, dtensor_error
                type(c_ptr), value, intent(in) :: t
                character(kind=c_char), intent(in) :: path(*)
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_save(t, c_text(path), err)
    end function

    integer(c_int) function dtensor_load(spec, path, t, err) result(rc)
        type(dtensor_spec), intent(in) :: spec
        character(*), intent(in) :: path
        type(c_ptr), intent(inout) :: t
        type(dtensor_error), intent(inout) :: err
        interface
            integer(c_int) function c_load(spec, path, t, err) &
                bind(C, name="dtensor_load")
                import :: c_ptr, c_int, c_char, dtensor_error, dtensor_spec
                type(dtensor_spec), intent(in) :: spec
                character(kind=c_char), intent(in) :: path(*)
                type(c_ptr), intent(inout) :: t
                type(dtensor_error), intent(inout) :: err
            end function
        end interface
        rc = c_load(spec, c_text(path), t, err)
    end function

    ! A text of C, that ends with a null character.
    pure function c_text(text)
        character(*), intent(in) :: text
        character(kind=c_char) :: c_text(len_trim(text) + 1)
        integer :: i

        do i = 1, len_trim(text)
            c_text(i) = text(i:i)
        end do
        c_text(len_trim(text) + 1) = c_null_char
    end function
end module

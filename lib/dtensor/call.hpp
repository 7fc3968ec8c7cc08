/* dtensor/call.hpp - C++: errors as exceptions, types of elements */
#ifndef DTENSOR_CALL_HPP
#define DTENSOR_CALL_HPP

#include <dtensor.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace dt {

/* ------------------------------------------------------------- errors --- */

/* A call that failed; what() is the line of dtensor_error.text. */
class error : public std::runtime_error {
public:
    explicit error(const dtensor_error &why)
        : std::runtime_error(why.text), why_(why) {}
    int code() const { return why_.code; }     /* DTENSOR_EPEER, ...          */
    int rank() const { return why_.rank; }     /* the culprit, or -1          */
    const dtensor_error &why() const { return why_; }

private:
    dtensor_error why_;
};

/* Call a function of dtensor.h, and throw its error. */
template <class F> void call(F function)
{
    dtensor_error why;

    if (function(&why) != 0)
        throw error(why);
}

/* The same for a function that also makes something. */
template <class T, class F> T *made(F function)
{
    T *result = nullptr;

    call([&](dtensor_error *err) { return function(&result, err); });
    return result;
}

/* ------------------------------------------------------ element types --- */

/* Floats of 16 and 8 bits, of which C++17 has none: their bits. */
struct f16 { std::uint16_t bits; };
struct bf16 { std::uint16_t bits; };
struct f8e4m3 { std::uint8_t bits; };
struct f8e5m2 { std::uint8_t bits; };

/* The dtype of a C++ type. */
template <class T> struct dtype_of;
#define DT_DTYPE(type, dtype)                                                  \
    template <> struct dtype_of<type> {                                        \
        static constexpr dtensor_dtype value = dtype;                          \
    };
DT_DTYPE(float, DTENSOR_F32)
DT_DTYPE(double, DTENSOR_F64)
DT_DTYPE(f16, DTENSOR_F16)
DT_DTYPE(bf16, DTENSOR_BF16)
DT_DTYPE(f8e4m3, DTENSOR_F8E4M3)
DT_DTYPE(f8e5m2, DTENSOR_F8E5M2)
DT_DTYPE(bool, DTENSOR_BOOL)
DT_DTYPE(std::int8_t, DTENSOR_I8)
DT_DTYPE(std::uint8_t, DTENSOR_U8)
DT_DTYPE(std::int16_t, DTENSOR_I16)
DT_DTYPE(std::uint16_t, DTENSOR_U16)
DT_DTYPE(std::int32_t, DTENSOR_I32)
DT_DTYPE(std::uint32_t, DTENSOR_U32)
DT_DTYPE(std::int64_t, DTENSOR_I64)
DT_DTYPE(std::uint64_t, DTENSOR_U64)
DT_DTYPE(std::complex<float>, DTENSOR_C64)
DT_DTYPE(std::complex<double>, DTENSOR_C128)
#undef DT_DTYPE

static_assert(sizeof(bool) == 1, "DTENSOR_BOOL has elements of one byte");

/* Elements of type T in memory of the program.  std::vector<bool> has bits, not
 * elements: of bool they are bytes, 0 or 1.
 */
template <class T> struct elements_of { using type = std::vector<T>; };
template <> struct elements_of<bool> {
    using type = std::vector<unsigned char>;
};
template <class T> using elements = typename elements_of<T>::type;

/* T where another argument says which type that is, so nullptr fits too. */
template <class T> struct same { using type = T; };
template <class T> using same_as = typename same<T>::type;

/* Elements in a row that somebody else owns. */
template <class T> class view {
public:
    view(T *data, std::size_t size) : data_(data), size_(size) {}
    T *data() const { return data_; }
    std::size_t size() const { return size_; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size_; }
    T &operator[](std::size_t i) const { return data_[i]; }

private:
    T *data_;
    std::size_t size_;
};

} // namespace dt
#endif

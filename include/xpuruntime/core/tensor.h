#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "xpuruntime/core/data_type.h"
#include "xpuruntime/core/device.h"
#include "xpuruntime/core/dims.h"

namespace xpuruntime {

/// What a choice may know of one tensor. Strides are canonical: an extent of 1 has the stride that a contiguous tensor
/// would have there, so two layouts that address the same memory compare equal.
struct TensorSpec {
  DataType dtype = DataType::float32;
  std::uint8_t alignment = 16;  // bytes the first element is aligned to: 1, 2, 4, 8 or 16 (and more)
  bool contiguous = true;
  Dims shape = {};
  Dims strides = {};  // in elements

  bool operator==(const TensorSpec&) const = default;
};

/// A checked spec: negative extents or strides, ranks over eight and sizes that overflow are errors.
TensorSpec make_spec(DataType dtype, const Dims& shape);
TensorSpec make_spec(DataType dtype, const Dims& shape, const Dims& strides, std::uint8_t alignment = 16);

std::int64_t element_count(const TensorSpec& spec);
/// Dense, the second of at least two dims the innermost in memory and the others in their order: PyTorch's
/// channels_last.
bool has_channels_last(const TensorSpec& spec);
/// Bytes from the first element to the end of the last one.
std::size_t span_bytes(const TensorSpec& spec);

/// The dtype of a C++ type: float, double, bool, std::uint8_t or a signed integer.
template <class T>
constexpr DataType data_type_of() {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Plain, float>)
    return DataType::float32;
  else if constexpr (std::is_same_v<Plain, double>)
    return DataType::float64;
  else if constexpr (std::is_same_v<Plain, bool>)
    return DataType::boolean;
  else if constexpr (std::is_same_v<Plain, std::uint8_t>)
    return DataType::uint8;
  else {
    static_assert(std::is_integral_v<Plain> && std::is_signed_v<Plain>, "no dtype for this type; name one");
    constexpr DataType by_size[] = {DataType::int8, DataType::int16, DataType::int32, DataType::int64};
    return by_size[sizeof(T) == 8 ? 3 : sizeof(T) / 2];
  }
}

/// A view of memory that the caller or `owner` owns. Cheap to copy; the shape never changes.
/// `data` is a pointer, or on OpenCL a `cl_mem` handle; the first element is `byte_offset` bytes after it.
class alignas(64) Tensor {
 public:
  Tensor() = default;
  /// The spec is checked and put in canonical form; its alignment is that of the memory.
  Tensor(void* data, const TensorSpec& spec, Device device = {}, std::size_t byte_offset = 0,
         std::shared_ptr<void> owner = nullptr);

  /// The same for a spec that make_spec gave: it is not looked at again.
  static Tensor on(void* data, const TensorSpec& spec, Device device = {}, std::size_t byte_offset = 0,
                   std::shared_ptr<void> owner = nullptr);

  /// Contiguous view of memory on the CPU or a pointer-based device. One of const memory is read-only.
  static Tensor view(void* data, DataType dtype, const Dims& shape, Device device = {});
  template <class T>
  requires std::is_const_v<T>
  static Tensor view(T* data, DataType dtype, const Dims& shape, Device device = {}) {
    return view(const_cast<std::remove_const_t<T>*>(data), dtype, shape, device).as_read_only();
  }
  template <class T>
  static Tensor view(T* data, const Dims& shape, Device device = {}) {
    return view(data, data_type_of<T>(), shape, device);
  }
  /// Newly allocated, 64-byte aligned, uninitialised CPU memory.
  static Tensor empty(DataType dtype, const Dims& shape);

  void* data() const { return data_; }
  std::size_t byte_offset() const { return byte_offset_; }
  const std::shared_ptr<void>& owner() const { return owner_; }
  const TensorSpec& spec() const { return spec_; }
  DataType dtype() const { return spec_.dtype; }
  Device device() const { return device_; }
  const Dims& shape() const { return spec_.shape; }
  const Dims& strides() const { return spec_.strides; }
  bool contiguous() const { return spec_.contiguous; }
  /// Ops take it as an input and refuse it as an output.
  bool read_only() const { return (meta_ & read_only_bit) != 0; }
  /// The same view, read-only.
  Tensor as_read_only() const;

  /// Bytes from the first element to the end of the last one.
  std::size_t span() const { return span_; }

  /// First element, on devices whose memory is addressed by pointers. That of a read-only tensor is a `const T`;
  /// `void`, as data(), says nothing of who may write.
  template <class T>
  T* as() const {
    if constexpr (!std::is_const_v<T> && !std::is_void_v<T>) {
      if (read_only()) refuse_writing();
    }
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + byte_offset_);
  }

  /// 0: unknown when the contents change. Else a number that is another one after every change, so that what was
  /// made from the contents, such as a weight's cast, may be kept until then.
  std::uint64_t version() const { return version_; }
  void set_version(std::uint64_t version) { version_ = version; }
  /// A number that no tensor of this process has had.
  static std::uint64_t new_version();

  /// dtype, device, rank, alignment, contiguity and read_only in one word: the first thing the decision table compares.
  std::uint64_t meta() const { return meta_; }
  /// Of the spec and the device, made once here so that calls need not; it finds a slot and is never identity.
  std::uint64_t hash() const { return hash_; }

 private:
  static constexpr std::uint64_t read_only_bit = std::uint64_t{1} << 41;
  [[noreturn]] static void refuse_writing();
  struct Made {};
  Tensor(Made, void* data, const TensorSpec& spec, Device device, std::size_t byte_offset, std::shared_ptr<void> owner);

  // What a call's signature reads is on one cache line, up to rank 5: with thousands of problems in rotation, lines
  // are what their calls wait for.
  std::uint64_t meta_ = 0;
  TensorSpec spec_ = {};
  void* data_ = nullptr;
  std::size_t byte_offset_ = 0;
  std::size_t span_ = 0;
  Device device_ = {};
  std::uint64_t hash_ = 0;
  std::uint64_t version_ = 0;
  std::shared_ptr<void> owner_ = nullptr;
};

/// The word that Tensor::meta() gives of a tensor that can be written, from a spec.
std::uint64_t meta_word(const TensorSpec& spec, Device device);

}  // namespace xpuruntime

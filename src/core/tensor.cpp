#include "xpuruntime/core/tensor.h"

#include <atomic>
#include <cstdlib>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// Two layouts that address the same elements must compare equal, so strides of extents 1 are made up afresh.
Dims canonical_strides(const Dims& shape, const Dims& strides) {
  Dims out = strides;
  std::int64_t next = 1;  // the stride a contiguous tensor would have here
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) out[i] = next;
    if (__builtin_mul_overflow(out[i], std::max<std::int64_t>(shape[i], 1), &next)) next = 1;
  }
  return out;
}

void check_strides(const Dims& shape, const Dims& strides, std::size_t element_size) {
  if (strides.size() != shape.size()) {
    fail(ErrorCode::invalid_argument, "make_spec",
         "strides " + to_string(strides) + " do not match shape " + to_string(shape) + "; give one stride per extent");
  }
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] < 0 && shape[i] > 1) {
      fail(ErrorCode::invalid_argument, "make_spec",
           "strides " + to_string(strides) + " are negative; copy the tensor to a layout with strides of 0 or more");
    }
    std::int64_t reach = 0;
    const std::int64_t steps = std::max<std::int64_t>(shape[i] - 1, 0);
    if (__builtin_mul_overflow(steps, strides[i], &reach) || __builtin_add_overflow(last, reach, &last)) {
      fail(ErrorCode::invalid_argument, "make_spec",
           "strides " + to_string(strides) + " of shape " + to_string(shape) + " do not fit 63 bits; split the tensor");
    }
  }
  std::int64_t bytes = 0;
  if (last == INT64_MAX || __builtin_mul_overflow(last + 1, static_cast<std::int64_t>(element_size), &bytes)) {
    fail(ErrorCode::invalid_argument, "make_spec",
         "strides " + to_string(strides) + " of shape " + to_string(shape) + " do not fit 63 bits; split the tensor");
  }
}

// Past 16 bytes nothing here cares, and telling 32 from 64 would only make more cache entries.
std::uint8_t alignment_of(std::uintptr_t address) {
  const std::uintptr_t at_most_16 = address | 16;
  return static_cast<std::uint8_t>(at_most_16 & -at_most_16);  // the lowest bit
}

std::uint64_t hash_words(std::uint64_t meta, const TensorSpec& spec) {
  std::uint64_t hash = meta * 0x9e3779b97f4a7c15ULL;
  const auto mix = [&](std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 32;
  };
  for (const std::int64_t extent : spec.shape) mix(extent);
  if (!spec.contiguous) {
    for (const std::int64_t stride : spec.strides) mix(stride);
  }
  return hash;
}

}  // namespace

TensorSpec make_spec(DataType dtype, const Dims& shape) {
  checked_count(shape, size_of(dtype));
  TensorSpec spec{dtype, 16, true, shape, shape};
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    spec.strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return spec;
}

bool has_channels_last(const TensorSpec& spec) {
  if (spec.shape.size() < 2) return false;
  const Dims strides = channels_last_strides(spec.shape);
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] != 1 && spec.strides[i] != strides[i]) return false;
  }
  return true;
}

TensorSpec make_spec(DataType dtype, const Dims& shape, const Dims& strides, std::uint8_t alignment) {
  TensorSpec spec = make_spec(dtype, shape);
  if (alignment == 0 || alignment > 16 || (alignment & (alignment - 1)) != 0) {
    fail(ErrorCode::invalid_argument, "make_spec",
         "alignment " + std::to_string(alignment) + " is not one of 1, 2, 4, 8, 16; pass the largest that holds");
  }
  spec.alignment = alignment;
  if (strides == spec.strides) return spec;
  check_strides(shape, strides, size_of(dtype));
  // The strides of an empty tensor address nothing.
  const Dims canonical = element_count(spec) == 0 ? spec.strides : canonical_strides(shape, strides);
  spec.contiguous = canonical == spec.strides;
  spec.strides = canonical;
  return spec;
}

std::int64_t element_count(const TensorSpec& spec) {
  std::int64_t count = 1;
  for (const std::int64_t extent : spec.shape) count *= extent;
  return count;
}

std::size_t span_bytes(const TensorSpec& spec) {
  const std::int64_t count = element_count(spec);
  if (spec.contiguous || count == 0) return static_cast<std::size_t>(count) * size_of(spec.dtype);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) last += (spec.shape[i] - 1) * spec.strides[i];
  return static_cast<std::size_t>(last + 1) * size_of(spec.dtype);
}

std::uint64_t meta_word(const TensorSpec& spec, Device device) {
  return static_cast<std::uint64_t>(spec.dtype) | static_cast<std::uint64_t>(spec.shape.size()) << 8 |
         static_cast<std::uint64_t>(device.type) << 16 | static_cast<std::uint64_t>(device.index) << 24 |
         static_cast<std::uint64_t>(spec.alignment) << 32 | static_cast<std::uint64_t>(spec.contiguous) << 40;
}

Tensor::Tensor(void* data, const TensorSpec& spec, Device device, std::size_t byte_offset, std::shared_ptr<void> owner)
    : Tensor(Made{}, data, make_spec(spec.dtype, spec.shape, spec.strides), device, byte_offset, std::move(owner)) {}

Tensor::Tensor(Made, void* data, const TensorSpec& spec, Device device, std::size_t byte_offset,
               std::shared_ptr<void> owner)
    : spec_(spec), data_(data), byte_offset_(byte_offset), device_(device), owner_(std::move(owner)) {
  if (data == nullptr && element_count(spec) != 0) {
    fail(ErrorCode::invalid_argument, "Tensor",
         "null data for shape " + to_string(spec.shape) + "; pass memory of " + std::to_string(span_bytes(spec)) +
             " bytes");
  }
  // On OpenCL the data is a handle: only the offset says where the first element lies.
  const auto base = device.type == DeviceType::opencl ? 0 : reinterpret_cast<std::uintptr_t>(data);
  spec_.alignment = alignment_of(base + byte_offset);
  meta_ = meta_word(spec_, device);
  hash_ = hash_words(meta_, spec_);
  span_ = span_bytes(spec_);
}

Tensor Tensor::on(void* data, const TensorSpec& spec, Device device, std::size_t byte_offset,
                  std::shared_ptr<void> owner) {
  return Tensor(Made{}, data, spec, device, byte_offset, std::move(owner));
}

Tensor Tensor::view(void* data, DataType dtype, const Dims& shape, Device device) {
  return on(data, make_spec(dtype, shape), device);
}

Tensor Tensor::as_read_only() const {
  Tensor out = *this;
  out.meta_ |= read_only_bit;
  return out;
}

void Tensor::refuse_writing() {
  fail(ErrorCode::invalid_argument, "Tensor::as", "the tensor is read-only; read it by a pointer to const");
}

std::uint64_t Tensor::new_version() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Tensor Tensor::empty(DataType dtype, const Dims& shape) {
  const TensorSpec spec = make_spec(dtype, shape);
  constexpr std::size_t line = 64;
  // One line more than needed, so that empty tensors have an address too.
  const std::size_t bytes = (span_bytes(spec) / line + 1) * line;
  void* memory = std::aligned_alloc(line, bytes);
  if (memory == nullptr) {
    fail(ErrorCode::out_of_memory, "Tensor::empty",
         "no " + std::to_string(bytes) + " bytes of host memory for shape " + to_string(shape) +
             "; use a smaller shape");
  }
  return on(memory, spec, {}, 0, std::shared_ptr<void>(memory, std::free));
}

}  // namespace xpuruntime

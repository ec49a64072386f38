#pragma once

#include <cstdint>
#include <memory>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::dlpack {

// The memory layout of DLPack's exchange structures, so that arrays cross without copies and without its header. Names
// are ours, the layout is the standard's.

struct DeviceTag {
  std::int32_t type = 1;  // 1 CPU, 2 CUDA, 4 OpenCL
  std::int32_t index = 0;
};

struct TypeTag {
  std::uint8_t code = 2;  // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 f8e4m3fn, 12 f8e5m2
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

struct View {
  void* data = nullptr;
  DeviceTag device = {};
  std::int32_t rank = 0;
  TypeTag dtype = {};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  // null: row-major
  std::uint64_t byte_offset = 0;
};

struct Managed {
  View view = {};
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
};

struct Version {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
};

/// The structure since version 1 of the standard. All later minor versions have this layout.
struct VersionedManaged {
  Version version = {};
  void* context = nullptr;
  void (*deleter)(VersionedManaged*) = nullptr;
  std::uint64_t flags = 0;  // see read_only_flag
  View view = {};
};
inline constexpr std::uint64_t read_only_flag = 1;

/// A tensor on the memory of a view; `owner` is what keeps that memory.
Tensor from_view(const View& view, std::shared_ptr<void> owner = nullptr);
/// The type and device that the standard has for a tensor's; one that it has none for is an error.
TypeTag type_tag(DataType dtype);
DeviceTag device_tag(Device device);
/// Strides as other packages expect them: with channels last, an extent of 1 has the stride that a larger one would
/// have.
Dims strides_of(const TensorSpec& spec);

/// A view of what `managed` describes. The tensor keeps it and calls its deleter with the last copy.
/// On an error the caller still owns `managed`.
Tensor from_dlpack(Managed* managed);
/// A later major version than ours is an error. What the producer flags as read-only is.
Tensor from_dlpack(VersionedManaged* managed);

/// Hands out the tensor; its owner lives until the consumer calls the deleter. A read-only tensor is flagged as such,
/// which only the versioned structure can: without one it is an error.
Managed* to_dlpack(const Tensor& tensor);
VersionedManaged* to_versioned_dlpack(const Tensor& tensor);

}  // namespace xpuruntime::dlpack

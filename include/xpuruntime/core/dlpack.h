#pragma once

#include <cstdint>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::dlpack {

// The memory layout of DLPack's unversioned exchange structures, so that arrays cross without copies and without its
// header. Names are ours, the layout is the standard's.

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

/// A view of what `managed` describes. The tensor keeps it and calls its deleter with the last copy.
/// On an error the caller still owns `managed`.
Tensor from_dlpack(Managed* managed);

/// Hands out the tensor; its owner lives until the consumer calls the deleter.
Managed* to_dlpack(const Tensor& tensor);

}  // namespace xpuruntime::dlpack

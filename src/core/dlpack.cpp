#include "xpuruntime/core/dlpack.h"

#include <algorithm>
#include <array>
#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime::dlpack {
namespace {

struct TypeRow {
  DataType dtype;
  TypeTag tag;
};

constexpr TypeRow types[] = {
    {DataType::float64, {2, 64, 1}},  {DataType::float32, {2, 32, 1}},     {DataType::float16, {2, 16, 1}},
    {DataType::bfloat16, {4, 16, 1}}, {DataType::float8_e4m3, {10, 8, 1}}, {DataType::float8_e5m2, {12, 8, 1}},
    {DataType::int64, {0, 64, 1}},    {DataType::int32, {0, 32, 1}},       {DataType::int16, {0, 16, 1}},
    {DataType::int8, {0, 8, 1}},      {DataType::uint8, {1, 8, 1}},        {DataType::boolean, {6, 8, 1}},
};

struct DeviceRow {
  DeviceType type;
  std::int32_t tag;
};

// 3 is CUDA's pinned host memory: the CPU may read it.
constexpr DeviceRow device_rows[] = {
    {DeviceType::cpu, 1}, {DeviceType::nvidia, 2}, {DeviceType::opencl, 4}, {DeviceType::cpu, 3}};

DataType dtype_of(TypeTag tag) {
  for (const TypeRow& row : types) {
    if (row.tag.code == tag.code && row.tag.bits == tag.bits && tag.lanes == 1) return row.dtype;
  }
  fail(ErrorCode::not_supported, "from_dlpack",
       "DLPack type (code " + std::to_string(tag.code) + ", bits " + std::to_string(tag.bits) + ", lanes " +
           std::to_string(tag.lanes) + ") has no counterpart; convert the array first");
}

Device device_of(DeviceTag tag) {
  for (const DeviceRow& row : device_rows) {
    if (row.tag != tag.type) continue;
    const std::int32_t index = row.type == DeviceType::cpu ? 0 : tag.index;
    if (index >= 0 && index < 256) return {row.type, static_cast<std::uint8_t>(index)};
  }
  fail(ErrorCode::not_supported, "from_dlpack",
       "DLPack device " + std::to_string(tag.type) + ":" + std::to_string(tag.index) +
           " has no backend; move the array to the CPU, CUDA or OpenCL");
}

/// What an exported tensor needs to live: the structure, its arrays and the owner, freed together.
template <class Structure>
struct Exported {
  Structure managed;
  Tensor tensor;
  std::array<std::int64_t, max_rank> shape;
  std::array<std::int64_t, max_rank> strides;
};

template <class Structure>
Structure* export_tensor(const Tensor& tensor) {
  const TypeTag type = type_tag(tensor.dtype());
  const DeviceTag device = device_tag(tensor.device());
  auto* out = new Exported<Structure>{{}, tensor, {}, {}};
  std::copy(tensor.shape().begin(), tensor.shape().end(), out->shape.begin());
  const Dims strides = strides_of(tensor.spec());
  std::copy(strides.begin(), strides.end(), out->strides.begin());
  out->managed.view = {tensor.data(),
                       device,
                       static_cast<std::int32_t>(tensor.shape().size()),
                       type,
                       out->shape.data(),
                       out->strides.data(),
                       tensor.byte_offset()};
  out->managed.context = out;
  out->managed.deleter = [](Structure* managed) { delete static_cast<Exported<Structure>*>(managed->context); };
  return &out->managed;
}

template <class Structure>
Tensor import_tensor(Structure* managed) {
  from_view(managed->view);  // the deleter is attached last: on any error here, the caller still owns the structure
  std::shared_ptr<void> owner(managed, [](void* p) {
    auto* m = static_cast<Structure*>(p);
    if (m->deleter != nullptr) m->deleter(m);
  });
  return from_view(managed->view, std::move(owner));
}

void need_structure(const void* managed) {
  if (managed == nullptr)
    fail(ErrorCode::invalid_argument, "from_dlpack", "null structure; pass what the producer gave");
}

}  // namespace

TypeTag type_tag(DataType dtype) {
  for (const TypeRow& row : types) {
    if (row.dtype == dtype) return row.tag;
  }
  fail(ErrorCode::not_supported, "to_dlpack",
       "DLPack has no name for " + std::string(to_string(dtype)) + "; cast the tensor to float32");
}

Dims strides_of(const TensorSpec& spec) {
  return !spec.contiguous && has_channels_last(spec) ? channels_last_strides(spec.shape) : spec.strides;
}

DeviceTag device_tag(Device device) {
  for (const DeviceRow& row : device_rows) {
    if (row.type == device.type) return {row.tag, device.index};
  }
  fail(ErrorCode::not_supported, "to_dlpack",
       "DLPack has no name for the device " + to_string(device) + "; copy the tensor to the CPU");
}

Tensor from_view(const View& view, std::shared_ptr<void> owner) {
  if (view.rank < 0 || (view.rank > 0 && view.shape == nullptr)) {
    fail(ErrorCode::invalid_argument, "from_dlpack", "a shape is missing; the producer's structure is damaged");
  }
  const auto rank = static_cast<std::size_t>(view.rank);
  const Dims shape(std::span<const std::int64_t>(view.shape, rank));
  const DataType dtype = dtype_of(view.dtype);
  const TensorSpec spec = view.strides == nullptr
                              ? make_spec(dtype, shape)
                              : make_spec(dtype, shape, Dims(std::span<const std::int64_t>(view.strides, rank)));
  return Tensor::on(view.data, spec, device_of(view.device), view.byte_offset, std::move(owner));
}

Tensor from_dlpack(Managed* managed) {
  need_structure(managed);
  return import_tensor(managed);
}

Tensor from_dlpack(VersionedManaged* managed) {
  need_structure(managed);
  if (managed->version.major > Version{}.major) {
    fail(ErrorCode::not_supported, "from_dlpack",
         "the structure is of DLPack version " + std::to_string(managed->version.major) +
             ", which this library does not know; ask the producer for version 1");
  }
  const Tensor tensor = import_tensor(managed);
  return (managed->flags & read_only_flag) != 0 ? tensor.as_read_only() : tensor;
}

Managed* to_dlpack(const Tensor& tensor) {
  if (tensor.read_only()) {
    fail(ErrorCode::not_supported, "to_dlpack",
         "the tensor is read-only, which only DLPack 1.0 can say; ask for its versioned structure (in Python "
         "max_version=(1, 0))");
  }
  return export_tensor<Managed>(tensor);
}

VersionedManaged* to_versioned_dlpack(const Tensor& tensor) {
  auto* out = export_tensor<VersionedManaged>(tensor);
  out->flags = tensor.read_only() ? read_only_flag : 0;
  return out;
}

}  // namespace xpuruntime::dlpack

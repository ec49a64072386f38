#include "xpuruntime/core/dlpack.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "core/expect_error.h"

namespace xpuruntime::dlpack {
namespace {

// The layout of the standard's structures on a 64-bit machine, written down from its header.
static_assert(sizeof(DeviceTag) == 8 && offsetof(DeviceTag, index) == 4);
static_assert(sizeof(TypeTag) == 4 && offsetof(TypeTag, bits) == 1 && offsetof(TypeTag, lanes) == 2);
static_assert(sizeof(View) == 48 && sizeof(Managed) == 64);
static_assert(offsetof(View, data) == 0 && offsetof(View, device) == 8 && offsetof(View, rank) == 16);
static_assert(offsetof(View, dtype) == 20 && offsetof(View, shape) == 24 && offsetof(View, strides) == 32);
static_assert(offsetof(View, byte_offset) == 40);
static_assert(offsetof(Managed, view) == 0 && offsetof(Managed, context) == 48 && offsetof(Managed, deleter) == 56);
static_assert(sizeof(VersionedManaged) == 80 && offsetof(VersionedManaged, context) == 8);
static_assert(offsetof(VersionedManaged, deleter) == 16 && offsetof(VersionedManaged, flags) == 24);
static_assert(offsetof(VersionedManaged, view) == 32 && std::is_standard_layout_v<VersionedManaged>);
static_assert(std::is_standard_layout_v<Managed> && std::is_trivially_copyable_v<Managed>);

/// A producer's structure that counts how often it is let go.
struct Producer {
  alignas(16) float memory[16] = {};
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {};
  int deleted = 0;
  Managed managed = {};

  Managed* make() {
    managed.view.data = memory;
    managed.view.rank = static_cast<std::int32_t>(shape.size());
    managed.view.shape = shape.data();
    managed.view.strides = strides.empty() ? nullptr : strides.data();
    managed.context = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->context)->deleted; };
    return &managed;
  }
};

TEST(FromDlpack, ViewsTheProducersMemory) {
  Producer producer;
  const Tensor tensor = from_dlpack(producer.make());
  EXPECT_EQ(tensor.data(), producer.memory);
  EXPECT_EQ(tensor.dtype(), DataType::float32);
  EXPECT_EQ(tensor.shape(), (Dims{2, 3}));
  EXPECT_TRUE(tensor.contiguous());
}

TEST(FromDlpack, CallsTheDeleterOnceWithTheLastCopy) {
  Producer producer;
  {
    Tensor last;
    {
      const Tensor tensor = from_dlpack(producer.make());
      last = tensor;
    }
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(FromDlpack, TakesAProducerWithoutADeleter) {
  Producer producer;
  producer.make()->deleter = nullptr;
  EXPECT_NO_THROW(from_dlpack(&producer.managed));
}

TEST(FromDlpack, ReadsStridesAndTheOffset) {
  Producer producer;
  producer.strides = {1, 2};
  producer.make()->view.byte_offset = 4;
  const Tensor tensor = from_dlpack(&producer.managed);
  EXPECT_EQ(tensor.strides(), (Dims{1, 2}));
  EXPECT_FALSE(tensor.contiguous());
  EXPECT_EQ(tensor.byte_offset(), 4u);
  EXPECT_EQ(tensor.as<float>(), producer.memory + 1);
  EXPECT_EQ(tensor.spec().alignment, 4);
}

TEST(FromDlpack, TakesScalarsAndEmptyArrays) {
  Producer scalar;
  scalar.shape = {};
  scalar.make()->view.shape = nullptr;
  EXPECT_EQ(element_count(from_dlpack(&scalar.managed).spec()), 1);
  Producer empty;
  empty.shape = {0, 3};
  empty.make()->view.data = nullptr;
  EXPECT_EQ(element_count(from_dlpack(&empty.managed).spec()), 0);
}

TEST(FromDlpack, KnowsTheStandardsTypesByTheirCodes) {
  struct Row {
    TypeTag tag;
    DataType dtype;
  };
  const Row rows[] = {
      {{0, 8, 1}, DataType::int8},     {{0, 16, 1}, DataType::int16},       {{0, 32, 1}, DataType::int32},
      {{0, 64, 1}, DataType::int64},   {{1, 8, 1}, DataType::uint8},        {{2, 16, 1}, DataType::float16},
      {{2, 32, 1}, DataType::float32}, {{2, 64, 1}, DataType::float64},     {{4, 16, 1}, DataType::bfloat16},
      {{6, 8, 1}, DataType::boolean},  {{10, 8, 1}, DataType::float8_e4m3}, {{12, 8, 1}, DataType::float8_e5m2}};
  for (const Row& row : rows) {
    Producer producer;
    producer.make()->view.dtype = row.tag;
    EXPECT_EQ(from_dlpack(&producer.managed).dtype(), row.dtype) << int(row.tag.code) << "/" << int(row.tag.bits);
  }
}

TEST(FromDlpack, KnowsTheStandardsDevices) {
  const std::pair<DeviceTag, Device> rows[] = {{{1, 0}, {}},
                                               {{1, 7}, {}},
                                               {{3, 2}, {}},  // pinned by CUDA, but the host's
                                               {{2, 3}, {DeviceType::nvidia, 3}},
                                               {{4, 1}, {DeviceType::opencl, 1}}};
  for (const auto& [tag, device] : rows) {
    Producer producer;
    producer.make()->view.device = tag;
    EXPECT_EQ(from_dlpack(&producer.managed).device(), device) << tag.type;
  }
}

/// What `change` does to a good structure is refused, and the structure stays the caller's.
template <class Change>
void expect_refused(ErrorCode code, const std::string& part, Change change) {
  Producer producer;
  producer.make();
  change(producer);
  expect_error(code, part, [&] { from_dlpack(&producer.managed); });
  EXPECT_EQ(producer.deleted, 0) << part;
}

TEST(FromDlpack, LeavesTheStructureWithTheCallerOnEveryError) {
  const auto invalid = ErrorCode::invalid_argument;
  const auto unsupported = ErrorCode::not_supported;
  expect_refused(invalid, "null data", [](Producer& p) { p.managed.view.data = nullptr; });
  expect_refused(invalid, "shape is missing", [](Producer& p) { p.managed.view.shape = nullptr; });
  expect_refused(invalid, "shape is missing", [](Producer& p) { p.managed.view.rank = -1; });
  expect_refused(invalid, "negative extent", [](Producer& p) { p.shape[0] = -2; });
  expect_refused(invalid, "63 bits", [](Producer& p) { p.shape[0] = INT64_MAX; });
  expect_refused(unsupported, "code 3", [](Producer& p) { p.managed.view.dtype.code = 3; });
  expect_refused(unsupported, "lanes 4", [](Producer& p) { p.managed.view.dtype.lanes = 4; });
  expect_refused(unsupported, "bits 7", [](Producer& p) { p.managed.view.dtype.bits = 7; });
  expect_refused(unsupported, "device 99:0", [](Producer& p) { p.managed.view.device.type = 99; });
  expect_refused(unsupported, "device 2:256", [](Producer& p) { p.managed.view.device = {2, 256}; });
  expect_refused(unsupported, "device 2:-1", [](Producer& p) { p.managed.view.device = {2, -1}; });
}

TEST(FromDlpack, RefusesRankNineBeforeItReadsTheShape) {
  expect_refused(ErrorCode::invalid_argument, "rank 9", [](Producer& p) {
    p.shape.assign(9, 1);
    p.managed.view.shape = p.shape.data();
    p.managed.view.rank = 9;
  });
}

TEST(FromDlpack, RefusesNegativeStrides) {
  expect_refused(ErrorCode::invalid_argument, "copy the tensor", [](Producer& p) {
    p.strides = {-3, 1};
    p.managed.view.strides = p.strides.data();
  });
}

TEST(FromDlpack, RefusesNothingAtAll) {
  expect_invalid("null structure", [] { from_dlpack(static_cast<Managed*>(nullptr)); });
  expect_invalid("null structure", [] { from_dlpack(static_cast<VersionedManaged*>(nullptr)); });
}

TEST(VersionedDlpack, ComesBackAsTheSameTensorAndLetsGoOnce) {
  std::weak_ptr<void> watched;
  {
    Tensor back;
    {
      const Tensor tensor = Tensor::empty(DataType::bfloat16, {3, 2});
      watched = tensor.owner();
      VersionedManaged* managed = to_versioned_dlpack(tensor);
      EXPECT_EQ(managed->version.major, 1u);
      EXPECT_EQ(managed->flags, 0u);
      back = from_dlpack(managed);
      EXPECT_EQ(back.spec(), tensor.spec());
      EXPECT_EQ(back.data(), tensor.data());
    }
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(VersionedDlpack, SaysWhatIsReadOnly) {
  const Tensor tensor = Tensor::empty(DataType::float32, {2}).as_read_only();
  VersionedManaged* managed = to_versioned_dlpack(tensor);
  EXPECT_EQ(managed->flags & 1, 1u);
  EXPECT_TRUE(from_dlpack(managed).read_only());
  expect_error(ErrorCode::not_supported, "only DLPack 1.0", [&] { to_dlpack(tensor); });
}

TEST(VersionedDlpack, ALaterMajorVersionStaysWithTheCaller) {
  VersionedManaged* managed = to_versioned_dlpack(Tensor::empty(DataType::float32, {2}));
  managed->version.major = 2;
  expect_error(ErrorCode::not_supported, "version 2", [&] { from_dlpack(managed); });
  managed->deleter(managed);
}

TEST(ToDlpack, DescribesTheTensor) {
  float values[8] = {};
  const Tensor tensor(values, make_spec(DataType::float32, {2, 3}, {1, 2}), {}, 4);
  Managed* managed = to_dlpack(tensor);
  EXPECT_EQ(managed->view.data, values);
  EXPECT_EQ(managed->view.byte_offset, 4u);
  EXPECT_EQ(managed->view.rank, 2);
  EXPECT_EQ(managed->view.shape[1], 3);
  EXPECT_EQ(managed->view.strides[1], 2);
  EXPECT_EQ(managed->view.device.type, 1);
  EXPECT_EQ(int(managed->view.dtype.code), 2);
  managed->deleter(managed);
}

TEST(ToDlpack, KeepsTheOwnerUntilTheConsumerLetsGo) {
  std::weak_ptr<void> watched;
  Managed* managed = nullptr;
  {
    const Tensor tensor = Tensor::empty(DataType::float32, {4});
    watched = tensor.owner();
    managed = to_dlpack(tensor);
  }
  EXPECT_FALSE(watched.expired());
  managed->deleter(managed);
  EXPECT_TRUE(watched.expired());
}

TEST(ToDlpack, ComesBackAsTheSameTensor) {
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    if (dtype == DataType::tfloat32) continue;
    const Tensor tensor = Tensor::empty(dtype, {3, 1, 2});
    const Tensor again = from_dlpack(to_dlpack(tensor));
    EXPECT_EQ(again.spec(), tensor.spec());
    EXPECT_EQ(again.data(), tensor.data());
    EXPECT_EQ(again.meta(), tensor.meta());
  }
  std::byte handle;
  const Device device{DeviceType::opencl, 2};
  EXPECT_EQ(from_dlpack(to_dlpack(Tensor::view(&handle, DataType::int8, {4}, device))).device(), device);
}

TEST(ToDlpack, RefusesWhatTheStandardHasNoNameFor) {
  float value = 0;
  expect_error(ErrorCode::not_supported, "tf32", [&] { to_dlpack(Tensor::view(&value, DataType::tfloat32, {1})); });
  expect_error(ErrorCode::not_supported, "npu:0", [&] {
    to_dlpack(Tensor::view(&value, DataType::float32, {1}, {DeviceType::npu, 0}));
  });
}

}  // namespace
}  // namespace xpuruntime::dlpack

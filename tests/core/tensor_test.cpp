#include "xpuruntime/core/tensor.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "core/expect_error.h"

// Memory that cannot be had must come back as null under the sanitizers too, as it does without them.
extern "C" {
const char* __asan_default_options();
const char* __tsan_default_options();
const char* __asan_default_options() { return "allocator_may_return_null=1"; }
const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
}

namespace xpuruntime {
namespace {

constexpr DataType f32 = DataType::float32;
constexpr std::int64_t huge = std::int64_t{1} << 40;

TEST(TensorSpec, IsContiguousUnlessStridesSayOtherwise) {
  const TensorSpec spec = make_spec(f32, {2, 3, 4});
  EXPECT_TRUE(spec.contiguous);
  EXPECT_EQ(spec.strides, (Dims{12, 4, 1}));
  EXPECT_EQ(make_spec(f32, {2, 3, 4}, {12, 4, 1}), spec);
  EXPECT_FALSE(make_spec(f32, {2, 3}, {1, 2}).contiguous);
}

TEST(TensorSpec, MakesUpTheStridesOfExtentsOfOne) {
  const TensorSpec plain = make_spec(f32, {2, 1, 3});
  for (const std::int64_t stride : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{3}, huge}) {
    EXPECT_EQ(make_spec(f32, {2, 1, 3}, {3, stride, 1}), plain) << stride;
  }
  EXPECT_EQ(make_spec(f32, {1, 1}, {99, 77}), make_spec(f32, {1, 1}));
}

TEST(TensorSpec, ComparesEqualForTwoLayoutsOfTheSameMemory) {
  // A column-major 4x3 matrix with a one in the middle that nobody steps along.
  EXPECT_EQ(make_spec(f32, {4, 1, 3}, {1, 5, 4}), make_spec(f32, {4, 1, 3}, {1, 4242, 4}));
  EXPECT_NE(make_spec(f32, {4, 1, 3}, {1, 5, 4}), make_spec(f32, {4, 1, 3}, {1, 5, 8}));
}

TEST(TensorSpec, TakesBroadcastStridesOfZero) {
  const TensorSpec spec = make_spec(f32, {4, 3}, {0, 1});
  EXPECT_FALSE(spec.contiguous);
  EXPECT_EQ(span_bytes(spec), 12u);
  EXPECT_EQ(element_count(spec), 12);
}

TEST(TensorSpec, OfAnEmptyTensorIsContiguousWhateverItsStrides) {
  const TensorSpec spec = make_spec(f32, {2, 0, 3}, {7, 100, 50});
  EXPECT_EQ(spec, make_spec(f32, {2, 0, 3}));
  EXPECT_TRUE(spec.contiguous);
  EXPECT_EQ(element_count(spec), 0);
  EXPECT_EQ(span_bytes(spec), 0u);
}

TEST(TensorSpec, OfRankZeroHoldsOneElement) {
  const TensorSpec spec = make_spec(DataType::float64, {}, {});
  EXPECT_EQ(spec, make_spec(DataType::float64, {}));
  EXPECT_EQ(element_count(spec), 1);
  EXPECT_EQ(span_bytes(spec), 8u);
}

TEST(TensorSpec, RefusesRankNine) {
  expect_invalid("rank 9", [] { make_spec(f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}); });
}

TEST(TensorSpec, RefusesStridesThatDoNotMatchOrRunBackwards) {
  expect_invalid("one stride per extent", [] { make_spec(f32, {2, 3}, {1}); });
  expect_invalid("negative", [] { make_spec(f32, {2, 3}, {3, -1}); });
  expect_invalid("negative", [] { make_spec(f32, {2, 3}, {INT64_MIN, 1}); });
  expect_invalid("negative extent", [] { make_spec(f32, {-2, 3}, {3, 1}); });
}

TEST(TensorSpec, RefusesWhatReachesPast63Bits) {
  expect_invalid("63 bits", [] { make_spec(f32, {huge, huge}); });
  expect_invalid("63 bits", [] { make_spec(f32, {0, huge, huge}); });
  expect_invalid("63 bits", [] { make_spec(f32, {3}, {std::int64_t{1} << 62}); });
  expect_invalid("63 bits", [] { make_spec(f32, {2, 2}, {INT64_MAX, INT64_MAX}); });
  expect_invalid("63 bits", [] { make_spec(DataType::int8, {2}, {INT64_MAX}); });
}

TEST(TensorSpec, DescribesTensorsLargerThanAnyMemory) {
  const TensorSpec spec = make_spec(DataType::uint8, {std::int64_t{1} << 31, std::int64_t{1} << 31});
  EXPECT_EQ(element_count(spec), std::int64_t{1} << 62);
  EXPECT_EQ(span_bytes(spec), std::size_t{1} << 62);
  EXPECT_EQ(spec.strides, (Dims{std::int64_t{1} << 31, 1}));
}

TEST(TensorSpec, TakesOnlyAlignmentsThatArePowersOfTwoUpTo16) {
  for (const int alignment : {1, 2, 4, 8, 16}) {
    EXPECT_EQ(make_spec(f32, {4}, {1}, static_cast<std::uint8_t>(alignment)).alignment, alignment);
  }
  for (const int alignment : {0, 3, 12, 32, 255}) {
    expect_invalid("alignment", [&] { make_spec(f32, {4}, {1}, static_cast<std::uint8_t>(alignment)); });
  }
}

TEST(TensorSpec, SpansFromTheFirstElementToTheEndOfTheLast) {
  EXPECT_EQ(span_bytes(make_spec(f32, {2, 3}, {10, 2})), (10 + 2 * 2 + 1) * 4u);
}

TEST(Tensor, ViewsMemoryThatTheCallerOwns) {
  float values[6] = {0, 1, 2, 3, 4, 5};
  const Tensor tensor = Tensor::view(values, f32, {2, 3});
  EXPECT_EQ(tensor.data(), values);
  EXPECT_EQ(tensor.as<float>()[5], 5);
  EXPECT_EQ(tensor.owner(), nullptr);
  EXPECT_TRUE(tensor.contiguous());
  EXPECT_EQ(tensor.device(), Device{});
}

TEST(Tensor, GivesNoPointerToWriteToConstMemory) {
  const float values[] = {1, 2};
  const Tensor tensor = Tensor::view(values, {2});
  EXPECT_EQ(tensor.as<const float>()[1], 2);
  EXPECT_EQ(tensor.as<void>(), values);
  expect_invalid("[Tensor::as] the tensor is read-only", [&] { tensor.as<float>(); });
}

TEST(Tensor, FindsItsAlignmentFromTheAddressOfItsFirstElement) {
  alignas(64) std::byte memory[128];
  const TensorSpec spec = make_spec(DataType::uint8, {4});
  const std::pair<std::size_t, int> cases[] = {{0, 16}, {1, 1}, {2, 2}, {4, 4}, {6, 2}, {8, 8}, {16, 16}, {48, 16}};
  for (const auto& [offset, alignment] : cases) {
    EXPECT_EQ(Tensor(memory + offset, spec).spec().alignment, alignment) << offset;
    EXPECT_EQ(Tensor(memory, spec, {}, offset).spec().alignment, alignment) << offset;
  }
}

TEST(Tensor, OfOpenClIsAlignedByItsOffsetAlone) {
  std::byte handle;  // an address that says nothing about where the data lies
  const Device device{DeviceType::opencl, 0};
  const TensorSpec spec = make_spec(f32, {4});
  EXPECT_EQ(Tensor(&handle, spec, device).spec().alignment, 16);
  EXPECT_EQ(Tensor(&handle, spec, device, 4).spec().alignment, 4);
}

TEST(Tensor, RefusesNullMemoryUnlessItIsEmpty) {
  expect_invalid("null data for shape [2,3]; pass memory of 24 bytes", [] { Tensor::view(nullptr, f32, {2, 3}); });
  EXPECT_NO_THROW(Tensor::view(nullptr, f32, {0, 3}));
}

TEST(Tensor, AllocatesAlignedMemoryThatLivesAsLongAsACopy) {
  Tensor copy;
  {
    const Tensor tensor = Tensor::empty(f32, {100});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u);
    copy = tensor;
  }
  copy.as<float>()[99] = 7;  // the sanitizers see to it that this memory is still there
  EXPECT_EQ(copy.owner().use_count(), 1);
}

TEST(Tensor, HasAnAddressEvenWhenItIsEmpty) { EXPECT_NE(Tensor::empty(f32, {0}).data(), nullptr); }

TEST(Tensor, SaysHowMuchMemoryCouldNotBeHad) {
  expect_error(ErrorCode::out_of_memory, "use a smaller shape", [] {
    Tensor::empty(DataType::uint8, {std::int64_t{1} << 31, std::int64_t{1} << 31});
  });
}

TEST(MetaWord, DiffersWhereverAnythingItNamesDiffers) {
  std::set<std::uint64_t> words;
  std::size_t made = 0;
  for (int dtype = 0; dtype < data_type_count; ++dtype) {
    for (const int type : {0, 1, 6}) {
      for (const int index : {0, 1, 255}) {
        for (const int alignment : {1, 16}) {
          for (const Dims& strides : {Dims{3, 1}, Dims{1, 2}}) {
            const Device device{static_cast<DeviceType>(type), static_cast<std::uint8_t>(index)};
            words.insert(meta_word(
                make_spec(static_cast<DataType>(dtype), {2, 3}, strides, static_cast<std::uint8_t>(alignment)),
                device));
            ++made;
          }
        }
      }
    }
  }
  for (std::size_t rank = 0; rank <= max_rank; ++rank, ++made) {
    if (rank == 2) continue;
    words.insert(meta_word(make_spec(f32, Dims::filled(rank, 2)), {}));
  }
  EXPECT_EQ(words.size(), made - 1);  // rank 2 was counted above
}

TEST(MetaWord, IsTheTensorsOwn) {
  const Tensor tensor = Tensor::empty(f32, {4, 4});
  EXPECT_EQ(tensor.meta(), meta_word(tensor.spec(), tensor.device()));
}

TEST(Tensor, LooksAtStridesItselfWhateverTheSpecClaims) {
  float memory[16] = {};
  TensorSpec spec = make_spec(DataType::float32, {4});
  spec.strides = {3};  // still claims to be contiguous
  EXPECT_FALSE(Tensor(memory, spec).contiguous());
  spec.strides = {-1};
  EXPECT_THROW(Tensor(memory, spec), Error);
}

}  // namespace
}  // namespace xpuruntime

// What the conformance suite's samples leave out: one value among many that is not finite, at every place.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cpu_tests {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// The bits of 1, infinity and NaN in memory of a dtype.
struct Kind {
  DataType dtype;
  std::uint32_t one;
  std::vector<std::uint32_t> bad;
};

const Kind kinds[] = {
    {DataType::float32, 0x3f800000, {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001}},
    {DataType::float16, 0x3c00, {0x7c00, 0xfc00, 0x7e00, 0x7c01}},
    {DataType::bfloat16, 0x3f80, {0x7f80, 0xff80, 0x7fc0, 0x7f81}},
};

class FoundInf : public ::testing::TestWithParam<const char*> {
 protected:
  /// Runs the kernel under test and returns the flag.
  float found(const Tensor& gradient, float inverse, const Tensor& out) {
    Dispatcher& dispatcher = Runtime::global().dispatcher();
    KernelPolicy policy;
    policy.force("unscale", GetParam());
    const ScopedPolicy scope(dispatcher, policy);
    float flag = -1;
    const Tensor scale = Tensor::view(&inverse, DataType::float32, {}),
                 to = Tensor::view(&flag, DataType::float32, {1});
    const Tensor* const inputs[] = {&gradient, &scale};
    const Tensor* const outputs[] = {&out, &to};
    dispatcher.dispatch({OpId::unscale, inputs, outputs});
    return flag;
  }

  /// One value of `bits` at `place` among ones.
  float found_at(const Kind& kind, std::int64_t n, std::int64_t stride, std::int64_t place, std::uint32_t bits) {
    const std::size_t size = size_of(kind.dtype);
    std::vector<std::byte> memory(static_cast<std::size_t>(n * stride) * size);
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(memory.data() + static_cast<std::size_t>(i * stride) * size, i == place ? &bits : &kind.one, size);
    }
    const Tensor gradient(memory.data(), make_spec(kind.dtype, {n}, {stride}));
    return found(gradient, 0.5f, Tensor::empty(DataType::float32, {n}));
  }
};

TEST_P(FoundInf, SeesOneBadValueAtEveryPlaceAndNoneWhereThereIsNone) {
  for (const Kind& kind : kinds) {
    for (const std::int64_t n : {1, 7, 67}) {
      for (const std::int64_t stride : {1, 2}) {
        EXPECT_EQ(found_at(kind, n, stride, -1, 0), 0) << to_string(kind.dtype) << " " << n;
        for (std::int64_t place = 0; place < n; ++place) {
          const std::uint32_t bits = kind.bad[static_cast<std::size_t>(place) % kind.bad.size()];
          ASSERT_EQ(found_at(kind, n, stride, place, bits), 1)
              << to_string(kind.dtype) << " " << n << " " << stride << " " << place;
        }
      }
    }
  }
}

TEST_P(FoundInf, SeesItInTheShareOfEveryThread) {
  constexpr std::int64_t n = 300'007;
  for (const std::int64_t place : {std::int64_t{0}, n / 3, n / 2, n - 1}) {
    EXPECT_EQ(found_at(kinds[0], n, 1, place, kinds[0].bad[0]), 1) << place;
  }
  EXPECT_EQ(found_at(kinds[0], n, 1, -1, 0), 0);
}

TEST_P(FoundInf, CountsProductsThatOverflowAndFactorsThatAreNotFinite) {
  const auto one = [&](float gradient, float inverse) {
    float out = 0;
    const Tensor in = Tensor::view(&gradient, DataType::float32, {1});
    return found(in, inverse, Tensor::view(&out, DataType::float32, {1}));
  };
  EXPECT_EQ(one(3e38f, 1), 0);
  EXPECT_EQ(one(3e38f, 2), 1);
  EXPECT_EQ(one(-3e38f, 2), 1);
  EXPECT_EQ(one(infinity, 0), 1);
  EXPECT_EQ(one(1, nan), 1);
  EXPECT_EQ(one(0, infinity), 1);
  EXPECT_EQ(one(1e-40f, 1e-10f), 0);
}

TEST_P(FoundInf, IsZeroWhereThereIsNothing) {
  const Tensor none = Tensor::empty(DataType::float32, {0, 3});
  EXPECT_EQ(found(none, nan, none), 0);
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, FoundInf, ::testing::Values("simd", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace xpuruntime::cpu_tests

#include "backends/cpu/base/amx.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/plan_run.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::cpu {
namespace {

/// Small integers: bf16 holds them and f32 holds every sum of their products, so results are exact.
double entry(std::int64_t i, std::int64_t j) { return static_cast<double>((i * 7 + j * 5 + i * j) % 11 - 5); }
Bfloat as_bfloat(double value) { return {encode_bfloat16(value)}; }

class Amx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Verdict amx = has_amx(cpu_tests::cpu_profile()); !amx.supported) GTEST_SKIP() << amx.reason;
    if (!amx_allowed()) GTEST_SKIP() << "the system lets this process use no tiles";
  }
};

/// a[m, k] b[k, n] with extents that end inside blocks. Row and column of a matrix are apart by more than they need.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transposed = false;
  AmxPairs pairs = AmxPairs::neighbours;
  bool accumulate = false;
};

std::int64_t column_in_tile(const Product& p, std::int64_t i) {
  if (p.pairs == AmxPairs::neighbours) return i;
  const std::int64_t within = i % 32;
  return i - within + (within < 16 ? 2 * within : 2 * (within - 16) + 1);
}

std::vector<Bfloat> packed_b(const Product& p) {
  const std::int64_t stride = (p.transposed ? p.k : p.n) + 3;
  std::vector<Bfloat> b(static_cast<std::size_t>((p.transposed ? p.n : p.k) * stride), as_bfloat(99));
  for (std::int64_t i = 0; i < p.k; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      b[static_cast<std::size_t>(p.transposed ? j * stride + i : i * stride + j)] = as_bfloat(entry(i, j));
    }
  }
  std::vector<Bfloat> packed(static_cast<std::size_t>(amx_packed_elements(p.k, p.n)), as_bfloat(99));
  if (p.transposed) {
    amx_pack_columns(b.data(), stride, p.k, p.n, packed.data());
  } else {
    amx_pack_rows(b.data(), stride, p.k, p.n, packed.data(), p.pairs);
  }
  return packed;
}

std::vector<Bfloat> padded_a(const Product& p) {
  const std::int64_t stride = amx_blocks(p.k) * 32 + 5, width = amx_blocks(p.k) * 32;
  std::vector<Bfloat> a(static_cast<std::size_t>(p.m * stride), as_bfloat(0));
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.k; ++j) {
      a[static_cast<std::size_t>(i * stride + column_in_tile(p, j))] = as_bfloat(entry(i, j + 2));
    }
  }
  std::vector<Bfloat> padded(static_cast<std::size_t>(amx_blocks(p.m) * 32 * width), as_bfloat(99));
  amx_pad(a.data(), stride, p.m, width, padded.data());
  return padded;
}

void expect_right(const Product& p) {
  const std::vector<Bfloat> a = padded_a(p), b = packed_b(p);
  const std::int64_t width = amx_blocks(p.n) * 32, depth = amx_blocks(p.k) * 32;
  std::vector<float> c(static_cast<std::size_t>(32 * width), 1000);
  {
    const AmxTiles tiles;
    amx_multiply({.a = a.data(),
                  .a_row = depth,
                  .b = b.data(),
                  .b_step = depth * 32,
                  .c = c.data(),
                  .c_row = width,
                  .row_tiles = p.m > 16 ? 2 : 1,
                  .depth_blocks = depth / 32,
                  .column_blocks = width / 32,
                  .accumulate = p.accumulate});
  }
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = p.accumulate ? 1000 : 0;
      for (std::int64_t l = 0; l < p.k; ++l) sum += entry(i, l + 2) * entry(l, j);
      ASSERT_EQ(c[static_cast<std::size_t>(i * width + j)], sum) << i << ", " << j << " of " << p.m << " " << p.n;
    }
  }
}

TEST_F(Amx, MultipliesRowsAsTheyLie) { expect_right({.m = 32, .n = 64, .k = 96}); }
TEST_F(Amx, PadsWhatEndsInsideABlockWithZeros) { expect_right({.m = 21, .n = 47, .k = 39}); }
TEST_F(Amx, LeavesTheSecondTileOfRowsOut) { expect_right({.m = 9, .n = 33, .k = 1}); }
TEST_F(Amx, AddsToWhatIsThere) { expect_right({.m = 32, .n = 32, .k = 64, .accumulate = true}); }
TEST_F(Amx, PacksATransposedOperand) {
  expect_right({.m = 32, .n = 64, .k = 64, .transposed = true});
  expect_right({.m = 17, .n = 13, .k = 45, .transposed = true});
}
TEST_F(Amx, PairsTheHalvesOfABlock) {
  expect_right({.m = 32, .n = 32, .k = 32, .pairs = AmxPairs::halves});
  expect_right({.m = 30, .n = 40, .k = 50, .pairs = AmxPairs::halves});
}

}  // namespace
}  // namespace xpuruntime::cpu

#include "dispatch/aliasing.h"

#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Aliasing : public ::testing::Test {
 protected:
  /// A tensor of f32 in `memory`, from element `at`.
  Tensor at(std::size_t at, const Dims& shape) { return Tensor::view(memory + at, DataType::float32, shape); }
  Tensor at(std::size_t at, const Dims& shape, const Dims& strides) {
    return Tensor(memory + at, make_spec(DataType::float32, shape, strides));
  }

  void dispatch(OpId op, std::vector<Tensor> inputs, const Tensor& out) {
    std::vector<const Tensor*> in;
    for (const Tensor& tensor : inputs) in.push_back(&tensor);
    const std::array<const Tensor*, 1> outputs = {&out};
    runtime.dispatcher().dispatch({op, in, outputs});
  }

  std::string refusal(OpId op, std::vector<Tensor> inputs, const Tensor& out) {
    std::fill_n(memory, 64, 3.0f);
    const std::string text = error_text(ErrorCode::invalid_argument, [&] { dispatch(op, inputs, out); });
    for (const float value : memory) EXPECT_EQ(value, 3.0f);
    return text;
  }

  alignas(64) float memory[64] = {};
  Runtime runtime{{false, false, {}}};
};

TEST_F(Aliasing, AnElementwiseOpMayWorkInPlace) {
  std::fill_n(memory, 64, -2.0f);
  dispatch(OpId::relu, {at(0, {8})}, at(0, {8}));
  EXPECT_EQ(memory[7], 0.0f);
  EXPECT_EQ(memory[8], -2.0f);
  dispatch(OpId::add, {at(8, {8}), at(16, {8})}, at(8, {8}));
  EXPECT_EQ(memory[8], -4.0f);
}

TEST_F(Aliasing, ManyElementsBetweenThoseOfAnotherTensorAreTaken) {
  constexpr std::int64_t count = 1 << 20;
  std::vector<float> shared(4 * count + 8, 1.0f);
  const auto spec = [](std::int64_t step) { return make_spec(DataType::float32, {count}, {step}); };
  dispatch(OpId::relu, {Tensor(shared.data(), spec(4))}, Tensor(shared.data() + 1, spec(2)));
  const Tensor in(shared.data(), spec(4)), over(shared.data() + 2, spec(2));
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatch(OpId::relu, {in}, over); }), "overlaps input 0");
}

TEST_F(Aliasing, UnscaleMayWriteOverTheGradientAloneAndOnlyWithTheProduct) {
  const auto unscale = [&](const Tensor& gradient, const Tensor& inverse, const Tensor& out, const Tensor& found) {
    const std::array<const Tensor*, 2> inputs = {&gradient, &inverse}, outputs = {&out, &found};
    runtime.dispatcher().dispatch({OpId::unscale, inputs, outputs});
  };
  std::fill_n(memory, 64, 3.0f);
  unscale(at(0, {8}), at(16, {1}), at(0, {8}), at(32, {1}));
  EXPECT_EQ(memory[0], 9.0f);
  EXPECT_EQ(memory[32], 0.0f);
  const auto refused = [&](const Tensor& gradient, const Tensor& inverse, const Tensor& out, const Tensor& found) {
    return error_text(ErrorCode::invalid_argument, [&] { unscale(gradient, inverse, out, found); });
  };
  EXPECT_HAS(refused(at(0, {1}), at(16, {1}), at(16, {1}), at(32, {1})), "output 0 overlaps input 1");
  EXPECT_HAS(refused(at(0, {1}), at(16, {1}), at(48, {1}), at(16, {1})), "output 1 overlaps input 1");
  EXPECT_HAS(refused(at(0, {1}), at(16, {1}), at(48, {1}), at(0, {1})), "output 1 overlaps input 0");
  EXPECT_HAS(refused(at(0, {1}), at(16, {1}), at(48, {1}), at(48, {1})), "output 1 overlaps output 0");
}

TEST_F(Aliasing, AnOutputPartlyOverAnInputIsRefusedBeforeAnythingIsWritten) {
  EXPECT_HAS(refusal(OpId::relu, {at(0, {8})}, at(4, {8})), "output 0 overlaps input 0");
  EXPECT_HAS(refusal(OpId::add, {at(32, {8}), at(0, {4, 1})}, at(0, {4, 8})), "output 0 overlaps input 1");
}

TEST_F(Aliasing, AnOutputInTheInputsPlaceIsRefusedWhereEachElementReadsMany) {
  EXPECT_HAS(refusal(OpId::matmul, {at(0, {4, 4}), at(32, {4, 4})}, at(0, {4, 4})), "write to memory of its own");
  EXPECT_HAS(refusal(OpId::softmax, {at(0, {4, 4})}, at(0, {4, 4})), "softmax: output 0 overlaps input 0");
}

TEST_F(Aliasing, TheSameBytesReadInAnotherOrderAreNotInPlace) {
  EXPECT_HAS(refusal(OpId::relu, {at(0, {4, 4}, {1, 4})}, at(0, {4, 4})), "overlaps");
}

TEST_F(Aliasing, ColumnsOfOneBufferSideBySideShareNothing) {
  for (std::size_t i = 0; i < 64; ++i) memory[i] = static_cast<float>(i) - 32;
  dispatch(OpId::relu, {at(0, {4, 8}, {16, 1})}, at(8, {4, 8}, {16, 1}));
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(memory[row * 16 + 8 + i], std::max(memory[row * 16 + i], 0.0f));
    }
  }
  EXPECT_HAS(refusal(OpId::relu, {at(0, {3, 9}, {16, 1})}, at(8, {3, 9}, {16, 1})), "overlaps");
}

TEST_F(Aliasing, SharedMemoryIsFoundAsABruteForceSearchFindsIt) {
  const Dims strides[] = {{4, 1}, {6, 1}, {7, 1}, {8, 1}, {10, 1}, {16, 1}, {1, 4}, {8, 2}, {12, 2}, {9, 3}, {0, 1}};
  for (const Dims& sa : strides) {
    for (const Dims& sb : strides) {
      for (std::size_t shift = 0; shift < 20; ++shift) {
        const Tensor a = at(0, {3, 4}, sa), b = at(shift, {3, 4}, sb);  // in either order below
        bool common = false;
        for (std::int64_t p = 0; p < 144; ++p) {
          const std::int64_t i = p / 48, j = p / 12 % 4, k = p / 4 % 3, l = p % 4;
          common |= i * sa[0] + j * sa[1] == static_cast<std::int64_t>(shift) + k * sb[0] + l * sb[1];
        }
        EXPECT_EQ(share_memory(a, b), common) << to_string(sa) << to_string(sb) << shift;
        EXPECT_EQ(share_memory(b, a), common) << to_string(sa) << to_string(sb) << shift;
      }
    }
  }
}

}  // namespace
}  // namespace xpuruntime

#include <cmath>
#include <cstring>

#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

constexpr DataType dtypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

class ElementwiseTest : public OpenClTest {
 protected:
  /// One rounding of the float sum: no difference at all is allowed.
  void check_add(Problem problem) {
    SCOPED_TRACE(to_string(problem) + " -> " + to_string(problem.outputs[0]));
    ASSERT_EQ(refusal("ADD_DIRECT", problem, profile()), "");
    const HostTensor a = random_tensor(problem.inputs[0]);
    const HostTensor b = random_tensor(problem.inputs[1]);
    HostTensor want(problem.outputs[0]);
    const Tensor output = upload(want);
    run(*prepare("ADD_DIRECT", problem), {upload(a), upload(b)}, output);
    Dims at = Dims::filled(want.spec.shape.size(), 0);
    if (element_count(want.spec) > 0) do
        want.set(element_at(want.spec, at),
                 static_cast<float>(a.get(element_at(a.spec, at))) + static_cast<float>(b.get(element_at(b.spec, at))));
      while (step(at, want.spec.shape));
    EXPECT_TRUE(download(output).bytes == want.bytes);
  }

  HostTensor cast(const HostTensor& from, DataType to) {
    Attributes attributes(OpId::cast);
    attributes.parse("dtype", to_string(to));
    const Problem problem = problem_of(OpId::cast, {from.spec}, attributes);
    EXPECT_EQ(refusal("CAST_DIRECT", problem, profile()), "");
    const Tensor output = upload(HostTensor(problem.outputs[0]));
    run(*prepare("CAST_DIRECT", problem), {upload(from)}, output);
    return download(output);
  }

  /// Every value of a 16-bit type.
  static HostTensor all_values(DataType dtype) {
    HostTensor all(make_spec(dtype, {1 << 16}));
    for (std::uint32_t i = 0; i < 1 << 16; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(all.bytes.data() + 2 * i, &bits, 2);
    }
    return all;
  }

  static void expect_rounded_once(const HostTensor& from, const HostTensor& got) {
    HostTensor want(got.spec);
    for (std::size_t i = 0; i < from.bytes.size() / from.width(); ++i) {
      want.set(i, from.get(i));
      if (std::isnan(from.get(i)))
        ASSERT_TRUE(std::isnan(got.get(i))) << i;
      else
        ASSERT_EQ(std::memcmp(got.bytes.data() + i * got.width(), want.bytes.data() + i * got.width(), got.width()), 0)
            << from.get(i) << " became " << got.get(i) << ", not " << want.get(i);
    }
  }
};

Problem add_of(const TensorSpec& a, const TensorSpec& b) {
  return problem_of(OpId::add, {a, b}, Attributes(OpId::add));
}

TEST_F(ElementwiseTest, AddIsExactInEveryStorageTypeAndMixesOfThem) {
  for (std::size_t i = 0; i < 3; ++i)
    for (const std::size_t shift : {0, 1, 2}) {
      Problem problem = add_of(make_spec(dtypes[i], {1013}), make_spec(dtypes[(i + shift) % 3], {1013}));
      set_outputs(problem, {make_spec(dtypes[(i + 2 * shift) % 3], {1013})});
      check_add(problem);
    }
}

TEST_F(ElementwiseTest, AddBroadcastsUpToEightExtents) {
  const DataType f32 = DataType::float32;
  check_add(add_of(make_spec(f32, {}), make_spec(f32, {})));
  check_add(add_of(make_spec(f32, {}), make_spec(f32, {7, 9})));
  check_add(add_of(make_spec(f32, {5, 1, 3}), make_spec(f32, {4, 1})));
  check_add(add_of(make_spec(f32, {2, 1, 3, 1, 2, 1, 3, 1}), make_spec(f32, {1, 2, 1, 3, 1, 2, 1, 5})));
  check_add(add_of(make_spec(f32, {0, 4}), make_spec(f32, {1, 4})));
}

TEST_F(ElementwiseTest, AddReadsAndWritesAnyStridesAndNothingElse) {
  Problem problem =
      add_of(make_spec(DataType::float16, {3, 4, 5}, {1, 100, 7}), make_spec(DataType::bfloat16, {4, 5}, {0, 3}));
  set_outputs(problem, {make_spec(DataType::float32, {3, 4, 5}, {2, 40, 8})});
  check_add(problem);
}

TEST_F(ElementwiseTest, CastGivesEveryNarrowValueUnchanged) {
  for (const DataType dtype : {DataType::float16, DataType::bfloat16}) {
    const HostTensor all = all_values(dtype);
    expect_rounded_once(all, cast(all, DataType::float32));
  }
}

TEST_F(ElementwiseTest, CastRoundsBetweenTheNarrowTypesOnce) {
  const HostTensor halves = all_values(DataType::float16);
  expect_rounded_once(halves, cast(halves, DataType::bfloat16));
  const HostTensor brains = all_values(DataType::bfloat16);
  expect_rounded_once(brains, cast(brains, DataType::float16));
}

TEST_F(ElementwiseTest, CastRoundsFloatsToNearestWithTiesToEven) {
  HostTensor floats(make_spec(DataType::float32, {1 << 18}));
  for (std::size_t i = 0; i < 1 << 18; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(random_());
    if (i % 4 == 1) bits = (bits & ~0x1fffu) | 0x1000u;                              // ties of f16
    if (i % 4 == 2) bits = (bits & ~0xffffu) | 0x8000u;                              // ties of bf16
    if (i % 2 == 1) bits = (bits & 0x807fffffu) | (100u + (bits >> 23) % 48) << 23;  // near the range of f16
    std::memcpy(floats.bytes.data() + 4 * i, &bits, 4);
  }
  for (const DataType dtype : {DataType::float16, DataType::bfloat16}) expect_rounded_once(floats, cast(floats, dtype));
}

TEST_F(ElementwiseTest, AddTakesFloatsOrIntegersAndSaysWhichItDoesNot) {
  const auto refused = [](const TensorSpec& a, const TensorSpec& b) {
    return refusal("ADD_DIRECT", add_of(a, b), DeviceProfile{});
  };
  const TensorSpec f32 = make_spec(DataType::float32, {4}), i32 = make_spec(DataType::int32, {4});
  EXPECT_EQ(refused(f32, f32), "");
  EXPECT_EQ(refused(i32, make_spec(DataType::int64, {4})), "");
  EXPECT_EQ(refused(f32, make_spec(DataType::float64, {4})),
            "input 1 is f64, and this kernel takes f32, f16, bf16, i64, i32, i16, i8 and u8");
  EXPECT_EQ(refused(f32, i32), "input 1 is i32, and this kernel takes floats beside floats");
}

// Vectors of PoCL's own waves are off by up to 1 beside an element past 39000.
TEST_F(ElementwiseTest, WavesAreRightBesideElementsThatAreFarOut) {
  for (const OpId op : {OpId::sin, OpId::cos, OpId::tan}) {
    HostTensor angles(make_spec(DataType::float32, {4096}));
    for (std::size_t i = 0; i < 4096; ++i) {
      const double near = (static_cast<double>(random_() % 20000) - 10000) * 0x1p-13;
      angles.set(i, i % 16 == 3 ? std::ldexp(1 + near, static_cast<int>(20 + i % 90)) : i % 16 == 5 ? 0x1p-30 : near);
    }
    const Problem problem = problem_of(op, {angles.spec}, Attributes(op));
    const Tensor output = upload(HostTensor(problem.outputs[0]));
    run(*prepare("ELEMENTWISE_DIRECT", problem), {upload(angles)}, output);
    const HostTensor got = download(output);
    for (std::size_t i = 0; i < 4096; ++i) {
      const double x = angles.get(i);
      const double want = op == OpId::sin ? std::sin(x) : op == OpId::cos ? std::cos(x) : std::tan(x);
      ASSERT_NEAR(got.get(i), want, 0x1p-20 * std::abs(want)) << to_string(op) << " of " << x;
    }
  }
}

TEST_F(ElementwiseTest, FunctionsOfAnyTypeNeedDoublesOnlyWhereAFloatHasNoRoom) {
  DeviceProfile without;
  const auto refused = [&](std::string_view kernel_name, OpId op, const std::vector<DataType>& inputs) {
    std::vector<TensorSpec> specs;
    for (const DataType dtype : inputs) specs.push_back(make_spec(dtype, {4}));
    return refusal(kernel_name, problem_of(op, specs, Attributes(op)), without);
  };
  const DataType f64 = DataType::float64, f32 = DataType::float32, i64 = DataType::int64, i8 = DataType::int8;
  EXPECT_EQ(refused("ELEMENTWISE_SINGLE", OpId::sin, {f64}), "the device has no fp64");
  EXPECT_EQ(refused("ELEMENTWISE_SINGLE", OpId::less, {f32, i64}), "the device has no fp64");
  EXPECT_EQ(refused("ELEMENTWISE_SINGLE", OpId::less, {i64, i64}), "");
  EXPECT_EQ(refused("ELEMENTWISE_SINGLE", OpId::less, {f32, i8}), "");
  EXPECT_EQ(refused("ELEMENTWISE_DIRECT", OpId::less, {f32, i64}),
            "input 1 is i64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refused("WHERE_DIRECT", OpId::where, {DataType::boolean, i64, i64}), "");
}

}  // namespace
}  // namespace xpuruntime::opencl

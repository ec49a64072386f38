#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

constexpr const char* kernels[] = {"MATMUL_REGISTER_BLOCKED", "MATMUL_TILED_LOCAL", "MATMUL_SPLIT_K", "MATMUL_DIRECT"};
constexpr DataType dtypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

class MatmulTest : public OpenClTest {
 protected:
  /// Runs the kernel on random operands and compares with sums in double.
  void check(std::string_view name, const Problem& problem, const std::string& token = {}) {
    SCOPED_TRACE(std::string(name) + " " + to_string(problem) + " " + token);
    ASSERT_EQ(refusal(name, problem, profile()), "");
    const HostTensor a = random_tensor(problem.inputs[0]);
    const HostTensor b = random_tensor(problem.inputs[1]);
    HostTensor c(problem.outputs[0]);
    const Tensor output = upload(c);
    run(*prepare(name, problem, token), {upload(a), upload(b)}, output);
    const HostTensor got = download(output);
    compare(problem, a, b, got);
    expect_gaps_untouched(got);
  }

 private:
  static void compare(const Problem& problem, const HostTensor& a, const HostTensor& b, const HostTensor& got) {
    const bool a_vector = a.spec.shape.size() == 1;
    const bool b_vector = b.spec.shape.size() == 1;
    const Dims& shape = got.spec.shape;
    if (element_count(got.spec) == 0) return;
    const std::size_t batch_rank = shape.size() - (a_vector ? 0 : 1) - (b_vector ? 0 : 1);
    const bool a_flipped = problem.attributes.boolean("transpose_a");
    const bool b_flipped = problem.attributes.boolean("transpose_b");
    const std::int64_t k = a.spec.shape[a.spec.shape.size() - (a_flipped ? 2 : 1)];
    Dims at = Dims::filled(shape.size(), 0);
    do {
      const Dims batch(std::span(at.data(), batch_rank));
      const std::int64_t row = a_vector ? 0 : at[batch_rank];
      const std::int64_t column = b_vector ? 0 : at.back();
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t step = 0; step < k; ++step) {
        const double product = value(a, batch, a_vector, a_flipped ? step : row, a_flipped ? row : step) *
                               value(b, batch, b_vector, b_flipped ? column : step, b_flipped ? step : column);
        sum += product;
        magnitude += std::abs(product);
      }
      const double bound = static_cast<double>(k) * std::ldexp(1.0, -24) * magnitude +
                           oracle::half_unit(got.spec.dtype) * std::abs(sum) * 1.01 + std::ldexp(1.0, -25);
      ASSERT_NEAR(got.get(element_at(got.spec, at)), sum, bound) << "at " << to_string(at);
    } while (step(at, shape));
  }

  /// Of a vector the larger of row and column: the other one is 0.
  static double value(const HostTensor& from, const Dims& batch, bool vector, std::int64_t row, std::int64_t column) {
    std::vector<std::int64_t> position(batch.begin(), batch.end());
    if (vector) {
      position = {std::max(row, column)};
    } else {
      position.insert(position.end(), {row, column});
      position.erase(position.begin(),
                     position.end() - static_cast<std::ptrdiff_t>(std::min(position.size(), from.spec.shape.size())));
      for (std::size_t d = 0; d + 2 < position.size(); ++d)
        if (from.spec.shape[d] == 1) position[d] = 0;
    }
    std::int64_t element = 0;
    for (std::size_t d = 0; d < position.size(); ++d) element += position[d] * from.spec.strides[d];
    return from.get(static_cast<std::size_t>(element));
  }

  static void expect_gaps_untouched(const HostTensor& got) {
    if (got.bytes.empty()) return;
    std::vector<bool> written(got.bytes.size() / got.width());
    Dims at = Dims::filled(got.spec.shape.size(), 0);
    do written[element_at(got.spec, at)] = true;
    while (step(at, got.spec.shape));
    for (std::size_t i = 0; i < got.bytes.size(); ++i) {
      const bool kept = got.bytes[i] == std::byte{0xa5};
      ASSERT_TRUE(written[i / got.width()] || kept) << "byte " << i << " between elements was written";
    }
  }
};

TEST_F(MatmulTest, EveryKernelAgreesWithDoubleOnOddSizes) {
  const Dims sizes[] = {{1, 1, 1},   {3, 5, 7},  {16, 16, 16},  {17, 33, 15},
                        {1, 70, 31}, {65, 1, 9}, {67, 130, 37}, {128, 64, 80}};
  for (const Dims& size : sizes)
    for (const char* name : kernels)
      check(name, matmul_of(make_spec(DataType::float32, {size[0], size[2]}),
                            make_spec(DataType::float32, {size[2], size[1]})));
}

// Added up one by one, a million equal terms lose four digits: every addition is rounded the same way.
TEST_F(MatmulTest, LongSumsKeepTheirDigits) {
  constexpr std::int64_t k = 1 << 20, block = 1024;
  constexpr float term = 0.3f;
  const double right = static_cast<double>(k) * term * term, bound = (block + k / block) * 0x1p-24 * right;
  for (const std::string_view name :
       {"MATMUL_REGISTER_BLOCKED", "MATMUL_TILED_LOCAL", "MATMUL_SPLIT_K", "MATMUL_DIRECT", "MATMUL_FEW_ROWS"})
    for (const char* text : {"matmul(f32[3,1048576], f32[1048576,2])", "linear(f32[3,1048576], f32[2,1048576])"}) {
      SCOPED_TRACE(std::string(name) + " " + text);
      const Problem problem = parse_problem(text, device);
      std::vector<Tensor> inputs;
      for (const TensorSpec& spec : problem.inputs) {
        HostTensor host(spec);
        for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i) host.set(i, term);
        inputs.push_back(upload(host));
      }
      const Tensor output = upload(HostTensor(problem.outputs[0]));
      run(*prepare(name, problem), inputs, output);
      const HostTensor got = download(output);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(got.get(i), right, bound);
    }
}

TEST_F(MatmulTest, EveryKernelTakesAllStorageTypesAndMixesOfThem) {
  for (std::size_t i = 0; i < 3; ++i)
    for (const std::size_t shift : {0, 1})
      for (const char* name : kernels)
        check(name, matmul_of(make_spec(dtypes[i], {19, 21}), make_spec(dtypes[(i + shift) % 3], {21, 18})));
}

TEST_F(MatmulTest, EveryKernelBroadcastsBatches) {
  const DataType f32 = DataType::float32;
  for (const char* name : kernels) {
    check(name, matmul_of(make_spec(f32, {3, 17, 5}), make_spec(f32, {3, 5, 6})));
    check(name, matmul_of(make_spec(f32, {2, 1, 3, 7, 5}), make_spec(f32, {4, 1, 5, 6})));
    check(name, matmul_of(make_spec(f32, {7, 5}), make_spec(f32, {2, 3, 5, 6})));
    const Problem six = matmul_of(make_spec(f32, {2, 1, 2, 1, 2, 1, 3, 4}), make_spec(f32, {1, 3, 1, 2, 1, 2, 4, 5}));
    if (name == std::string_view("MATMUL_SPLIT_K")) {
      EXPECT_EQ(refusal(name, six, profile()), "batch dims = 6 is over 5");
    } else {
      check(name, six);
    }
  }
}

TEST_F(MatmulTest, EveryKernelTakesVectors) {
  const DataType f32 = DataType::float32;
  for (const char* name : kernels) {
    check(name, matmul_of(make_spec(f32, {9}), make_spec(f32, {9})));
    check(name, matmul_of(make_spec(f32, {9}), make_spec(f32, {9, 20})));
    check(name, matmul_of(make_spec(f32, {20, 9}), make_spec(f32, {9})));
    check(name, matmul_of(make_spec(f32, {9}), make_spec(f32, {2, 3, 9, 4})));
  }
}

TEST_F(MatmulTest, EveryKernelHonoursTransposeFlags) {
  for (const char* name : kernels)
    for (const DataType dtype : dtypes) {
      check(name, matmul_of(make_spec(dtype, {21, 18}), make_spec(dtype, {21, 7}), true, false));
      check(name, matmul_of(make_spec(dtype, {18, 21}), make_spec(dtype, {7, 21}), false, true));
      check(name, matmul_of(make_spec(dtype, {2, 21, 18}), make_spec(dtype, {7, 21}), true, true));
    }
}

TEST_F(MatmulTest, EveryKernelReadsAndWritesAnyStrides) {
  const DataType f32 = DataType::float32;
  for (const char* name : kernels) {
    Problem problem = matmul_of(make_spec(f32, {2, 9, 11}, {400, 2, 20}), make_spec(f32, {11, 6}, {1, 13}));
    set_outputs(problem, {make_spec(f32, {2, 9, 6}, {3, 60, 8})});
    check(name, problem);
    check(name, matmul_of(make_spec(f32, {9, 11}, {0, 1}), make_spec(DataType::bfloat16, {11, 6}, {0, 2})));
  }
}

TEST_F(MatmulTest, OutputsMayBeOfAnotherTypeThanInputs) {
  for (const char* name : kernels)
    for (const DataType out : dtypes) {
      Problem problem = matmul_of(make_spec(DataType::float16, {70, 33}), make_spec(DataType::float16, {33, 66}));
      set_outputs(problem, {make_spec(out, {70, 66})});
      check(name, problem);
    }
}

TEST_F(MatmulTest, NothingToSumGivesZerosAndNothingToWriteIsNoWork) {
  const DataType f32 = DataType::float32;
  for (const char* name : kernels) {
    check(name, matmul_of(make_spec(f32, {5, 0}), make_spec(f32, {0, 6})));
    check(name, matmul_of(make_spec(f32, {0, 4}), make_spec(f32, {4, 6})));
    check(name, matmul_of(make_spec(f32, {0, 3, 4}), make_spec(f32, {4, 6})));
  }
}

TEST_F(MatmulTest, InfinitiesAtTheEdgeOfATileStayWhereTheyBelong) {
  // Tiles are padded with zeros; zero times infinity must not reach the result.
  const DataType f32 = DataType::float32;
  const Problem problem = matmul_of(make_spec(f32, {3, 5}), make_spec(f32, {5, 3}));
  HostTensor a(problem.inputs[0]);
  HostTensor b(problem.inputs[1]);
  for (std::size_t i = 0; i < 15; ++i) {
    a.set(i, 1);
    b.set(i, i % 3 == 1 ? INFINITY : 1);
  }
  for (const char* name : kernels) {
    const Tensor c = upload(HostTensor(problem.outputs[0]));
    run(*prepare(name, problem), {upload(a), upload(b)}, c);
    const HostTensor got = download(c);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(got.get(i), i % 3 == 1 ? INFINITY : 5) << name << " " << i;
  }
}

TEST_F(MatmulTest, TokensNameTheTile) {
  const DataType f32 = DataType::float32;
  const Problem small = matmul_of(make_spec(f32, {20, 20}), make_spec(f32, {20, 20}));
  const Problem large = matmul_of(make_spec(f32, {64, 20}), make_spec(f32, {20, 64}));
  EXPECT_EQ(prepare("MATMUL_TILED_LOCAL", small)->token(), "tile=16x16x16");
  EXPECT_EQ(prepare("MATMUL_TILED_LOCAL", large)->token(), "tile=64x64x16");
}

TEST_F(MatmulTest, ClBlastAgreesWithDoubleInEveryLayoutThatItTakes) {
  if (!profile().library_versions.contains("clblast")) GTEST_SKIP() << "libclblast.so.1 is not installed";
  if (std::getenv("XRT_TEST_REDUCED") != nullptr) GTEST_SKIP() << "its kernels take ten minutes to compile like that";
  for (const char* text :
       {"matmul(f32[1,1], f32[1,1])", "matmul(f32[17,15], f32[15,33])", "matmul(f32[67,37], f32[37,130])",
        "matmul(f32[400,300], f32[300,380])", "matmul(f32[21,18], f32[21,7]; transpose_a=true)",
        "matmul(f32[18,21], f32[7,21]; transpose_b=true)", "matmul(f32[18,21]{40,1}, f32[21,7]{1,30})",
        "matmul(f32[18,21]{1,20}, f32[21,7]{9,1}) -> f32[18,7]{1,19}", "matmul(f32[9], f32[9,20])",
        "matmul(f32[20,9], f32[9])", "matmul(f32[3,17,5], f32[3,5,6])", "matmul(f32[3,17,5], f32[5,6])",
        "matmul(f32[17,5], f32[3,5,6])", "matmul(f32[2,3,260,256], f32[2,3,256,258])"})
    check("MATMUL_CLBLAST", parse_problem(text, device));
}

// Choices about devices that are not here: no device needed.

DeviceProfile gpu() {
  DeviceProfile profile;
  profile.type = DeviceType::opencl;
  profile.max_work_group_size = 1024;
  profile.max_work_item_sizes = {1024, 1024, 64};
  profile.local_memory_bytes = 48 << 10;
  return profile;
}

const KernelSpec& row_named(std::string_view name) {
  return *std::find_if(std::begin(table), std::end(table), [&](const KernelSpec& row) { return row.name == name; });
}

TEST(MatmulSupport, EveryKernelTakesAnyLayoutOfItsDtypes) {
  const TensorSpec square = make_spec(DataType::float32, {4, 4});
  const TensorSpec strided = make_spec(DataType::float16, {4, 4}, {1, 4});
  for (const char* name : kernels) {
    const KernelSpec& row = row_named(name);
    EXPECT_EQ(row.accepts(matmul_of(strided, strided, true, true), gpu()).reason, "");
    EXPECT_EQ(row.accepts(matmul_of(make_spec(DataType::float64, {4, 4}), square), gpu()).reason,
              "input 0 is f64, and this kernel takes f32, f16 and bf16");
  }
}

TEST(MatmulSupport, ScalarsThatFloatsCannotHoldAreRefused) {
  const Problem problem = parse_problem("matmul(f32[4,4], f32[4,4]; alpha=1e60)", Device{DeviceType::opencl, 0});
  for (const char* name : kernels)
    EXPECT_EQ(row_named(name).accepts(problem, gpu()).reason, "alpha or beta does not fit in f32");
}

TEST(MatmulSupport, FewRowsSaysWhatItDoesNotTake) {
  const auto refused = [](const std::string& text) {
    return row_named("MATMUL_FEW_ROWS").accepts(parse_problem(text, Device{DeviceType::opencl, 0}), gpu()).reason;
  };
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4])"), "");
  EXPECT_EQ(refused("matmul(f32[8,16]{1,8}, f32[16,4])"), "");
  EXPECT_EQ(refused("linear(f32[2,4,16], f32[4,16])"), "");
  EXPECT_EQ(refused("matmul(f32[9,16], f32[16,4])"), "m = 9 is over 8");
  EXPECT_EQ(refused("linear(f32[3,3,16], f32[4,16])"), "m = 9 is over 8");
  EXPECT_EQ(refused("linear(f32[8,16]{1,8}, f32[4,16])"), "input 0 is not contiguous along k, as input 1 is");
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4]{8,2})"), "input 1 is contiguous neither along k nor along n");
}

TEST(MatmulSupport, ClBlastSaysWhatItDoesNotTake) {
  const auto refused = [](const std::string& text, const std::string& version = "1.5.3") {
    DeviceProfile profile = gpu();
    if (!version.empty()) profile.library_versions["clblast"] = version;
    const Problem problem = parse_problem(text, Device{DeviceType::opencl, 0});
    return make_kernel(row_named("MATMUL_CLBLAST"), problem.op, DeviceType::opencl)->supports(problem, profile).reason;
  };
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4]; alpha=0.5)"), "");
  EXPECT_EQ(refused("linear(f32[2,8,16], f32[4,16])"), "");
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4])", ""), "libclblast is not installed");
  EXPECT_EQ(refused("matmul(f16[8,16], f16[16,4])"), "input 0 is f16, and this kernel takes f32");
  EXPECT_EQ(refused("matmul(f32[8,0], f32[0,4])"), "input 0 is empty");
  EXPECT_EQ(refused("linear(f32[8,16], f32[4,16], f32[4])"), "has more than two inputs");
  EXPECT_EQ(refused("linear(f32[8,16], f32[4,16]; activation=relu)"),
            "has an activation, which this kernel does not compute");
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4]; alpha=1e60)"), "alpha does not fit in f32");
  EXPECT_EQ(refused("matmul(f32[8,16]{40,2}, f32[16,4])"), "input 0 is not a matrix with contiguous rows or columns");
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4]{0,1})"), "input 1 is not a matrix with contiguous rows or columns");
  EXPECT_EQ(refused("matmul(f32[8,16], f32[16,4]) -> f32[8,4]{8,2}"),
            "output 0 is not a matrix with contiguous rows or columns");
  EXPECT_EQ(refused("matmul(f32[2,3,8,16], f32[3,16,4])"), "batch dims = 2 is over 1");
  EXPECT_EQ(refused("matmul(f32[1,2147483648], f32[2147483648,1])"), "a matrix has 2^31 elements or more");
}

TEST(MatmulSupport, TiledRefusesDevicesThatAreTooSmall) {
  const Problem problem = matmul_of(make_spec(DataType::float32, {4, 4}), make_spec(DataType::float32, {4, 4}));
  const KernelSpec& tiled = row_named("MATMUL_TILED_LOCAL");
  DeviceProfile profile = gpu();
  profile.max_work_group_size = 128;
  EXPECT_EQ(tiled.accepts(problem, profile).reason, "needs work-groups of 256, the device allows 128");
  profile = gpu();
  profile.local_memory_bytes = 1024;
  EXPECT_EQ(tiled.accepts(problem, profile).reason, "needs 4352 bytes of local memory, the device has 1024");
  EXPECT_EQ(row_named("MATMUL_DIRECT").accepts(problem, DeviceProfile{}).reason, "");
}

TEST(MatmulSupport, BackwardIsRefused) {
  Problem problem = matmul_of(make_spec(DataType::float32, {4, 4}), make_spec(DataType::float32, {4, 4}));
  problem.direction = Direction::backward;
  for (const char* name : kernels)
    EXPECT_EQ(make_kernel(row_named(name), OpId::matmul, DeviceType::opencl)->supports(problem, gpu()).reason,
              "forward only");
}

TEST_F(MatmulTest, KernelsMakeEveryPlanThatTheyListByItsToken) {
  const Problem problem = parse_problem("matmul(f32[130,133], f32[133,165])", device);
  const PrepareContext context{device, profile(), driver()};
  for (const char* name : kernels) {
    const auto kernel = make_kernel(row_named(name), OpId::matmul, DeviceType::opencl);
    const std::vector<std::string> tokens = kernel->variants(problem, context);
    EXPECT_EQ(tokens.empty(), name == kernels[3]) << name;
    for (const std::string& token : tokens) check(name, problem, token);
    EXPECT_THROW(kernel->prepare(problem, context, "tile=3x3x3"), Error);
  }
}

}  // namespace
}  // namespace xpuruntime::opencl

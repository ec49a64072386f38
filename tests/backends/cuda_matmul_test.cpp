#include <algorithm>

#include "backends/cuda_fixture.h"

namespace xpuruntime::cuda_tests {
namespace {

using CudaMatmul = CudaTest;

/// One product of the definition, in float64: the sum and the sum of magnitudes, which bounds rounding errors.
struct Expected {
  double sum = 0;
  double magnitude = 0;
};

/// The index of an operand whose batch dims are broadcast against the output's.
Dims operand_index(const Dims& shape, const Dims& batch, std::int64_t row, std::int64_t column) {
  if (shape.size() == 1) return {row >= 0 ? row : column};
  Dims index = Dims::filled(shape.size(), 0);
  const std::size_t rank = shape.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) {
    index[i] = shape[i] == 1 ? 0 : batch[batch.size() - rank + i];
  }
  index[rank] = row;
  index[rank + 1] = column;
  return index;
}

Expected expected_at(Launch& launch, const Problem& problem, const Dims& out) {
  const Dims& a = problem.inputs[0].shape;
  const Dims& b = problem.inputs[1].shape;
  const bool transpose_a = problem.attributes.boolean("transpose_a");
  const bool transpose_b = problem.attributes.boolean("transpose_b");
  const std::size_t matrix_dims = (a.size() > 1 ? 1u : 0u) + (b.size() > 1 ? 1u : 0u);
  const Dims batch(std::span(out.data(), out.size() - matrix_dims));
  const std::int64_t m = a.size() > 1 ? out[batch.size()] : -1;
  const std::int64_t n = b.size() > 1 ? out.back() : -1;
  const std::int64_t k = transpose_a ? a[a.size() - 2] : a.back();
  Expected expected;
  for (std::int64_t i = 0; i < k; ++i) {
    const double x = launch.input(0).at(transpose_a ? operand_index(a, batch, i, m) : operand_index(a, batch, m, i));
    const double y = launch.input(1).at(transpose_b ? operand_index(b, batch, n, i) : operand_index(b, batch, i, n));
    expected.sum += x * y;
    expected.magnitude += std::fabs(x * y);
  }
  return expected;
}

double rounding_of(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 1e-15;
    case DataType::float16:
      return 0x1p-11;
    case DataType::bfloat16:
      return 0x1p-8;
    case DataType::float8_e4m3:
      return 0x1p-4;
    case DataType::float8_e5m2:
      return 0x1p-3;
    default:
      return 0x1p-24;
  }
}

/// Errors of the sum itself, as a part of the sum of magnitudes.
double summing_error(const Problem& problem, const std::string& kernel) {
  if (kernel == "reference" || problem.inputs[0].dtype == DataType::float64) return 1e-12;
  return problem.inputs[0].dtype == DataType::tfloat32 ? 2e-3 : 4e-5;
}

void expect_product(const std::string& text, const std::string& kernel, std::mt19937_64& random,
                    const std::string& token = {}) {
  SCOPED_TRACE(kernel + ": " + text + " " + token);
  const Problem problem = problem_of(text);
  Launch launch(problem, kernel, 0, token);
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  launch.fill(random);
  const Status status = launch.run();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(launch.output().margins_untouched());
  const double summing = summing_error(problem, kernel);
  const double rounding = rounding_of(problem.outputs[0].dtype);
  int wrong = 0;
  for_each_index(problem.outputs[0].shape, [&](const Dims& index) {
    const Expected expected = expected_at(launch, problem, index);
    const double value = launch.output().at(index);
    const double allowed = summing * expected.magnitude + 1.01 * rounding * std::fabs(expected.sum) + 0x1p-9 * rounding;
    if (std::fabs(value - expected.sum) <= allowed) return;  // false for NaN
    if (++wrong <= 3) ADD_FAILURE() << to_string(index) << " is " << value << ", not " << expected.sum;
  });
  EXPECT_EQ(wrong, 0) << launch.plan().token();
}

TEST_F(CudaMatmul, SkinnyMultipliesEveryRowCountAndLayout) {
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const int m : {1, 2, 3, 4, 5, 8, 9, 15, 16}) {
      const std::string rows = std::to_string(m);
      const std::string a = dtype + "[" + rows + ",";
      expect_product("matmul(" + a + "256], " + dtype + "[256,96])", "skinny", random());
      expect_product("matmul(" + a + "264], " + dtype + "[104,264]; transpose_b=true)", "skinny", random());
      expect_product("matmul(" + a + "131], " + dtype + "[131,37])", "skinny", random());
      expect_product("matmul(" + a + "131], " + dtype + "[37,131]; transpose_b=true)", "skinny", random());
    }
  }
}

TEST_F(CudaMatmul, SkinnySplitsLongSumsAmongWarps) {
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const std::string m : {"1", "2", "7", "16"}) {
      const std::string a = "matmul(" + dtype + "[" + m + ",";
      expect_product(a + "4104], " + dtype + "[4104,24])", "skinny", random());
      expect_product(a + "4104], " + dtype + "[24,4104]; transpose_b=true)", "skinny", random());
      expect_product(a + "2049], " + dtype + "[5,2049]; transpose_b=true)", "skinny", random());
      expect_product(a + "1], " + dtype + "[1,9])", "skinny", random());
      expect_product(a + "8], " + dtype + "[1,8]; transpose_b=true)", "skinny", random());
    }
  }
}

TEST_F(CudaMatmul, SkinnyCoversManyBlocks) {
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    expect_product("matmul(" + dtype + "[1,72], " + dtype + "[72,8200])", "skinny", random());
    expect_product("matmul(" + dtype + "[1,72], " + dtype + "[8200,72]; transpose_b=true)", "skinny", random());
    expect_product("matmul(" + dtype + "[12,72], " + dtype + "[4300,72]; transpose_b=true)", "skinny", random());
  }
}

TEST_F(CudaMatmul, SkinnyTakesStridesOffsetsVectorsAndWideOutputs) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(bf16[3,64]{80,1}, bf16[64,40]{48,1})",
           "matmul(bf16[3,64]{80,1}, bf16[64,40]{1,72})",
           "matmul(bf16[3,64]{81,1}, bf16[64,40]{1,73})",
           "matmul(bf16[3,64]{1,5}, bf16[64,40]{1,72})",
           "matmul(f32[64,3], f32[40,64]; transpose_a=true transpose_b=true)",
           "matmul(f16[3,64]/2, f16[64,40]/2)",
           "matmul(f16[3,64]/4, f16[64,40]{1,64}/8)",
           "matmul(f32[100], f32[100,30])",
           "matmul(f32[7,100], f32[100])",
           "matmul(bf16[104], bf16[104])",
           "matmul(bf16[9,64], bf16[64,40]{1,64}) -> f32[9,40]",
           "matmul(f16[2,64], f16[64,40]) -> f32[2,40]{50,1}",
           "matmul(bf16[9,64], bf16[64,40]{1,64}) -> bf16[9,40]{1,11}",
           "matmul(bf16[1,1,4,64], bf16[64,40])",
       }) {
    expect_product(text, "skinny", random());
  }
}

TEST_F(CudaMatmul, CublasLtMultipliesEveryDtypeAndTranspose) {
  if (!profile().library_versions.contains("cublasLt")) GTEST_SKIP() << "libcublasLt is not installed";
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f64", "f32", "tf32", "f16", "bf16"}) {
    const std::string open = "matmul(" + dtype;
    expect_product(open + "[17,129], " + dtype + "[129,65])", "cublasLt", random());
    expect_product(open + "[17,129], " + dtype + "[65,129]; transpose_b=true)", "cublasLt", random());
    expect_product(open + "[129,17], " + dtype + "[129,65]; transpose_a=true)", "cublasLt", random());
    expect_product(open + "[129,17], " + dtype + "[65,129]; transpose_a=true transpose_b=true)", "cublasLt", random());
    expect_product(open + "[64,256], " + dtype + "[256,128])", "cublasLt", random());
    expect_product(open + "[1,64], " + dtype + "[64,1])", "cublasLt", random());
    expect_product(open + "[64,1], " + dtype + "[1,64])", "cublasLt", random());
  }
}

TEST_F(CudaMatmul, CublasLtTakesLeadingDimensionsOffsetsAndBatches) {
  if (!profile().library_versions.contains("cublasLt")) GTEST_SKIP() << "libcublasLt is not installed";
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(f32[33,70]{80,1}, f32[70,45]{50,1})",
           "matmul(f32[33,70]{1,40}, f32[70,45]{1,77})",
           "matmul(f32[33,70], f32[70,45]) -> f32[33,45]{50,1}",
           "matmul(f32[33,70], f32[70,45]) -> f32[33,45]{1,40}",
           "matmul(bf16[33,70]{1,40}, bf16[70,45]{50,1}) -> bf16[33,45]{1,40}",
           "matmul(bf16[33,70]/2, bf16[70,45]/2)",
           "matmul(f16[33,70]/4, f16[70,45]/2) -> f32[33,45]/4",
           "matmul(bf16[3,33,64], bf16[3,64,40])",
           "matmul(bf16[3,33,64], bf16[64,40])",
           "matmul(bf16[33,64], bf16[3,64,40])",
           "matmul(bf16[2,3,33,64], bf16[2,3,64,40])",
           "matmul(f32[2,3,33,64], f32[1,1,64,40])",
           "matmul(f32[3,33,64]{5000,64,1}, f32[3,64,40]; transpose_a=false)",
           "matmul(f32[100], f32[100,30])",
           "matmul(f32[30,100], f32[100])",
       }) {
    expect_product(text, "cublasLt", random());
  }
}

TEST_F(CudaMatmul, CublasLtKeepsToTheWorkspaceLimitAndNamesItsAlgorithm) {
  if (!profile().library_versions.contains("cublasLt")) GTEST_SKIP() << "libcublasLt is not installed";
  Problem problem = problem_of("matmul(bf16[64,8192], bf16[8192,64])");
  const KernelSpec& spec = kernel(OpId::matmul, "cublasLt");
  EXPECT_EQ(spec.workspace_bytes(problem, profile()), std::uint64_t{32} << 20);
  problem.limits.workspace_bytes = 0;
  EXPECT_EQ(spec.workspace_bytes(problem, profile()), 0u);
  Launch launch(problem, "cublasLt");
  launch.fill(random());
  ASSERT_TRUE(launch.run().ok());  // without any workspace
  const std::string token = launch.plan().token();
  for (const char* part : {"algo=", " tile=", " stages=", " splitk=", " reduction=", " swizzle=", " custom="}) {
    EXPECT_NE(token.find(part), std::string::npos) << token;
  }
}

TEST_F(CudaMatmul, ReferenceTakesAnyLayoutBatchAndMixOfFloats) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(f32[17,33], f32[33,19])",
           "matmul(f64[17,33], f64[33,19])",
           "matmul(f16[17,33], f16[33,19])",
           "matmul(bf16[17,33], bf16[33,19])",
           "matmul(f8e4m3[17,33], f8e4m3[33,19]) -> f32[17,19]",
           "matmul(f8e5m2[17,33], f8e5m2[33,19]) -> bf16[17,19]",
           "matmul(f16[17,33], f32[33,19])",
           "matmul(bf16[17,33], f64[33,19])",
           "matmul(f32[17,33]{70,2}, f32[33,19]{40,2}) -> f32[17,19]{60,3}",
           "matmul(f32[2,1,5,7], f32[3,7,4])",
           "matmul(f32[2,3,5,7], f32[3,7,4]; transpose_a=false)",
           "matmul(f32[4,7,5], f32[1,4,7]; transpose_a=true transpose_b=true)",
           "matmul(f32[100], f32[2,100,30])",
           "matmul(f32[2,7,100], f32[100])",
           "matmul(f32[100], f32[100])",
           "matmul(f32[3,0], f32[0,4])",
       }) {
    expect_product(text, "reference", random());
  }
}

TEST_F(CudaMatmul, NothingToComputeIsNothingToDo) {
  for (const std::string text : {"matmul(f32[0,5], f32[5,4])", "matmul(f32[3,5], f32[5,0])"}) {
    expect_product(text, "skinny", random());
    expect_product(text, "reference", random());
  }
  expect_product("matmul(f32[0,3,5], f32[5,4])", "reference", random());
  expect_product("matmul(bf16[3,0], bf16[0,40])", "skinny", random());  // an empty sum is 0
}

TEST_F(CudaMatmul, GivesTheSameBitsEveryTime) {
  for (const std::string name : {"skinny", "cublasLt", "reference"}) {
    for (const std::string text :
         {"matmul(bf16[5,4096], bf16[4096,200])", "matmul(bf16[5,4096], bf16[200,4096]; transpose_b=true)"}) {
      Launch launch(problem_of(text), name);
      if (!launch.verdict().supported) continue;
      launch.fill(random());
      ASSERT_TRUE(launch.run().ok());
      std::vector<double> first;
      for_each_index(launch.output().spec().shape,
                     [&](const Dims& index) { first.push_back(launch.output().at(index)); });
      for (int again = 0; again < 5; ++again) {
        ASSERT_TRUE(launch.queue().ok() && driver().synchronize(0, {}).ok() && launch.output().download().ok());
        std::size_t i = 0;
        for_each_index(launch.output().spec().shape,
                       [&](const Dims& index) { ASSERT_EQ(launch.output().at(index), first[i++]) << name; });
      }
    }
  }
}

// Each algorithm that the library proposes is a plan of its own, which its token brings back.
TEST_F(CudaMatmul, CublasLtMakesEveryPlanThatItListsByItsToken) {
  SCOPED_TRACE(seed_text());
  const KernelSpec& lt = kernel(OpId::matmul, "cublasLt");
  const PrepareContext context{Device{DeviceType::nvidia, 0}, profile(), driver()};
  std::size_t most = 0;
  for (const std::string text :
       {"matmul(bf16[64,256], bf16[96,256]; transpose_b=true)", "matmul(f16[3,17,72], f16[3,72,40])",
        "matmul(f32[130,64], f32[64,70])", "matmul(bf16[17,63], bf16[63,31])"}) {
    const Problem problem = problem_of(text);
    if (!lt.accepts(problem, profile()).supported) GTEST_SKIP() << lt.accepts(problem, profile()).reason;
    const std::vector<std::string> tokens = lt.variants(problem, context);
    most = std::max(most, tokens.size());
    ASSERT_FALSE(tokens.empty());
    for (const std::string& token : tokens) expect_product(text, "cublasLt", random(), token);
    EXPECT_THROW(Launch(problem, "cublasLt", 0, "algo=9999 tile=1x1"), Error);
  }
  EXPECT_GT(most, 1u);
}

}  // namespace
}  // namespace xpuruntime::cuda_tests

// What the CUDA kernels refuse, and those beyond matmul on what the cases of every backend leave out: long rows, every
// way to share a row, rows that begin anywhere, reductions in parts, tiles, and values that cannot be right.

#include <algorithm>
#include <cmath>

#include "backends/cuda_fixture.h"
#include "backends/oracle.h"
#include "xpuruntime/core/float_formats.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cuda_tests {
namespace {

/// A device that need not be here. The stub has no kernels to ask.
class CudaVerdicts : public testing::Test {
 protected:
  void SetUp() override {
    if (backend().kernels().empty()) GTEST_SKIP() << driver().why_absent();
    h200_ = DeviceProfile::load(XRT_TEST_DATA "/profiles/h200.json");
  }
  std::string reason(const std::string& name, const std::string& text) const {
    const Problem problem = problem_of(text);
    return kernel(problem.op, name).accepts(problem, h200_).reason;
  }

  DeviceProfile h200_;
};

TEST_F(CudaVerdicts, TableGoesFromFastestToReference) {
  std::vector<std::string> names;
  for (const KernelSpec& spec : backend().kernels()) {
    names.push_back(std::string(to_string(*spec.ops.begin())) + "/" + std::string(spec.name));
    EXPECT_TRUE(spec.deterministic);
    EXPECT_EQ(spec.directions, Directions::forward);
  }
  names.resize(5);
  EXPECT_EQ(names, (std::vector<std::string>{"matmul/skinny", "matmul/cublasLt", "matmul/cublas", "matmul/cutlass",
                                             "matmul/reference"}));
}

TEST_F(CudaVerdicts, SkinnySaysWhatItDoesNotTake) {
  EXPECT_EQ(reason("skinny", "matmul(bf16[64,64], bf16[64,64])"), "");
  EXPECT_EQ(reason("skinny", "linear(f16[4,16,64], f16[64,64], f32[64]; activation=gelu)"), "");
  EXPECT_EQ(reason("skinny", "matmul(bf16[65,64], bf16[64,64])"), "m = 65 is over 64");
  EXPECT_EQ(reason("skinny", "linear(bf16[5,13,64], bf16[64,64])"), "m = 65 is over 64");
  EXPECT_EQ(reason("skinny", "matmul(f32[17,64], f32[64,64])"), "m = 17 is over 16");
  EXPECT_EQ(reason("skinny", "matmul(bf16[1,1073741760], bf16[1073741760,8])"), "");
  EXPECT_EQ(reason("skinny", "matmul(bf16[1,1073741761], bf16[1073741761,8])"), "k = 1073741761 is over 1073741760");
  EXPECT_EQ(reason("skinny", "linear(bf16[1,8], bf16[1073741760,8])"), "");
  EXPECT_EQ(reason("skinny", "linear(bf16[1,8], bf16[1073741761,8])"), "n = 1073741761 is over 1073741760");
  EXPECT_EQ(reason("skinny", "linear(bf16[1,8], bf16[8,8]) -> f16[1,8]"),
            "output 0 is f16, and this kernel takes f32 and the input's bf16");
  EXPECT_EQ(reason("skinny", "matmul(f32[2,2,64], f32[64,64], f32[2,1,64])"), "one stride does not walk the rows of c");
  EXPECT_EQ(reason("skinny", "matmul(f64[1,64], f64[64,64])"),
            "input 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason("skinny", "matmul(f16[1,64], f32[64,64])"), "input 1 is f32, and this kernel takes the input's f16");
  EXPECT_EQ(reason("skinny", "matmul(f32[2,1,64], f32[64,64])"), "");  // two rows
  EXPECT_EQ(reason("skinny", "matmul(f32[2,1,64], f32[2,64,64])"), "batch = 2 is over 1");
  EXPECT_EQ(reason("skinny", "matmul(f32[0,1,64], f32[0,64,64])"), "input 0 is empty");
  EXPECT_EQ(reason("skinny", "matmul(f32[1,64], f32[64,64]{130,2})"), "no stride of the second input is 1");
  EXPECT_EQ(reason("skinny", "matmul(f32[1,64], f32[64,64]/2)"), "input 1 is not aligned to its elements");
}

TEST_F(CudaVerdicts, CublasLtSaysWhatItDoesNotTake) {
  EXPECT_EQ(reason("cublasLt", "matmul(bf16[17,64], bf16[64,64])"), "");
  EXPECT_EQ(reason("cublasLt", "matmul(bf16[2,3,17,64], bf16[64,64])"), "");
  EXPECT_EQ(reason("cublasLt", "matmul(f32[17,64]{1,20}, f32[64,64])"), "");
  EXPECT_EQ(reason("cublasLt", "matmul(f16[17,64], f32[64,64])"), "dtypes f16, f32 -> f32 are not taken together");
  EXPECT_EQ(reason("cublasLt", "matmul(f32[0,64], f32[64,64])"), "input 0 is empty");
  EXPECT_EQ(reason("cublasLt", "matmul(f32[2,1,5,7], f32[3,7,4])"), "one stride does not walk the batch");
  EXPECT_EQ(reason("cublasLt", "matmul(f32[17,64]{200,2}, f32[64,64])"),
            "a matrix has no leading dimension: neither stride is 1");
  EXPECT_EQ(reason("cublasLt", "matmul(f32[17,64]{0,1}, f32[64,64])"),
            "a matrix has no leading dimension: neither stride is 1");
  h200_.library_versions.erase("cublasLt");
  EXPECT_EQ(reason("cublasLt", "matmul(bf16[17,64], bf16[64,64])"), "libcublasLt is not installed");
}

TEST_F(CudaVerdicts, EveryKernelRefusesAnOldDevice) {
  h200_.compute_capability_major = 7;
  h200_.compute_capability_minor = 5;
  for (const char* name : {"skinny", "cublasLt", "cublas", "reference"}) {
    EXPECT_EQ(reason(name, "matmul(f32[1,8], f32[8,8])"), "compute capability 7.5 is below 8.0");
  }
  EXPECT_EQ(reason("elementwise", "add(f32[8], f32[8])"), "compute capability 7.5 is below 8.0");
}

TEST_F(CudaVerdicts, ElementwiseKernelsSayWhichDtypesTheyTake) {
  EXPECT_EQ(reason("elementwise", "add(f32[8], f16[8])"), "input 1 is f16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("elementwise", "add(u8[8], u8[8])"), "");
  EXPECT_EQ(reason("elementwise", "add(i16[8], i16[8])"),
            "input 0 is i16, and this kernel takes f64, f32, f16, bf16, i64, i32, i8 and u8");
  EXPECT_EQ(reason("reference", "add(i16[8], f16[8])"), "");
  EXPECT_EQ(reason("elementwise", "cast(f32[8]; dtype=f8e4m3)"), "");
  EXPECT_EQ(reason("elementwise", "cast(i64[8]; dtype=bool)"), "");
  EXPECT_EQ(reason("elementwise", "cast(tf32[8]; dtype=f32)"), "");
  EXPECT_EQ(reason("elementwise", "maximum(f32[8], i32[8])"), "input 1 is i32, and this kernel takes the input's f32");
  EXPECT_EQ(reason("elementwise", "pow(f64[8], f64[8])"),
            "input 0 is f64, and this kernel takes f32, f16, bf16, i64, i32, i8 and u8");
  EXPECT_EQ(reason("elementwise", "bitwise_and(i16[8], i16[8])"),
            "input 0 is i16, and this kernel takes i64, i32, i8, u8 and bool");
  EXPECT_EQ(reason("elementwise", "less(i64[8], i64[8])"), "");
  EXPECT_EQ(reason("elementwise", "less(f32[8], f32[8]) -> f32[8]"), "output 0 is f32, and this kernel takes bool");
  EXPECT_EQ(reason("elementwise", "neg(i8[8]) -> f32[8]"), "output 0 is f32, and this kernel takes the input's i8");
  EXPECT_EQ(reason("elementwise", "where(bool[8], f8e4m3[8], f8e4m3[8])"), "");
  EXPECT_EQ(reason("elementwise", "where(bool[8], f32[8], f32[8]) -> f16[8]"),
            "output 0 is f16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("reference", "where(bool[8], f32[8], f32[8]) -> f16[8]"), "");
  EXPECT_EQ(reason("reference", "matmul(i32[2,2], i32[2,2])"), "");
  EXPECT_EQ(reason("elementwise", "dropout(f16[4,8]{1,4}, i64[2])"), "");
  EXPECT_EQ(reason("elementwise", "dropout(f32[8]) -> f16[8]"),
            "output 0 is f16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("elementwise", "unscale(bf16[8], f32[1])"), "");
  EXPECT_EQ(reason("elementwise", "unscale(f16[8], f32[1]) -> f16[8], f32[1]"),
            "output 0 is f16, and this kernel takes f32");
}

TEST_F(CudaVerdicts, LossKernelsSayWhatTheyDoNotTake) {
  EXPECT_EQ(reason("elementwise", "nll_loss(bf16[4,8,3]{1,12,4}, i32[4,3], f32[8])"), "");
  EXPECT_EQ(reason("elementwise", "nll_loss(f16[4,8], i64[4], bf16[8])"),
            "input 2 is bf16, and this kernel takes f32 or the input's f16");
  EXPECT_EQ(reason("elementwise", "nll_loss(f32[4,8], i64[4], f32[8]{2})"), "input 2 is not contiguous");
  EXPECT_EQ(reason("elementwise", "kl_div(f32[4,8], f32[8])"), "");
  EXPECT_EQ(reason("elementwise", "kl_div(f32[8], f16[8])"), "input 1 is f16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("elementwise", "poisson_nll_loss(f16[8], i64[8])"), "");
  EXPECT_EQ(reason("elementwise", "poisson_nll_loss(f64[8], f64[8])"),
            "input 0 is f64, and this kernel takes f32, f16 and bf16");
}

TEST_F(CudaVerdicts, RowKernelsSayWhatTheyDoNotTake) {
  EXPECT_EQ(reason("rows", "softmax(bf16[4,32000])"), "");
  EXPECT_EQ(reason("rows", "softmax(f64[4,8])"), "input 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason("rows", "softmax(f32[4,8]; dim=0)"), "the dim is not the last one");
  EXPECT_EQ(reason("rows", "softmax(f32[4,8]{1,4})"), "the elements of a row are not contiguous");
  EXPECT_EQ(reason("rows", "softmax(f32[2,3,8]{80,8,1})"), "the rows are not evenly spaced");
  EXPECT_EQ(reason("rows", "rms_norm(f32[4,8], f32[8]{2})"), "input 1 is not contiguous");
  EXPECT_EQ(reason("rows", "layer_norm(f32[4,8]) -> bf16[4,8]"),
            "output 0 is bf16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("rows", "normalize(f32[4,8,2])"), "the dim is not the last one");
  EXPECT_EQ(reason("rows", "normalize(f32[4,8]; p=1)"), "p is not 2");
  EXPECT_EQ(reason("rows", "cross_entropy(f32[4,8], i64[4]; label_smoothing=0.1)"), "label_smoothing is not supported");
  EXPECT_EQ(reason("rows", "cross_entropy(f32[4,8], f32[4,8])"), "targets of probabilities are not supported");
  EXPECT_EQ(reason("rows", "cross_entropy(f32[4,8,2], i64[4,2])"), "the class dim is not the last one");
  EXPECT_EQ(reason("rows", "embedding(i64[4], f32[9,8]{1,9})"), "the rows of input 1 are not contiguous");
  EXPECT_EQ(reason("reduce", "reduce_sum(f32[4,8,2]; dim=0,2)"),
            "the reduced dims are not next to each other and contiguous");
  EXPECT_EQ(reason("reduce", "reduce_sum(bf16[2147483647,8]; dim=1)"), "");
  EXPECT_EQ(reason("reduce", "reduce_sum(bf16[2147483648,8]; dim=1)"), "outputs = 2147483648 is over 2147483647");
  EXPECT_EQ(reason("reduce", "reduce_max(bf16[8,2147483648]; dim=0)"), "outputs = 2147483648 is over 2147483647");
  EXPECT_EQ(reason("reduce", "reduce_sum(f16[1073741824,536870912]{0,1}; dim=1)"),
            "outputs = 1073741824 is over 1073741823");
  EXPECT_EQ(reason("reduce", "reduce_sum(i32[4])"), "input 0 is i32, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason("copy", "copy(f32[4]) -> bf16[4]"), "input 0 is f32, and this kernel takes the output's bf16");
  EXPECT_EQ(reason("rows", "gather(bf16[7,5], i64[3]) -> f32[3,5]"),
            "output 0 is f32, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("copy", "pad(bf16[7], i64[]; pads=1,2)"), "");
  EXPECT_EQ(reason("reduce", "arg_max(f8e4m3[8,6]{1,8}) -> i32[8]"), "");
}

TEST_F(CudaVerdicts, KernelsOfADecodersLayerSayWhatTheyDoNotTake) {
  EXPECT_EQ(reason("rows", "add_rms_norm(bf16[4,8], bf16[4,8], f32[8])"), "");
  EXPECT_EQ(reason("rows", "add_rms_norm(bf16[4,8], f32[4,8])"),
            "input 1 is f32, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("rows", "add_rms_norm(bf16[4,8], bf16[4,8]) -> bf16[4,8], f32[4,8]"),
            "output 1 is f32, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("rows", "add_rms_norm(f32[4,8], f32[4,8]{1,4})"), "the elements of a row are not contiguous");
  EXPECT_EQ(reason("elementwise", "silu_mul(f64[8])"), "input 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason("elementwise", "silu_mul(bf16[8]) -> f32[4]"),
            "output 0 is f32, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("elementwise", "rope(bf16[3,2,8]{1,24,3}, i32[3], f32[9,4], f16[9,4])"), "");
  EXPECT_EQ(reason("elementwise", "rope(f32[3,2,8], i64[3], f64[9,4], f64[9,4])"),
            "input 2 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason("elementwise", "rope(f32[3,2,8], i64[3], f32[9,4], f32[9,4]) -> f16[3,2,8]"),
            "output 0 is f16, and this kernel takes the input's f32");
  EXPECT_EQ(reason("copy", "kv_append(i8[2,2,8,4], f8e4m3[2,2,8,4], i8[2,2,1,4], f8e4m3[2,2,1,4], i32[2])"), "");
  EXPECT_EQ(reason("copy", "kv_append(bf16[2,2,8,4], bf16[2,2,8,4], bf16[2,2,1,4], f32[2,2,1,4], i32[2])"),
            "input 3 is f32, and this kernel takes the cache's bf16");
}

constexpr Device gpu{DeviceType::nvidia, 0};
constexpr const char* short_floats[] = {"f32", "f16", "bf16"};

using CudaOps = CudaTest;

/// Against float64, by the kernel named; where the op may write over inputs, that too.
void expect_right(const std::string& text, const std::string& kernel, oracle::Fill fill = oracle::Fill::usual) {
  Runtime& runtime = Runtime::global();
  KernelPolicy policy;
  policy.force(to_string(parse_problem(text).op), kernel);
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const auto run = oracle::case_of(text, gpu, fill);
  const oracle::Result result = run->through(runtime);
  EXPECT_EQ(result.kernel, kernel);
  EXPECT_EQ(run->compare(result), "") << text;
  const auto over = oracle::inputs_to_overwrite(problem_of(text));
  if (std::none_of(over.begin(), over.end(), [](const auto& input) { return input.has_value(); })) return;
  EXPECT_EQ(run->compare(run->in_place(runtime)), "") << text << " in place";
}

void expect_right_in_every_dtype(std::initializer_list<const char*> texts, const std::string& kernel) {
  for (const char* text : texts) {
    for (const char* dtype : short_floats) expect_right(with_dtype(text, dtype), kernel);
  }
}

TEST_F(CudaOps, RowsAreSharedByAsManyThreadsAsTheyNeed) {
  // Columns for a part of a warp, for 2, 4 and 8 vectors a thread, for blocks, and for rows that are read twice.
  for (const int columns : {1, 24, 200, 264, 600, 1100, 2040, 4096, 9001}) {
    const std::string c = std::to_string(columns), x = "(T[270," + c + "]";
    for (const std::string& text : {"softmax" + x + ")", "rms_norm" + x + ", T[" + c + "])",
                                    "add_rms_norm" + x + ", T[270," + c + "], T[" + c + "])",
                                    "layer_norm" + x + ", f32[" + c + "], T[" + c + "])", "normalize" + x + ")"}) {
      for (const char* dtype : {"f32", "bf16"}) expect_right(with_dtype(text, dtype), "rows");
    }
  }
  expect_right_in_every_dtype({"log_softmax(T[270,600])", "log_softmax(T[270,2040])", "layer_norm(T[270,4096])",
                               "softmax(T[270,40001])", "log_softmax(T[270,40008])"},
                              "rows");
}

TEST_F(CudaOps, BlocksGoFromRowToRow) {
  expect_right_in_every_dtype(
      {"rms_norm(T[40000,24], T[24])", "add_rms_norm(T[9000,264], T[9000,264], T[264])",
       "layer_norm(T[3000,1096], T[1096], T[1096])", "layer_norm(T[3000,1101], T[1101], T[1101])",
       "layer_norm(T[700,8192], T[8192])", "cross_entropy(T[9000,1001], i64[9000]; ignore_index=3)",
       "cross_entropy(T[9000,1000], i64[9000]; reduction=none)"},
      "rows");
}

TEST_F(CudaOps, FewRowsAndLongOnes) {
  for (const char* rows : {"1", "3"}) {
    for (const char* columns : {"264", "2040", "4096", "8192", "20001", "40008", "151936"}) {
      const std::string x = std::string("(T[") + rows + "," + columns + "]", w = std::string(", T[") + columns + "]";
      for (const std::string& text :
           {"softmax" + x + ")", "log_softmax" + x + ")", "rms_norm" + x + w + ")", "layer_norm" + x + w + w + ")",
            "add_rms_norm" + x + ", " + x.substr(1) + w + ")"}) {
        for (const char* dtype : short_floats) expect_right(with_dtype(text, dtype), "rows");
      }
    }
  }
}

TEST_F(CudaOps, RowsLongerThanRegisters) {
  // One block and clusters of 2, 4 and 8, each with vectors in shared memory and without.
  for (const char* text :
       {"softmax(T[140,50257])", "softmax(T[140,86016])", "softmax(T[140,86025])", "log_softmax(T[70,128256])",
        "softmax(T[34,240001])", "softmax(T[17,400000])", "log_softmax(T[17,700001])"}) {
    for (const char* dtype : {"bf16", "f32"}) expect_right(with_dtype(text, dtype), "rows");
  }
  expect_right("softmax(bf16[70,90001]/2) -> bf16[70,90001]/4", "rows");
  expect_right("softmax(bf16[140,60001])", "rows", oracle::Fill::special);
}

TEST_F(CudaOps, ManyRows) {
  expect_right_in_every_dtype(
      {"rms_norm(T[2000,1024], T[1024])", "add_rms_norm(T[1500,2048], T[1500,2048], T[2048])",
       "normalize(T[2000,1024])", "rms_norm(T[270,8192])", "layer_norm(T[2000,1024], T[1024], T[1024])",
       "cross_entropy(T[9001,512], i64[9001]; ignore_index=3)"},
      "rows");
  expect_right("softmax(f32[140003,60])", "rows");
  expect_right("log_softmax(bf16[270403,64])", "rows");
}

TEST_F(CudaOps, RowsMayBeginAnywhere) {
  for (const char* columns : {"7", "33", "600", "4099"}) {
    for (const char* text :
         {"softmax(bf16[9,C]/2) -> bf16[9,C]/2", "softmax(bf16[9,C]/2) -> bf16[9,C]/4",
          "softmax(f16[9,C]) -> f16[9,C]/8", "softmax(f32[9,C]/4) -> f32[9,C]",
          "softmax(bf16[9,C]{5000,1}) -> bf16[9,C]{5003,1}", "log_softmax(f32[9,C]{4103,1}) -> f32[9,C]{4200,1}",
          "rms_norm(bf16[9,C]/2, bf16[C]/2) -> bf16[9,C]/2",
          "add_rms_norm(bf16[9,C]/2, bf16[9,C]/4, bf16[C]/2) -> bf16[9,C]/8, bf16[9,C]",
          "add_rms_norm(f16[9,C], f16[9,C]{5001,1}) -> f16[9,C]{5000,1}, f16[9,C]/2",
          "add_rms_norm(f32[9,C]/4, f32[9,C]/4, f32[C]) -> f32[9,C]/4, f32[9,C]/4",
          "layer_norm(f16[9,C]{5001,1}, f16[C]/2, f32[C]/4) -> f16[9,C]{4999,1}",
          "cross_entropy(bf16[9,C]/2, i64[9]; reduction=none)", "cross_entropy(f16[9,C]{5001,1}, i32[9])",
          "reduce_sum(bf16[9,C]/2; dim=1)", "reduce_max(f16[9,C]{5001,1}; dim=1)"}) {
      const Problem problem = problem_of(cases::replaced(text, "C", columns));
      const bool reduces = problem.op == OpId::reduce_sum || problem.op == OpId::reduce_max;
      expect_right(to_string(problem), reduces ? "reduce" : "rows");
    }
  }
}

TEST_F(CudaOps, RowsOfInfinitiesAndNaN) {
  for (const char* dtype : short_floats) {
    for (const char* text : {"softmax(T[40,33])", "softmax(T[5,3])", "log_softmax(T[300,700])", "softmax(T[3,70001])",
                             "log_softmax(T[3,70001])", "cross_entropy(T[40,33], i64[40]; reduction=none)",
                             "cross_entropy(T[9,9000], i64[9]; reduction=none)"}) {
      expect_right(with_dtype(text, dtype), "rows", oracle::Fill::special);
    }
    for (const char* text : {"reduce_max(T[33,700]; dim=1)", "reduce_min(T[700,33]; dim=0)", "reduce_max(T[70001])"}) {
      expect_right(with_dtype(text, dtype), "reduce", oracle::Fill::special);
    }
  }
}

TEST_F(CudaOps, CrossEntropyOverAVocabulary) {
  expect_right_in_every_dtype(
      {"cross_entropy(T[5,151936], i64[5])", "cross_entropy(T[70,50257], i64[70]; reduction=sum)",
       "cross_entropy(T[300,1001], i32[300], f32[1001]; ignore_index=3)", "cross_entropy(T[20000,17], i64[20000])",
       "cross_entropy(T[20000,17], i64[20000], T[17]; reduction=none) -> f32[20000]"},
      "rows");
}

TEST_F(CudaOps, LossesOfTargetsAndOfElements) {
  expect_right_in_every_dtype(
      {"nll_loss(T[20000,17], i64[20000])", "nll_loss(T[300000,3], i32[300000], T[3]; ignore_index=1)",
       "nll_loss(T[40,7,90], i64[40,90], f32[7]; reduction=sum)",
       "nll_loss(T[30,7,90]{1,2700,30}, i64[30,90]{1,30}; reduction=none)", "kl_div(T[1000003], T[1000003])",
       "kl_div(T[70,1030], T[70,1030]; log_target=true reduction=none)", "kl_div(T[300,1030], T[1030])",
       "kl_div(T[7001]/4, T[7001]; reduction=sum)", "kl_div(T[700,104], T[700,104]; reduction=batchmean)",
       "kl_div(T[0,8], T[0,8]; reduction=batchmean)", "poisson_nll_loss(T[300007], T[300007]; full=true)",
       "poisson_nll_loss(T[70001], i64[70001]; log_input=false)", "poisson_nll_loss(T[9,1000], T[9,1000]) -> f32[]",
       "poisson_nll_loss(T[9,1000], T[9,1000]; reduction=none) -> f32[9,1000]"},
      "elementwise");
}

TEST_F(CudaOps, ReducesInPartsAndByColumns) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    for (const char* shape :
         {"[1000003]", "[3,200001]; dim=1", "[300,600]; dim=1", "[5000,64]; dim=0", "[5000,33]; dim=0",
          "[7,900,40]; dim=1", "[200,520,40]; dim=1", "[3,2,3000]; dim=0,1", "[2000,257]{300,1}; dim=0"}) {
      for (const char* dtype : short_floats) {
        expect_right(std::string(op) + "(" + dtype + shape + ")", "reduce");
      }
    }
  }
}

TEST_F(CudaOps, ElementwiseByVectors) {
  for (const char* text :
       {"add(T[300,1024], T[1024])", "mul(T[300,1024], T[300,1])", "sub(T[1], T[300,1024])", "div(T[300,1024], T[])",
        "add(T[40,1000]{1024,1}, T[40,1000]) -> T[40,1000]{2048,1}", "mul(T[64,8,32]{256,32,1}, T[8,1])",
        "add(T[2,64,30,40]{76800,1,2560,64}, T[2,64,30,40]{76800,1,2560,64}) -> T[2,64,30,40]{76800,1,2560,64}",
        "gelu(T[1000001])", "silu(T[64,100]{104,1})", "exp(T[4099]/8)", "tanh(T[40,1000]{1024,1})",
        "silu_mul(T[64,2816])", "silu_mul(T[64,1030])", "silu_mul(T[300,2048]{2056,1})", "silu_mul(T[7,30,128]/8)",
        "silu_mul(T[64,1000], T[64,1000])", "silu_mul(T[100003], T[100003])"}) {
    for (const char* dtype : short_floats) expect_right(with_dtype(text, dtype), "elementwise");
  }
}

// Bit for bit, whatever the layout and wherever the offset begins inside a counter's words.
TEST_F(CudaOps, DropoutGivesWhatTheCpuGives) {
  for (const char* text :
       {"dropout(T[100003]; p=0.3 seed=-7)", "dropout(T[1003], i64[2]; p=0.6)", "dropout(T[37]/8, i64[2]{3}; p=0.3)",
        "dropout(T[64,40]{1,64}, i64[2]; p=0.1) -> T[64,40]{1,64}", "dropout(T[33,40]{48,1}, i64[2]) -> T[33,40]{56,1}",
        "dropout(T[6144]; p=0.3 seed=3)", "dropout(T[6,1024], i64[2]; p=0.6)", "dropout(T[33,40]{1,0}, i64[2])",
        "dropout(T[33,40]{0,1}, i64[2])", "dropout(T[1001]; p=1)", "dropout(T[1001]; training=false)"}) {
    for (const char* dtype : short_floats) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const std::string typed = with_dtype(text, dtype);
        const oracle::Case here(parse_problem(typed), seed), there(problem_of(typed), seed);
        const oracle::Result result = there.through(Runtime::global());
        EXPECT_EQ(result.kernel, "elementwise");
        EXPECT_FALSE(result.strayed) << typed;
        EXPECT_EQ(result.values, here.through(Runtime::global()).values) << typed << ", seed " << seed;
      }
    }
  }
}

// What is not divided by the reciprocal, among numbers that are.
TEST_F(CudaOps, DropoutDividesAsIeeeSays) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, infinity, -infinity, 0x1p-130, -0x1p-126, 0x1.8p127, -0x1.fcp119, 1.0, -3.0};
  for (const char* text : {"dropout(T[4096]; p=0.1 seed=5)", "dropout(T[64,64]{1,64}; p=0.7 seed=5)"}) {
    for (const char* dtype : {"f32", "bf16"}) {
      const Problem problem = problem_of(with_dtype(text, dtype));
      const auto share = static_cast<float>(1 - problem.attributes.real("p"));
      Launch launch(problem, "elementwise");
      launch.fill(random());
      const bool flat = problem.inputs[0].shape.size() == 1;
      const auto place = [&](std::int64_t i) { return flat ? Dims{i} : Dims{i / 64, i % 64}; };
      for (std::int64_t i = 0; i < 4096; i += 7) launch.input(0).set(place(i), special[i % 10]);
      ASSERT_TRUE(launch.run().ok());
      int kept = 0, negative_zeros = 0;
      for (std::int64_t i = 0; i < 4096; i += 7) {
        const double out = launch.output(0).at(place(i));
        if (out == 0 && !(std::signbit(out) && special[i % 10] == 0)) continue;  // dropped, or +0
        ++kept;
        const auto x = static_cast<float>(special[i % 10]);
        const auto quotient = static_cast<double>(x / share);
        EXPECT_EQ(out, *dtype == 'f' ? quotient : decode_bfloat16(encode_bfloat16(quotient))) << text << " of " << x;
        negative_zeros += out == 0;
      }
      EXPECT_GT(kept, 100);
      EXPECT_GT(negative_zeros, 5);
    }
  }
}

TEST_F(CudaOps, UnscaleTellsOfOneGradientThatIsNotFinite) {
  for (const char* text : {"unscale(T[100003], f32[1])", "unscale(T[100003]{2}, f32[])"}) {  // by vectors, by elements
    for (const char* dtype : short_floats) {
      const Problem problem = problem_of(with_dtype(text, dtype));
      Launch launch(problem, "elementwise");
      ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
      launch.fill(random());
      for (const std::int64_t at : {-1, 0, 50000, 100002}) {
        if (at >= 0) launch.input(0).set({at}, std::numeric_limits<double>::infinity());
        ASSERT_TRUE(launch.run().ok());
        EXPECT_EQ(launch.output(1).at({0}), at >= 0 ? 1 : 0) << to_string(problem) << " at " << at;
        EXPECT_TRUE(launch.output(0).margins_untouched() && launch.output(1).margins_untouched());
        if (at >= 0) launch.input(0).set({at}, 0.5);
      }
    }
  }
}

TEST_F(CudaOps, CopiesOfEveryKind) {
  for (const char* dtype : {"f32", "bf16", "f64", "i8"}) {
    for (const char* text :
         {"copy(T[1000003])", "transpose(T[333,777])", "transpose(T[3,100,65,40]; dims=0,2,3,1)",
          "transpose(T[16,1000])", "transpose(T[328,776])", "transpose(T[3,264,136]; dims=0,2,1)",
          "transpose(T[200,304]/8)", "copy(T[65,130,17]{1,65,8450})", "copy(T[65,130,17]) -> T[65,130,17]{17,1105,1}",
          "slice(T[300,800]; dim=1 start=16 end=768)", "slice(T[300,801]; dim=1 start=3 end=700 step=2)",
          "concat(T[300,64], T[300,1], T[300,129]; dim=1)", "transpose(T[100,200]{1,100})"}) {
      expect_right(with_dtype(text, dtype), "copy");
    }
    expect_right(with_dtype("embedding(i64[300], T[1000,96])", dtype), "rows");
    expect_right(with_dtype("embedding(i32[7,9], T[50,33])", dtype), "rows");
  }
}

TEST_F(CudaOps, RotatesByVectorsAndByElements) {
  for (const char* attributes : {"", "; interleaved=true"}) {
    for (const char* arguments :
         {"T[70,32,128], i64[70], f32[200,64], f32[200,64]", "T[520,32,128], i64[520], f32[200,64], f32[200,64]",
          "T[520,33,128], i64[520], f32[200,64], f32[200,64]", "T[70,4,128], i32[70], T[200,32], T[200,32]",
          "T[70,4,72], i64[70], f32[200,32], T[200,32]", "T[70,4,80], i64[70], T[200,36], f32[200,36]",
          "T[70,4,128]{600,136,1}, i64[70], f16[200,64]{128,1}, f16[200,64]{128,1}",
          "T[70,4,128]/8, i64[70], f32[200,64]/4, f32[200,64]",
          "T[3,70,4,64]{17920,64,4480,1}, i64[70], f32[80,32], f32[80,32]",
          "T[70,3,66], i64[1], T[200,33], bf16[200,33]", "T[5000,2,64], i64[5000], T[80,0], T[80,0]"}) {
      for (const char* dtype : short_floats) {
        expect_right(with_dtype("rope(" + std::string(arguments) + attributes + ")", dtype), "elementwise");
      }
    }
  }
}

TEST_F(CudaOps, AppendsToCaches) {
  for (const char* dtype : {"bf16", "f32", "f64", "i8"}) {
    for (const char* text :
         {"kv_append(T[64,8,40,128], T[64,8,40,128], T[64,8,1,128], T[64,8,1,128], i64[64])",
          "kv_append(T[3,4,300,128], T[3,4,300,64], T[3,4,290,128]{148480,128,512,1}, T[3,4,290,64], i32[3])",
          "kv_append(T[90,16,4,128], T[90,16,4,128], T[5,4,37,128], T[5,4,37,128], i32[5], i32[5,18])",
          "kv_append(T[90,16,4,33], T[90,16,4,12], T[5,4,1,33], T[5,4,1,12], i64[5], i64[5,18])",
          "kv_append(T[9,5,3,7]{300,20,100,2}, T[9,5,3,8], T[2,3,9,7], T[2,3,9,8], i32[2], i32[2,4]) -> "
          "T[9,5,3,7]{300,20,100,2}, T[9,5,3,8]"}) {
      expect_right(with_dtype(text, dtype), "copy");
    }
  }
  expect_right("kv_append(f32[2,3,9,4], i8[2,3,9,4], f32[2,3,2,4]{24,8,4,1}, i8[2,3,2,4]{48,16,8,2}, i32[2])", "copy");
}

TEST_F(CudaOps, GivesTheSameBitsTwice) {
  for (const char* text :
       {"cross_entropy(bf16[20000,17], i64[20000])", "reduce_sum(f32[1000003])", "reduce_mean(bf16[5000,64]; dim=0)",
        "softmax(f32[5,70001])", "cross_entropy(bf16[9000,1001], i64[9000])", "layer_norm(bf16[3000,1101])",
        "nll_loss(f32[900000,3], i64[900000])", "kl_div(bf16[3000001], bf16[3000001])"}) {
    const auto run = oracle::case_of(text, gpu);
    const std::vector<oracle::Values> first = run->through(Runtime::global()).values;
    EXPECT_EQ(first, run->through(Runtime::global()).values) << text;
  }
}

// A wrong value is found on the device: everything else is computed, the launch does not wait, and the next
// synchronisation says which call it was.

TEST_F(CudaOps, AWrongIndexIsReportedAndItsRowNotWritten) {
  Launch launch(problem_of("embedding(i64[4], f32[10,8])"), "rows");
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  launch.fill(random());
  const double indices[] = {3, 10, 9, -1};
  for (std::int64_t i = 0; i < 4; ++i) launch.input(0).set({i}, indices[i]);
  const Status status = launch.run();
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(status.message(), "embedding(i64[4], f32[10,8]) @cuda:0: an index is outside the table; give 0 to 9");
  EXPECT_TRUE(launch.output().margins_untouched());
  for (std::int64_t j = 0; j < 8; ++j) {
    EXPECT_EQ(launch.output().at({0, j}), launch.input(1).at({3, j}));
    EXPECT_TRUE(std::isnan(launch.output().at({1, j})));
    EXPECT_EQ(launch.output().at({2, j}), launch.input(1).at({9, j}));
    EXPECT_TRUE(std::isnan(launch.output().at({3, j})));
  }
  EXPECT_TRUE(driver().synchronize(0, {}).ok());  // reported once
}

TEST_F(CudaOps, AWrongTargetIsReportedAndItsLossNotWritten) {
  for (const bool logits : {true, false}) {
    for (const std::string reduction : {"none", "mean"}) {
      const std::string op = logits ? "cross_entropy" : "nll_loss";
      Launch launch(problem_of(op + "(f32[3,40], i64[3]; reduction=" + reduction + ")"),
                    logits ? "rows" : "elementwise");
      ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
      launch.fill(random());
      const double targets[] = {0, 40, -100};
      for (std::int64_t i = 0; i < 3; ++i) launch.input(1).set({i}, targets[i]);
      const Status status = launch.run();
      EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
      EXPECT_NE(status.message().find("a target is outside the 40 classes"), std::string::npos) << status.message();
      EXPECT_TRUE(launch.output().margins_untouched());
      if (reduction == "mean") {
        EXPECT_TRUE(std::isnan(launch.output().at({})));
        continue;
      }
      if (logits) {
        EXPECT_GT(launch.output().at({0}), 0);
      } else {
        EXPECT_EQ(launch.output().at({0}), -launch.input(0).at({0, 0}));
      }
      EXPECT_TRUE(std::isnan(launch.output().at({1})));
      EXPECT_EQ(launch.output().at({2}), 0);
    }
  }
}

TEST_F(CudaOps, AWrongPositionIsReportedAndItsTokenNotWritten) {
  for (const char* text :  // by vectors and by elements
       {"rope(f32[3,2,16], i64[3], f32[9,4], f32[9,4])", "rope(f32[3,2,7], i64[3], f32[9,3], f32[9,3])"}) {
    Launch launch(problem_of(text), "elementwise");
    ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
    launch.fill(random());
    const double positions[] = {-1, 8, 9};
    for (std::int64_t i = 0; i < 3; ++i) launch.input(1).set({i}, positions[i]);
    const Status status = launch.run();
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    EXPECT_NE(status.message().find("a position is outside the tables; give 0 to 8"), std::string::npos)
        << status.message();
    EXPECT_TRUE(launch.output().margins_untouched());
    for_each_index(launch.output().spec().shape,
                   [&](const Dims& at) { EXPECT_EQ(std::isnan(launch.output().at(at)), at[0] != 1) << to_string(at); });
  }
}

TEST_F(CudaOps, AWrongLengthOrPageIsReportedAndItsTokensNotWritten) {
  // Of three sequences the second has a length without room for two tokens, or a page that is not there.
  for (const bool paged : {false, true}) {
    const std::string cache = paged ? "f32[4,2,1,8]" : "f32[3,1,4,8]", table = paged ? ", i32[3,1])" : ")";
    Launch launch(problem_of("kv_append(" + cache + ", " + cache + ", f32[3,1,2,8], f32[3,1,2,8], i64[3]" + table),
                  "copy");
    ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
    launch.fill(random());
    const double lengths[] = {0, 3, 2}, pages[] = {3, 4, 1};
    for (std::int64_t i = 0; i < 3; ++i) {
      launch.input(4).set({i}, paged ? 0 : lengths[i]);
      if (paged) launch.input(5).set({i, 0}, pages[i]);
    }
    const Status status = launch.run();
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    const std::string advice = paged ? "give lengths from 0 to 0 and pages from 0 to 3" : "give lengths from 0 to 2";
    EXPECT_NE(status.message().find(advice), std::string::npos) << status.message();
    for (const std::size_t which : {0, 1}) {
      EXPECT_TRUE(launch.output(which).margins_untouched());
      for_each_index(launch.output(which).spec().shape, [&](const Dims& at) {
        double expected = launch.input(which).at(at);
        for (const std::int64_t sequence : {0, 2}) {
          const auto entry = static_cast<std::size_t>(sequence);
          const std::int64_t token = paged ? at[1] : at[2] - static_cast<std::int64_t>(lengths[entry]);
          const bool here = paged ? static_cast<double>(at[0]) == pages[entry] : at[0] == sequence;
          if (here && token >= 0 && token < 2) expected = launch.input(2 + which).at({sequence, 0, token, at[3]});
        }
        EXPECT_EQ(launch.output(which).at(at), expected) << to_string(at);
      });
    }
  }
}

TEST_F(CudaOps, RightValuesAreNotReported) {
  Launch launch(problem_of("embedding(i64[4], f32[10,8])"), "rows");
  launch.fill(random());
  for (std::int64_t i = 0; i < 4; ++i) launch.input(0).set({i}, static_cast<double>(i));
  EXPECT_TRUE(launch.run().ok());
}

}  // namespace
}  // namespace xpuruntime::cuda_tests

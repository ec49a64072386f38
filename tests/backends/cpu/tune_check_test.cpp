// The check that a kernel must pass before it may win a race: right kernels pass it with every seed, wrong ones never.
// More seeds than usual, for hours:
//   XRT_TEST_SEEDS=10000 backends_tests --gtest_filter='TuneCheck*'

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>

#include "backends/cpu/plan_run.h"
#include "tune/contender.h"
#include "tune/reference.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::cpu_tests {
namespace {

std::uint64_t seed_count(std::uint64_t usual) {
  if (const char* const seeds = std::getenv("XRT_TEST_SEEDS")) return std::strtoull(seeds, nullptr, 10);
  const char* const reduced = std::getenv("XRT_TEST_REDUCED");
  return reduced != nullptr && std::strtol(reduced, nullptr, 10) > 1 ? usual / 20 : usual;
}

const KernelRegistry& registry() { return Runtime::global().registry(); }
const DeviceManager& devices() { return Runtime::global().devices(); }

/// A problem on the numbers of one seed.
class Trial {
 public:
  Trial(const Problem& problem, std::uint64_t seed)
      : problem_(problem),
        operands_(random_operands(devices(), problem, seed)),
        reference_(registry(), problem, operands_) {}

  const Operands& operands() const { return operands_; }
  const Reference& reference() const { return reference_; }
  void run(const std::shared_ptr<const Kernel>& kernel) const {
    blank_outputs(devices(), operands_);
    Contender contender;
    contender.kernel = kernel;
    contender.row.workspace_bytes = kernel->workspace_bytes(problem_, cpu_profile());
    const Track track(registry(), problem_, operands_);
    Status status = track.prepare(contender);
    if (status.ok()) status = track.run(contender, 1);
    EXPECT_TRUE(status.ok()) << text_of(*kernel, problem_) << ": " << status.message();
  }
  Check check(std::string_view kernel) const { return reference_.compare_with(operands_.outputs(), {kernel}); }

 private:
  const Problem& problem_;
  Operands operands_;
  Reference reference_;
};

std::string text_of(const Check& check) {
  return "the error is " + std::to_string(check.ratio) + " of what is allowed" +
         (check.skipped.empty() ? "" : ", not checked: " + check.skipped);
}

void try_all_kernels(const Problem& problem, std::uint64_t seed, FirstFailures& failures) {
  const Trial trial(problem, seed);
  for (const auto& kernel : cpu_kernels(problem.op)) {
    if (!kernel->supports(problem, cpu_profile()).supported) continue;
    trial.run(kernel);
    const Check check = trial.check(kernel->name());
    if (check.within && check.skipped.empty()) continue;
    failures.add(*kernel,
                 cpu_tests::text_of(*kernel, problem) + ", seed " + std::to_string(seed) + ": " + text_of(check));
  }
}

constexpr std::string_view floats[] = {"f32", "f16", "bf16", "f64"};
TEST(TuneCheck, PassesEveryRightKernelWithEverySeed) {
  FirstFailures failures;
  const std::uint64_t seeds = seed_count(200);
  for (const char* text : cases::checks().small) {
    for (const std::string_view dtype : floats) {
      const Problem problem = parse_problem(cases::replaced(text, "T", dtype));
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) try_all_kernels(problem, seed, failures);
    }
  }
}

// A sum is rounded to its own dtype before it is normalized: bf16 has as many bytes as f16, and fewer digits.
TEST(TuneCheck, CountsTheRoundingOfAStoredSumInEveryPairOfDtypes) {
  FirstFailures failures;
  for (const std::string_view input : floats) {
    for (const std::string_view residual : floats) {
      for (const char* text : {"add_rms_norm(T[4,253], R[4,253], T[253])", "add_rms_norm(T[3,7], R[3,7])",
                               "add_rms_norm(T[3,64], T[3,64]) -> T[3,64], R[3,64]"}) {
        const Problem problem = parse_problem(cases::replaced(cases::replaced(text, "T", input), "R", residual));
        for (std::uint64_t seed = 1; seed <= seed_count(40); ++seed) try_all_kernels(problem, seed, failures);
      }
    }
  }
}

// Of the case list, every fifth once, or all under XRT_TEST_SEEDS: layouts, mixed dtypes, attributes.
TEST(TuneCheck, PassesEveryRightKernelOnEveryKindOfProblem) {
  FirstFailures failures;
  const std::size_t step = std::getenv("XRT_TEST_SEEDS") != nullptr ? 1 : 5;
  const std::vector<cases::CaseText>& list = cases::to_run();
  for (std::size_t i = 0; i < list.size(); i += step) {
    if (list[i].fill == oracle::Fill::usual) try_all_kernels(parse_problem(list[i].problem), 1, failures);
  }
}

// What follows spoils right results, or computes them in a way that is not good enough.

using Spoil = void (*)(const Problem& problem, const Operands& operands);

double at(const Tensor& tensor, std::int64_t i) {
  return oracle::decode(tensor.dtype(),
                        tensor.as<const std::byte>() + static_cast<std::size_t>(i) * size_of(tensor.dtype()));
}

void put(const Tensor& tensor, std::int64_t i, double value) {
  oracle::encode(tensor.dtype(), value, tensor.as<std::byte>() + static_cast<std::size_t>(i) * size_of(tensor.dtype()));
}

/// out[i, j] = finish(sum over k of a[i, k] * w[j, k], j), the sum as `add` makes it.
template <class Add, class Finish>
void linear(const Operands& operands, Add add, Finish finish) {
  const Tensor& a = operands.inputs()[0];
  const Tensor& w = operands.inputs()[1];
  const std::int64_t rows = a.shape()[0], columns = w.shape()[0], terms = a.shape()[1];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < terms; ++k) sum = add(sum, at(a, i * terms + k), at(w, j * terms + k), k);
      put(operands.outputs()[0], i * columns + j, finish(sum, j));
    }
  }
}

double fused(double sum, double a, double w, std::int64_t) { return sum + a * w; }
double plain(double sum, std::int64_t) { return sum; }
double half(double value) { return decode_float16(encode_float16(value)); }
double brain(double value) { return decode_bfloat16(encode_bfloat16(value)); }

// ---- any op ----

/// One value is off by two units of its dtype, or of 12 bits, at the size of the larger ones.
void one_value(const Problem& problem, const Operands& operands) {
  const Tensor& out = operands.outputs()[0];
  const std::int64_t middle = element_count(out.spec()) / 2;
  const double unit = std::max(4 * oracle::half_unit(problem.outputs[0].dtype), 0x1p-12);
  const double wrong = is_floating(out.dtype()) ? unit * std::max(std::abs(at(out, middle)), largest_of(out) / 8) : 1;
  put(out, middle, at(out, middle) + wrong);
}

void last_row_is_zero(const Problem& problem, const Operands& operands) {
  const Tensor& out = operands.outputs()[0];
  const std::int64_t count = element_count(out.spec()), row = problem.outputs[0].shape.back();
  for (std::int64_t i = count - row; i < count; ++i) put(out, i, 0);
}

void first_rows_swapped(const Problem& problem, const Operands& operands) {
  const Tensor& out = operands.outputs()[0];
  const std::int64_t row = problem.outputs[0].shape.back();
  for (std::int64_t i = 0; i < row; ++i) {
    const double first = at(out, i);
    put(out, i, at(out, row + i));
    put(out, row + i, first);
  }
}

// ---- add_rms_norm ----

void without_the_residual(const Problem& problem, const Operands& operands) {
  for (std::int64_t i = 0; i < element_count(problem.inputs[0]); ++i) {
    put(operands.outputs()[1], i, at(operands.inputs()[0], i));
  }
}

// ---- linear with a bias, and gelu where the problem says so ----

void without_bias(const Problem&, const Operands& operands) { linear(operands, fused, plain); }

void without_the_last_term(const Problem&, const Operands& operands) {
  const std::int64_t terms = operands.inputs()[0].shape()[1];
  linear(
      operands, [&](double sum, double a, double w, std::int64_t k) { return k + 1 == terms ? sum : sum + a * w; },
      [&](double sum, std::int64_t j) { return sum + at(operands.inputs()[2], j); });
}

void summed_in_half(const Problem&, const Operands& operands) {
  linear(
      operands, [](double sum, double a, double w, std::int64_t) { return half(sum + a * w); },
      [&](double sum, std::int64_t j) { return sum + at(operands.inputs()[2], j); });
}

void of_factors_in_bf16(const Problem&, const Operands& operands) {
  linear(
      operands, [](double sum, double a, double w, std::int64_t) { return sum + brain(a) * brain(w); },
      [&](double sum, std::int64_t j) { return sum + at(operands.inputs()[2], j); });
}

void of_factors_in_half(const Problem&, const Operands& operands) {
  linear(
      operands, [](double sum, double a, double w, std::int64_t) { return sum + half(a) * half(w); },
      [&](double sum, std::int64_t j) { return sum + at(operands.inputs()[2], j); });
}

void gelu_by_tanh(const Problem&, const Operands& operands) {
  linear(operands, fused, [&](double sum, std::int64_t j) {
    const double x = sum + at(operands.inputs()[2], j);
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  });
}

// ---- elementwise gelu ----

void elementwise_gelu_by_tanh(const Problem& problem, const Operands& operands) {
  for (std::int64_t i = 0; i < element_count(problem.inputs[0]); ++i) {
    const double x = at(operands.inputs()[0], i);
    put(operands.outputs()[0], i, 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
  }
}

struct Planted {
  const char* name;
  Spoil spoil;
  std::vector<const char*> problems;

  friend void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }
};

const Planted planted[] = {
    {"OneValue",
     one_value,
     {"matmul(f32[16,64], f32[64,24])", "matmul(f16[16,64], f16[64,24])", "matmul(f64[16,64], f64[64,24])",
      "linear(f32[64,1], f32[64,1]; activation=silu)", "conv2d(f32[1,8,9,9], f32[8,8,3,3]; padding=1,1)",
      "softmax(f32[5,100])", "layer_norm(f32[9,64])", "gelu(f32[99])", "add(bf16[99], bf16[99])", "relu(f32[99])",
      "reduce_max(f32[9,9]; dim=1)", "softmax(bf16[5,100])", "transpose(f32[9,5])", "add(i32[9], i32[9])",
      "add_rms_norm(f32[9,64], f32[9,64])", "add_rms_norm(bf16[9,64], f32[9,64])", "add_rms_norm(f16[9,64], f32[9,64])",
      "add_rms_norm(bf16[9,64], f16[9,64])", "add_rms_norm(f32[9,64], f64[9,64])"}},
    {"LastRowIsZero",
     last_row_is_zero,
     {"matmul(f32[16,64], f32[64,24])", "linear(bf16[4,768], bf16[9,768], bf16[9])", "softmax(f16[5,1000])",
      "layer_norm(bf16[9,64])", "attention(f32[1,2,5,16], f32[1,2,400,16], f32[1,2,400,16])",
      "attention(bf16[1,2,5,16], bf16[1,2,400,16], bf16[1,2,400,16])", "avg_pool2d(f32[1,3,8,8]; kernel_size=2,2)",
      "log_softmax(bf16[5,30])", "gelu(bf16[9,11])", "gelu:backward(bf16[9,11], bf16[9,11])",
      "matmul:backward(bf16[5,30], bf16[30,70], bf16[5,70])", "layer_norm:backward(f32[9,50], f32[9,50])",
      "add_rms_norm(f16[4,253], bf16[4,253], f16[253])", "add_rms_norm(f64[4,253], bf16[4,253])"}},
    {"RowsSwapped",
     first_rows_swapped,
     {"matmul(f16[16,64], f16[64,24])", "softmax(f32[5,100])", "softmax(bf16[5,100])",
      "attention(f16[1,1,5,16], f16[1,1,40,16], f16[1,1,40,16])", "softmax:backward(f32[5,9], f32[5,9])",
      "add_rms_norm(f16[4,253], bf16[4,253], f16[253])", "add_rms_norm(f32[4,253], bf16[4,253])"}},
    {"WithoutTheResidual",
     without_the_residual,
     {"add_rms_norm(f16[4,253], bf16[4,253], f16[253])", "add_rms_norm(bf16[4,253], f16[4,253])",
      "add_rms_norm(f64[4,253], f16[4,253])"}},
    {"WithoutBias",
     without_bias,
     {"linear(f32[4,768], f32[9,768], f32[9])", "linear(bf16[4,768], bf16[9,768], bf16[9])",
      "linear(f16[4,1], f16[9,1], f16[9])"}},
    {"WithoutTheLastTerm",
     without_the_last_term,
     {"linear(f32[4,768], f32[9,768], f32[9])", "linear(bf16[4,768], bf16[19,768], bf16[19])",
      "linear(f16[4,64], f16[9,64], f16[9])"}},
    {"SummedInHalf",
     summed_in_half,
     {"linear(f32[4,64], f32[9,64], f32[9])", "linear(f16[4,64], f16[9,64], f16[9])",
      "linear(f16[16,768], f16[16,768], f16[16])", "linear(f16[16,3072], f16[16,3072], f16[16])"}},
    {"OfFactorsInBf16",
     of_factors_in_bf16,
     {"linear(f32[4,1], f32[9,1], f32[9])", "linear(f32[4,768], f32[9,768], f32[9])",
      "linear(f16[16,64], f16[16,64], f16[16])"}},
    {"OfFactorsInHalf",
     of_factors_in_half,
     {"linear(f32[4,1], f32[9,1], f32[9])", "linear(f32[8,768], f32[9,768], f32[9])",
      "linear(f32[8,4096], f32[9,4096], f32[9])"}},
    {"GeluByTanh",
     gelu_by_tanh,
     {"linear(f32[16,64], f32[16,64], f32[16]; activation=gelu)",
      "linear(f16[16,64], f16[16,64], f16[16]; activation=gelu)",
      "linear(bf16[32,64], bf16[32,64], bf16[32]; activation=gelu)"}},
    {"ElementwiseGeluByTanh", elementwise_gelu_by_tanh, {"gelu(f32[99])"}},
};

class TuneCheckAgainst : public ::testing::TestWithParam<Planted> {};
INSTANTIATE_TEST_SUITE_P(Planted, TuneCheckAgainst, ::testing::ValuesIn(planted),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(TuneCheckAgainst, NeverPassesIt) {
  for (const char* const text : GetParam().problems) {
    const Problem problem = parse_problem(text);
    for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seed_count(20), 20); ++seed) {
      const Trial trial(problem, seed);
      trial.run(cpu_kernels(problem.op).back());
      ASSERT_TRUE(trial.check("reference").within) << text;
      GetParam().spoil(problem, trial.operands());
      const Check check = trial.check("reference");
      EXPECT_FALSE(check.within) << text << ", seed " << seed << ": " << text_of(check);
    }
  }
}

// The transforms of Winograd's method may cost digits, but not tiles.
TEST(TuneCheck, SeesAWrongTileOfWinograd) {
  const Problem problem = parse_problem("conv2d(f32[1,64,12,12], f32[8,64,3,3]; padding=1,1)");
  const Trial trial(problem, 1);
  trial.run(cpu_kernels(problem.op).back());
  ASSERT_TRUE(trial.check("winograd").within);
  const Tensor& out = trial.operands().outputs()[0];
  put(out, 0, at(out, 0) + 0.02);
  EXPECT_FALSE(trial.check("winograd").within);
}

}  // namespace
}  // namespace xpuruntime::cpu_tests

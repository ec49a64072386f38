// What a decoder's layer does between its products: the cases, the oracle in float64, and what is refused.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cases.h"
#include "backends/cpu/forced_call.h"
#include "backends/cpu/plan_run.h"
#include "core/infer_calls.h"

namespace xpuruntime::cases {

std::vector<CaseText> decoder_cases() {
  List list;
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "add_rms_norm(T[1], T[1])",
          "add_rms_norm(T[3,7], T[3,7], T[7])",
          "add_rms_norm(T[4,8], T[4,8])",
          "add_rms_norm(T[2,3,17], T[2,3,17], T[17]; eps=0.1)",
          "add_rms_norm(T[4,1024], T[4,1024], f32[1024])",
          "add_rms_norm(T[0,8], T[0,8], T[8])",
          "add_rms_norm(T[3,0], T[3,0], T[0])",
          "add_rms_norm(T[2,9000], T[2,9000], T[9000])",  // chunks of a row
          "add_rms_norm(T[8,6]{1,8}, T[8,6]{12,2}, T[6]{2}) -> T[8,6]{12,1}, T[8,6]{1,8}",
          "silu_mul(T[2])",
          "silu_mul(T[3,14])",
          "silu_mul(T[2,3,34])",
          "silu_mul(T[0,8])",
          "silu_mul(T[3,0])",
          "silu_mul(T[5,2048])",
          "silu_mul(T[6,10]{1,6}) -> T[6,5]{10,2}",
          "silu_mul(T[70,130]{1,70})",
          "silu_mul(T[17], T[17])",
          "silu_mul(T[3,7]{14,2}, T[3,7]{1,3})",
          "rope(T[1,2], i64[], T[1,1], T[1,1])",
          "rope(T[5,3,8], i32[5], T[9,4], T[9,4])",
          "rope(T[5,3,8], i64[5], T[9,4], T[9,4]; interleaved=true)",
          "rope(T[7,1,34], i64[7], T[17,17], T[17,17])",
          "rope(T[7,1,34], i64[7], T[17,17], T[17,17]; interleaved=true)",
          "rope(T[4,2,16], i64[4], T[8,5], T[8,5])",  // partial
          "rope(T[4,2,17], i64[4], T[8,5], T[8,5]; interleaved=true)",
          "rope(T[4,2,7], i64[4], T[8,0], T[8,0])",
          "rope(T[2,5,4,128], i64[2,5], f32[16,64], f32[16,64])",
          "rope(T[2,5,4,64], i32[1,5], f32[16,32]{64,1}, f32[16,32]{64,1}; interleaved=true)",  // halves of a table
          "rope(T[2,5,4,64]{1280,64,320,1}, i64[5], T[16,32], T[16,32]) -> T[2,5,4,64]{1280,64,320,1}",
          "rope(T[3,2,8]{1,24,3}, i64[3]{2}, T[8,4]{1,8}, T[8,4]) -> T[3,2,8]{32,16,2}",
          "rope(T[2,1,1200], i64[2], f32[4,600], f32[4,600])",  // more than a chunk
          "rope(T[2,1,1200], i64[2], f32[4,600], f32[4,600]; interleaved=true)",
          "rope(T[0,2,8], i64[0], T[8,4], T[8,4])",
      });
  list.each({"f32", "f16", "bf16"}, {"silu_mul(T[9,26])", "silu_mul(T[130], T[130])"}, oracle::Fill::special);
  list.each({"f32", "bf16"}, {"add_rms_norm(T[300,1030], T[300,1030], T[1030])", "silu_mul(T[300,2060])",
                              "rope(T[300,8,128], i64[300], f32[512,64], f32[512,64])"});
  list.each({"f64", "f32", "f16", "bf16", "f8e4m3", "i64", "i32", "i16", "i8", "u8", "bool"},
            {"kv_append(T[2,3,9,4], T[2,3,9,5], T[2,3,2,4], T[2,3,2,5], i32[2])",
             "kv_append(T[7,4,3,5], T[7,4,3,4], T[2,3,6,5], T[2,3,6,4], i64[2], i32[2,3])"});
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "kv_append(T[1,1,1,1], T[1,1,1,1], T[1,1,1,1], T[1,1,1,1], i32[1])",
          "kv_append(T[1,2,17,7], T[1,2,17,7], T[1,2,17,7], T[1,2,17,7], i64[1])",
          "kv_append(T[2,2,8,4], T[2,2,8,4], T[2,2,0,4], T[2,2,0,4], i64[2])",
          "kv_append(T[0,2,8,4], T[0,2,8,4], T[0,2,1,4], T[0,2,1,4], i64[0])",
          "kv_append(T[2,2,8,0], T[2,2,8,4], T[2,2,1,0], T[2,2,1,4], i64[2])",
          // Tokens before heads in memory, as a projection leaves them.
          "kv_append(T[2,2,8,4]{64,4,8,1}, T[2,2,8,4]{64,4,8,1}, T[2,2,3,4]{24,4,8,1}, T[2,2,3,4]{24,4,8,1}, "
          "i32[2]{3}) -> T[2,2,8,4]{64,4,8,1}, T[2,2,8,4]{64,4,8,1}",
          "kv_append(T[2,2,8,4]{1,2,4,32}, T[2,2,8,4], T[2,2,3,4], T[2,2,3,4]{48,24,8,2}, i32[2])",
          "kv_append(T[9,16,2,8], T[9,16,2,8], T[3,2,1,8], T[3,2,1,8], i32[3], i64[3,3]{1,3})",
          "kv_append(T[5,1,2,8], T[5,1,2,8], T[1,2,4,8], T[1,2,4,8], i32[1], i32[1,5])",
          "kv_append(T[6,4,2,8]{128,16,8,1}, T[6,4,2,8]{128,16,8,1}, T[2,2,5,8], T[2,2,5,8], i32[2], i32[2,3]) -> "
          "T[6,4,2,8]{128,16,8,1}, T[6,4,2,8]{128,16,8,1}",
      });
  list.each({"f32"}, {"kv_append(T[4,8,300,64], T[4,8,300,64], T[4,8,200,64], T[4,8,200,64], i32[4])"});
  for (const char* text : {
           "add_rms_norm(f32[5,13]/4, f32[5,13]/4, f32[13]/4) -> f32[5,13]/4, f32[5,13]/4",
           "add_rms_norm(bf16[5,13], f32[5,13], bf16[13])",
           "add_rms_norm(f32[5,13], bf16[5,13])",
           "add_rms_norm(bf16[5,13], bf16[5,13]) -> f32[5,13], bf16[5,13]",
           "silu_mul(f32[5,12]/4) -> f32[5,6]/4",
           "silu_mul(f16[33], bf16[33])",
           "silu_mul(bf16[33], bf16[33]) -> f32[33]",
           "rope(f32[5,3,8]/4, i32[5]/4, f32[9,4]/4, f32[9,4]/4) -> f32[5,3,8]/4",
           "rope(f32[5,3,8], i64[5], bf16[9,4], f16[9,4])",
           "rope(bf16[5,3,8], i64[5], f32[9,4], f32[9,4]) -> f32[5,3,8]",
           "kv_append(bf16[2,2,8,4], bf16[2,2,8,4], f32[2,2,1,4], f32[2,2,1,4], i32[2])",
           "kv_append(f32[2,2,8,4]/4, f32[2,2,8,4]/4, f32[2,2,1,4]/4, f32[2,2,1,4]/4, i32[2]/4) -> f32[2,2,8,4]/4, "
           "f32[2,2,8,4]/4",
       }) {
    list.add(text);
  }
  return list.take();
}

Checks decoder_checks() {
  return {
      .small =
          {
              "add_rms_norm(T[9,5], T[9,5], T[5])",
              "add_rms_norm(T[3,100], T[3,100], T[100])",
              "silu_mul(T[9,22])",
              "rope(T[5,2,8], i64[5], T[9,3], T[9,3])",
              "rope(T[5,2,8], i64[5], T[9,4], T[9,4]; interleaved=true)",
              "kv_append(T[2,2,8,4], T[2,2,8,4], T[2,2,3,4], T[2,2,3,4], i64[2])",
              "kv_append(T[6,4,2,4], T[6,4,2,4], T[2,2,3,4], T[2,2,3,4], i64[2], i64[2,3])",
          },
      .by_lines = {"add_rms_norm(f32[6,33], f32[6,33], f32[33])"},
      .mistakes =
          {
              {"add_rms_norm(f32[4,32], f32[4,32]; eps=0.001)", "add_rms_norm(f32[4,32], f32[4,32])"},
              {"rope(f32[5,2,8], i64[5], f32[9,4], f32[9,4]; interleaved=true)",
               "rope(f32[5,2,8], i64[5], f32[9,4], f32[9,4])"},
          },
  };
}

}  // namespace xpuruntime::cases

namespace xpuruntime::oracle {
namespace {

double magnitude(double a, double b) { return std::fabs(a) + std::fabs(b); }

// The sum is rounded to what it is stored in, and that is normalized.
std::vector<Answer> solve_add_rms_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const DataType stored = problem.outputs[1].dtype;
  Answer sum;
  std::vector<Values> of_sum(1);
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const double value = inputs[0][i] + inputs[1][i];
    sum.add(value, std::fabs(value));
    of_sum[0].push_back(rounded(stored, value));
  }
  if (inputs.size() > 2) of_sum.push_back(inputs[2]);
  Answer normed = solve_rms_norm(problem, of_sum)[0];
  // A dispatcher that computes in a wider dtype casts the sum after it was normalized.
  const bool cast = size_of(stored) < size_of(problem.inputs[0].dtype);
  for (std::size_t i = 0; i < normed.value.size() && cast; ++i) {
    normed.slack[i] += std::fabs(normed.value[i]) * 2 * half_unit(stored) / half_unit(problem.inputs[0].dtype);
  }
  return {normed, sum};
}

// An exp, an addition, a division and two products.
std::vector<Answer> solve_silu_mul(const Problem& problem, const std::vector<Values>& inputs) {
  const bool two = inputs.size() == 2;
  const auto columns = static_cast<std::size_t>(problem.outputs[0].shape.empty() ? 1 : problem.outputs[0].shape.back());
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size() / (two ? 1 : 2); ++i) {
    const std::size_t gate = two ? i : i / columns * 2 * columns + i % columns;
    const double x = inputs[0][gate], factor = two ? inputs[1][i] : inputs[0][gate + columns];
    const double value = x * (1 / (1 + std::exp(-x))) * factor;
    out.add(value, (function_units + 5) * std::fabs(value));
  }
  return {out};
}

std::vector<Answer> solve_rope(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims &shape = problem.inputs[0].shape, &tables = problem.inputs[2].shape;
  const bool interleaved = problem.attributes.boolean("interleaved");
  const auto size = static_cast<std::size_t>(shape.back()), pairs = static_cast<std::size_t>(tables[1]);
  const Dims tokens(std::span(shape.begin(), shape.size() - 2));
  const auto heads = static_cast<std::size_t>(shape[shape.size() - 2]);
  const Broadcast positions(inputs[1], problem.inputs[1].shape, tokens);
  Answer out{inputs[0], Values(inputs[0].size(), 0)};
  std::size_t head = 0;
  for_each_position(tokens, [&](const Position& token) {
    const auto row = static_cast<std::size_t>(positions.at(token)) * pairs;
    for (const std::size_t end = head + heads; head < end; ++head) {
      for (std::size_t p = 0; p < pairs; ++p) {
        const std::size_t first = head * size + (interleaved ? 2 * p : p), second = first + (interleaved ? 1 : pairs);
        const double a = inputs[0][first], b = inputs[0][second], cos = inputs[2][row + p], sin = inputs[3][row + p];
        out.value[first] = a * cos - b * sin;
        out.value[second] = b * cos + a * sin;
        out.slack[first] = 3 * magnitude(a * cos, b * sin);
        out.slack[second] = 3 * magnitude(b * cos, a * sin);
      }
    }
  });
  return {out};
}

std::vector<Answer> solve_kv_append(const Problem& problem, const std::vector<Values>& inputs) {
  std::vector<Answer> out;
  for (const std::size_t cache : {0, 1}) {
    const Dims &shape = problem.inputs[cache].shape, &added = problem.inputs[2 + cache].shape;
    Values values = inputs[cache];
    std::size_t from = 0;
    for_each_position(added, [&](const Position& at) {
      const auto sequence = static_cast<std::size_t>(at[0]);
      const std::int64_t slot = static_cast<std::int64_t>(inputs[4][sequence]) + at[2];
      Position to = {at[0], at[1], slot, at[3]};
      if (inputs.size() > 5) {
        const auto pages = static_cast<std::size_t>(problem.inputs[5].shape[1]);
        const double page = inputs[5][sequence * pages + static_cast<std::size_t>(slot / shape[1])];
        to = {static_cast<std::int64_t>(page), slot % shape[1], at[1], at[3]};
      }
      values[static_cast<std::size_t>(dot(to, contiguous_strides(shape)))] = inputs[2 + cache][from++];
    });
    out.push_back({values, Values(values.size(), 0)});
  }
  return out;
}

}  // namespace

std::span<const Reference> decoder_references() {
  static constexpr Reference rows[] = {
      {OpId::add_rms_norm, solve_add_rms_norm},
      {OpId::silu_mul, solve_silu_mul},
      {OpId::rope, solve_rope},
      {OpId::kv_append, solve_kv_append},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime {
namespace {

using oracle::Values;

Values solved(const std::string& text, const std::vector<Values>& inputs, std::size_t output = 0) {
  return oracle::solve(parse_problem(text), inputs)[output].value;
}

// Worked out by hand: the oracle itself under test.
TEST(DecoderOracle, AgreesWithValuesWorkedOutByHand) {
  const std::vector<Values> quarter_turn = {{1, 2, 3, 4, 5}, {1}, {9, 9, 0, 0}, {9, 9, 1, -1}};
  EXPECT_EQ(solved("rope(f32[1,1,5], i64[1], f32[2,2], f32[2,2])", quarter_turn), (Values{-3, 4, 1, -2, 5}));
  EXPECT_EQ(solved("rope(f32[1,1,5], i64[1], f32[2,2], f32[2,2]; interleaved=true)", quarter_turn),
            (Values{-2, 1, 4, -3, 5}));
  EXPECT_EQ(solved("add_rms_norm(f64[1,2], f64[1,2], f64[2]; eps=0)", {{2, 3}, {1, 1}, {5, 50}}, 1), (Values{3, 4}));
  EXPECT_NEAR(solved("add_rms_norm(f64[1,2], f64[1,2], f64[2]; eps=0)", {{2, 3}, {1, 1}, {5, 50}})[1],
              50 * 4 / std::sqrt(12.5), 1e-12);
  EXPECT_NEAR(solved("silu_mul(f64[4])", {{0, 1, 7, 10}})[1], 10 / (1 + std::exp(-1.0)), 1e-12);
  EXPECT_EQ(solved("kv_append(f32[1,1,3,1], f32[1,1,3,1], f32[1,1,1,1], f32[1,1,1,1], i32[1])",
                   {{1, 2, 3}, {4, 5, 6}, {9}, {8}, {1}}, 1),
            (Values{4, 8, 6}));
  EXPECT_EQ(solved("kv_append(f32[3,2,1,1], f32[3,2,1,1], f32[1,1,2,1], f32[1,1,2,1], i32[1], i32[1,2])",
                   {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {7, 8}, {5, 6}, {1}, {2, 0}}),
            (Values{8, 0, 0, 0, 0, 7}));
}

// Sums that are normalized before they are rounded are off by up to a unit of bf16.
TEST(DecoderOracle, FindsANormOfSumsThatWereNotRoundedFirst) {
  const oracle::Case run(parse_problem("add_rms_norm(bf16[4,64], bf16[4,64])"), 3);
  const auto answers_in = [&](const char* text) { return oracle::solve(parse_problem(text), run.inputs()); };
  oracle::Result result{"made up", {}};
  for (const oracle::Answer& answer : answers_in("add_rms_norm(f64[4,64], f64[4,64])")) {
    Values values;
    for (const double value : answer.value) values.push_back(oracle::rounded(DataType::bfloat16, value));
    result.values.push_back(values);
  }
  EXPECT_EQ(run.compare({"made up", {run.answers()[0].value, result.values[1]}}), "");
  EXPECT_NE(run.compare(result), "");
}

Tensor filled(DataType dtype, double value) {
  const Tensor tensor = Tensor::empty(dtype, {33});
  const std::vector<std::byte> bytes = oracle::layout(tensor.spec(), Values(33, value));
  std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

// silu(-104) is too small for a float, and these products are not.
TEST(SiluMul, TakesALargeFactorOfATinySilu) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Attributes attributes = parse_problem("silu_mul(f32[33], f32[33])").attributes;
  for (const DataType dtype : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const double factor : {infinity, -infinity, oracle::rounded(dtype, 0x1p127)}) {
      const double wanted = -104 / (1 + std::exp(104.0)) * factor;
      const std::vector<Tensor> inputs = {filled(dtype, -104), filled(dtype, factor)};
      for (const auto& kernel : cpu_tests::cpu_kernels(OpId::silu_mul)) {
        const auto outputs = cpu_tests::forced_call(std::string(kernel->name()), attributes, inputs);
        for (const float got : outputs[0]) {
          const double bound = dtype == DataType::float32 ? 1e-6 : 1e-2;
          const bool right = std::isinf(wanted) ? got == wanted : std::fabs(got / wanted - 1) < bound;
          ASSERT_TRUE(right) << kernel->name() << " of " << to_string(dtype) << ": " << got << ", not " << wanted;
        }
      }
    }
  }
}

TEST(KvAppend, WritesInPlaceReadsNoPageThatItDoesNotWriteAndLetsTheLaterSequenceWin) {
  for (const auto& kernel : cpu_tests::cpu_kernels(OpId::kv_append)) {
    float keys[6] = {1, 2, 3, 4, 5, 6}, values[6] = {1, 2, 3, 4, 5, 6}, key[] = {10, 20}, value[] = {30, 40};
    std::int32_t lengths[] = {3, 2}, table[] = {-1, 1, 77, 1};
    const Tensor key_cache(keys, make_spec(DataType::float32, {3, 2, 1, 1}));
    const Tensor value_cache(values, make_spec(DataType::float32, {3, 2, 1, 1}));
    const Tensor new_key(key, make_spec(DataType::float32, {2, 1, 1, 1}));
    const Tensor new_value(value, make_spec(DataType::float32, {2, 1, 1, 1}));
    const Tensor length(lengths, make_spec(DataType::int32, {2}));
    const Tensor page_table(table, make_spec(DataType::int32, {2, 2}));
    KernelPolicy policy;
    policy.force("kv_append", kernel->name());
    const ScopedPolicy scope(Runtime::global().dispatcher(), policy);
    const Tensor* const in[] = {&key_cache, &value_cache, &new_key, &new_value, &length, &page_table};
    const Tensor* const out[] = {&key_cache, &value_cache};
    Runtime::global().dispatcher().dispatch({OpId::kv_append, in, out});
    EXPECT_EQ(Values(keys, keys + 6), (Values{1, 2, 20, 10, 5, 6})) << kernel->name();
    EXPECT_EQ(Values(values, values + 6), (Values{1, 2, 40, 30, 5, 6})) << kernel->name();
    lengths[1] = 3;  // where the other sequence writes
    Runtime::global().dispatcher().dispatch({OpId::kv_append, in, out});
    EXPECT_EQ(Values(keys, keys + 6), (Values{1, 2, 20, 20, 5, 6})) << kernel->name();
  }
}

TEST(BadInput, ValuesThatLeadOutsideTablesAndCachesAreRefusedByEveryKernelBeforeItWrites) {
  constexpr const char* rope = "rope(bf16[300,4,64], i64[300], f32[9,32], f32[9,32])";
  constexpr const char* strided = "rope(f64[3,2,8], i32[3]{2}, f64[9,4], f64[9,4])";
  constexpr const char* line = "kv_append(f32[2,3,9,4], f32[2,3,9,4], f32[2,3,2,4], f32[2,3,2,4], i32[2])";
  constexpr const char* pages = "kv_append(f32[7,4,3,5], f32[7,4,3,5], f32[2,3,6,5], f32[2,3,6,5], i64[2], i32[2,2])";
  for (const cpu_tests::BadIndex& bad : {
           cpu_tests::BadIndex{rope, 1, 0, 9},
           cpu_tests::BadIndex{rope, 1, 299, -1},
           cpu_tests::BadIndex{strided, 1, 2, 1e9},
           cpu_tests::BadIndex{line, 4, 0, -1},
           cpu_tests::BadIndex{line, 4, 1, 8},  // 8 and 2 are 10 of 9
           cpu_tests::BadIndex{pages, 4, 1, 3},
           cpu_tests::BadIndex{pages, 5, 0, 7},
           cpu_tests::BadIndex{pages, 5, 3, -2},
       }) {
    const Problem problem = parse_problem(bad.problem);
    for (const auto& kernel : cpu_tests::cpu_kernels(problem.op)) {
      if (kernel->supports(problem, cpu_tests::cpu_profile()).supported) cpu_tests::expect_index_refused(bad, *kernel);
    }
  }
}

TEST(DecoderShapes, AreInferred) {
  EXPECT_EQ(outputs_of("add_rms_norm(bf16[2,3,8], f32[2,3,8], f32[8])"), "bf16[2,3,8], f32[2,3,8]");
  EXPECT_EQ(outputs_of("silu_mul(bf16[2,8])"), "bf16[2,4]");
  EXPECT_EQ(outputs_of("silu_mul(bf16[2,8], f32[2,8])"), "f32[2,8]");
  EXPECT_EQ(outputs_of("rope(f16[2,5,4,8], i32[5], f32[9,3], f32[9,3])"), "f16[2,5,4,8]");
  EXPECT_EQ(outputs_of("kv_append(i8[7,4,3,5], i8[7,4,3,6], i8[2,3,6,5], i8[2,3,6,6], i64[2], i32[2,3])"),
            "i8[7,4,3,5], i8[7,4,3,6]");
}

TEST(DecoderShapes, ThatDoNotFitAreRefused) {
  expect_refused("add_rms_norm(f32[], f32[])", "without dims");
  expect_refused("add_rms_norm(f32[2,8], f32[8])", "the residual is [8]");
  expect_refused("add_rms_norm(f32[2,8], f32[2,8], f32[2])", "the weight is [2]");
  expect_refused("add_rms_norm(f32[2,8], i32[2,8])", "not floating");
  expect_refused("add_rms_norm(f32[2,8], f32[2,8]; eps=-1)", "eps is negative");
  expect_refused("silu_mul(f32[2,7])", "odd");
  expect_refused("silu_mul(f32[])", "without dims");
  expect_refused("silu_mul(f32[2,8], f32[8])", "the factor is [8]");
  expect_refused("silu_mul(i32[8])", "not floating");
  expect_refused("rope(f32[8], i64[], f32[9,4], f32[9,4])", "no heads");
  expect_refused("rope(f32[5,2,8], i64[4], f32[9,4], f32[9,4])", "do not broadcast");
  expect_refused("rope(f32[5,2,8], i64[3,5], f32[9,4], f32[9,4])", "more than the tokens");
  expect_refused("rope(f32[5,2,8], f32[5], f32[9,4], f32[9,4])", "cast it to i64 or i32");
  expect_refused("rope(f32[5,2,8], i64[5], f32[9,5], f32[9,5])", "at most 4, half a head");
  expect_refused("rope(f32[5,2,8], i64[5], f32[9,4], f32[9,3])", "table of sines is [9,3]");
  expect_refused("rope(f32[5,2,8], i64[5], f32[4], f32[4])", "has 1 dims, not 2");
  const std::string rest = ", f32[2,3,2,4], f32[2,3,2,4], i32[2])";
  expect_refused("kv_append(f32[2,3,9,4], f32[2,3,4]" + rest, "has 3 dims, not 4");
  expect_refused("kv_append(f32[2,2,9,4], f32[2,3,9,4]" + rest, "the cache of keys is [2,2,9,4]");
  expect_refused("kv_append(f32[2,3,9,4], f32[2,3,8,4]" + rest, "the cache of values is [2,3,8,4]");
  expect_refused("kv_append(f32[2,3,1,4], f32[2,3,1,4]" + rest, "2 tokens are added");
  expect_refused("kv_append(i8[2,3,9,4], f32[2,3,9,4]" + rest, "not both floating");
  expect_refused("kv_append(f32[2,3,9,4], f32[2,3,9,4], f32[2,3,2,4], f32[2,3,1,4], i32[2])", "the value is [2,3,1,4]");
  expect_refused("kv_append(f32[2,3,9,4], f32[2,3,9,4], f32[2,3,2,4], f32[2,3,2,4], i32[3])", "the list of lengths");
  expect_refused("kv_append(f32[7,4,3,5], f32[7,4,3,5], f32[2,3,6,5], f32[2,3,6,5], i64[2], i32[3,3])", "page table");
  expect_refused("kv_append(f32[7,4,3,5], f32[7,4,3,5], f32[2,3,6,5], f32[2,3,6,5], i64[2], i32[2,1])", "room for 4");
}

TEST(DecoderShapes, HaveNoBackward) {
  expect_error(ErrorCode::not_supported, "use rope forward only",
               [] { parse_problem("rope:backward(f32[5,2,8], i64[5], f32[9,4], f32[9,4], f32[5,2,8])"); });
  expect_error(ErrorCode::not_supported, "use silu_mul forward only",
               [] { parse_problem("silu_mul:backward(f32[8], f32[4])"); });
}

}  // namespace
}  // namespace xpuruntime

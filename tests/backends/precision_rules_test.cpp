// Every op under every rule that a registry may have for it: the dispatcher casts f32 data to what the rule says, runs
// a kernel that it chooses itself, and casts back. Against float64 on inputs that this test rounds by itself.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/cases.h"
#include "backends/oracle.h"
#include "select/kernel_probe.h"
#include "xpuruntime/precision/precision.h"

namespace xpuruntime {
namespace {

constexpr int cases_of_each_op = 5;
constexpr std::int64_t most_elements = 20000;

bool is_small(const Problem& problem) {
  std::int64_t count = 0;
  for (const TensorSpec& spec : problem.inputs) count += element_count(spec);
  return count <= most_elements;
}

/// Some f32 problems of each op and direction.
std::vector<Problem> problems() {
  std::map<std::pair<OpId, Direction>, int> seen;
  std::vector<Problem> out;
  for (const cases::CaseText& text : cases::all()) {
    const Problem problem = parse_problem(text.problem);
    const bool fits = promoted_dtype(problem) == DataType::float32 && text.fill == oracle::Fill::usual;
    if (!fits || !is_small(problem) || element_count(problem.outputs[0]) == 0) continue;
    if (++seen[{problem.op, problem.direction}] <= cases_of_each_op) out.push_back(problem);
  }
  return out;
}

/// Tensors with these values, laid out as the specs say.
std::vector<Tensor> tensors_of(const std::vector<TensorSpec>& specs, const std::vector<oracle::Values>* values) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::vector<std::byte> bytes = values == nullptr
                                             ? std::vector<std::byte>(span_bytes(specs[i]), oracle::output_poison)
                                             : oracle::layout(specs[i], (*values)[i]);
    const Tensor memory = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes.size() + 16)});
    const std::size_t shift = specs[i].alignment >= 16 ? 0 : specs[i].alignment;
    std::copy(bytes.begin(), bytes.end(), memory.as<std::byte>() + shift);
    out.emplace_back(memory.data(), specs[i], Device{}, shift, memory.owner());
  }
  return out;
}

/// The problem that is computed, its outputs as exact as they can be told from outside: in the caller's dtype where
/// that is the narrower one.
Problem computed_at(const Problem& problem, DataType dtype) {
  Problem computed = at_precision(problem, dtype);
  for (std::size_t i = 0; i < computed.outputs.size(); ++i) {
    const bool narrower = size_of(problem.outputs[i].dtype) < size_of(computed.outputs[i].dtype);
    if (narrower) computed.outputs[i].dtype = problem.outputs[i].dtype;
  }
  return computed;
}

/// Others only move or compare what is given.
bool computes(OpId op) {
  const OpInfo& info = op_info(op);
  return info.category != OpCategory::movement && info.category != OpCategory::lookup &&
         info.inputs.front().follows_precision && op != OpId::unscale;
}

void check(const Problem& problem, DataType dtype) {
  Runtime& runtime = Runtime::global();
  const std::string what = to_string(problem) + " in " + std::string(to_string(dtype));
  AmpRegistry registry;
  registry.register_custom_op(problem.op, dtype, dtype);
  const ScopedAutocast scope(runtime.dispatcher(), registry);

  std::vector<oracle::Values> values = oracle::make_inputs(problem, 11, oracle::Fill::usual);
  const std::vector<Tensor> inputs = tensors_of(problem.inputs, &values),
                            outputs = tensors_of(problem.outputs, nullptr);
  const std::vector<const Tensor*> in = oracle::pointers(inputs), out = oracle::pointers(outputs);
  const Call call{.op = problem.op,
                  .inputs = in,
                  .outputs = out,
                  .attributes = &problem.attributes,
                  .direction = problem.direction};
  runtime.dispatcher().dispatch(call);
  const Decision& decision = runtime.dispatcher().decide(call);
  EXPECT_EQ(governing_dtype(decision.precision, problem), computes(problem.op) ? dtype : promoted_dtype(problem))
      << what;

  const Problem computed = computed_at(problem, dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (computed.inputs[i].dtype == problem.inputs[i].dtype) continue;
    for (double& value : values[i]) value = oracle::rounded(computed.inputs[i].dtype, value);
  }
  const std::vector<oracle::Answer> answers = oracle::solve(computed, values);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const oracle::Values got = oracle::elements(outputs[i].spec(), outputs[i].as<std::byte>());
    EXPECT_EQ(oracle::compare_output(computed, i, answers[i], got, decision.kernel), "") << what;
  }
}

constexpr DataType float32 = DataType::float32;

TEST(PrecisionRules, EveryOpIsRightInEveryPrecisionThatARuleMayGiveIt) {
  std::map<std::pair<OpId, Direction>, int> cast;
  for (const Problem& problem : problems()) {
    for (const DataType dtype : {DataType::bfloat16, DataType::float16, DataType::float32, DataType::float64}) {
      check(problem, dtype);
      cast[{problem.op, problem.direction}] += at_precision(problem, dtype) != problem;
    }
  }
  std::set<OpId> forward;
  for (const auto& [what, count] : cast) {
    EXPECT_EQ(count > 0, computes(what.first)) << to_string(what.first);
    if (what.second == Direction::forward) forward.insert(what.first);
  }
  EXPECT_GE(cast.size(), forward.size() + 10) << "ten or more backward";
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(OpId::builtin_count); ++i) {
    const OpId op = static_cast<OpId>(i);
    const bool takes_floats = usual_problem(op, std::span(&float32, 1)).value().inputs[0].dtype == DataType::float32;
    EXPECT_TRUE(!takes_floats || forward.contains(op)) << to_string(op);
  }
}

}  // namespace
}  // namespace xpuruntime

// Every op on tensors that fast kernels may refuse: nothing falls to the reference for its layout or alignment, and the
// values are those of float64.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backends/cases.h"
#include "backends/oracle.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// Strides of memory that goes through the dims in this order, the last one fastest, with `step` between elements.
Dims strides_in_order(const Dims& shape, const std::vector<std::size_t>& order, std::int64_t step) {
  Dims strides = shape;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    strides[*dim] = step;
    step *= std::max<std::int64_t>(shape[*dim], 1);
  }
  return strides;
}

std::vector<std::size_t> dims_of(const Dims& shape) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

TensorSpec transposed(const TensorSpec& spec) {
  std::vector<std::size_t> order = dims_of(spec.shape);
  std::reverse(order.begin(), order.end());
  return make_spec(spec.dtype, spec.shape, strides_in_order(spec.shape, order, 1));
}

/// Every second element of every second row.
TensorSpec stepped(const TensorSpec& spec) {
  Dims strides = strides_in_order(spec.shape, dims_of(spec.shape), 2);
  for (std::size_t i = 0; i + 1 < strides.size(); ++i) strides[i] *= 2;
  return make_spec(spec.dtype, spec.shape, strides);
}

/// The left part of wider rows.
TensorSpec sliced(const TensorSpec& spec) {
  Dims wider = spec.shape;
  if (wider.size() > 0) wider[wider.size() - 1] += 3;
  return make_spec(spec.dtype, spec.shape, contiguous_strides(wider));
}

TensorSpec channels_last(const TensorSpec& spec) {
  std::vector<std::size_t> order = dims_of(spec.shape);
  if (order.size() > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return make_spec(spec.dtype, spec.shape, strides_in_order(spec.shape, order, 1));
}

TensorSpec broadcast(const TensorSpec& spec) {
  Dims strides = spec.strides;
  if (strides.size() > 0) strides[0] = 0;
  return make_spec(spec.dtype, spec.shape, strides);
}

TensorSpec off_by_an_element(const TensorSpec& spec) {
  return make_spec(spec.dtype, spec.shape, spec.strides, static_cast<std::uint8_t>(size_of(spec.dtype)));
}

TensorSpec off_by_a_byte(const TensorSpec& spec) { return make_spec(spec.dtype, spec.shape, spec.strides, 1); }

struct Layout {
  const char* name;
  TensorSpec (*of)(const TensorSpec&);
  bool for_outputs = true;
};

constexpr Layout layouts[] = {{"transposed", transposed},
                              {"stepped", stepped},
                              {"sliced", sliced},
                              {"channels last", channels_last},
                              {"broadcast", broadcast, false},
                              {"off by an element", off_by_an_element},
                              {"off by a byte", off_by_a_byte}};

enum class Which { inputs, outputs, all };

Problem laid_out(Problem problem, const Layout& layout, Which which) {
  if (which != Which::outputs) {
    for (TensorSpec& spec : problem.inputs) spec = layout.of(spec);
  }
  if (which != Which::inputs && layout.for_outputs) {
    for (TensorSpec& spec : problem.outputs) spec = layout.of(spec);
  }
  return problem;
}

bool is_contiguous(const Problem& problem) {
  const auto plain = [](const TensorSpec& spec) { return spec.contiguous && spec.alignment == 16; };
  return std::all_of(problem.inputs.begin(), problem.inputs.end(), plain) &&
         std::all_of(problem.outputs.begin(), problem.outputs.end(), plain);
}

/// Some plain problems of every op and direction that a fast kernel takes.
std::vector<Problem> fast_problems(Runtime& runtime) {
  constexpr std::size_t of_each = 4;
  std::map<std::pair<OpId, Direction>, std::map<DataType, std::size_t>> taken;
  std::vector<Problem> out;
  for (const cases::CaseText& text : cases::all()) {
    if (text.fill != oracle::Fill::usual) continue;
    Problem problem = parse_problem(text.problem);
    auto& count = taken[{problem.op, problem.direction}][problem.inputs[0].dtype];
    const bool tiny = element_count(problem.outputs[0]) < 8;
    if (!is_contiguous(problem) || count >= of_each || tiny) continue;
    if (runtime.dispatcher().explain(problem).kernel == "reference") continue;
    ++count;
    out.push_back(std::move(problem));
  }
  return out;
}

TEST(Layouts, NoOpFallsToTheReferenceAndAllValuesAreRight) {
  Runtime runtime{{false, false, {}}};
  std::set<OpId> ran;
  std::size_t copied = 0;
  for (const Problem& plain : fast_problems(runtime)) {
    for (const Layout& layout : layouts) {
      for (const Which which : {Which::inputs, Which::outputs, Which::all}) {
        const Problem problem = checked(laid_out(plain, layout, which));
        if (problem == plain) continue;
        SCOPED_TRACE(std::string(layout.name) + ": " + to_string(problem));
        const Decision decision = runtime.dispatcher().explain(problem);
        // What calls in place write a part of is not copied.
        const auto inputs = op_info(problem.op).inputs;
        const bool is_partly = std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& in) { return in.partly; });
        if (is_partly && decision.kernel.empty()) continue;
        ASSERT_FALSE(decision.kernel.empty()) << decision.to_text();
        EXPECT_TRUE(is_partly || decision.kernel != "reference") << decision.to_text();
        for (const CopyStep& step : decision.copies) EXPECT_NE(step.kernel, "reference");
        const oracle::Case run(problem, hash_of(plain));
        const oracle::Result result = run.through(runtime);
        EXPECT_EQ(result.kernel, decision.kernel);
        EXPECT_EQ(run.compare(result), "");
        copied += !decision.copies.empty();
        ran.insert(problem.op);
      }
    }
  }
  for (const OpId op : runtime.registry().registered_ops()) {
    const bool has_fast_kernel = runtime.registry().kernels(op, DeviceType::cpu).size() > 1;
    EXPECT_EQ(ran.contains(op), has_fast_kernel) << to_string(op);
  }
  EXPECT_GT(copied, 500u);
}

TEST(Layouts, ALargeTensorOfWhichLittleIsUsedIsNotCopied) {
  const auto decide = [](const char* text) { return Runtime::global().dispatcher().explain(parse_problem(text)); };
  for (const char* text :
       {"embedding(i64[4], f32[50000,768]{1,50000})", "embedding(i64[4], f32[50000,768]{1536,2})",
        "nll_loss(f32[8,50000]{1,8}, i64[8])",
        "kv_append(f32[1,8,1024,64]{524288,65536,1,1024}, f32[1,8,1024,64], f32[1,8,1,64], f32[1,8,1,64], i64[1]) -> "
        "f32[1,8,1024,64]{524288,65536,1,1024}, f32[1,8,1024,64]"}) {
    const Decision decision = decide(text);
    EXPECT_TRUE(decision.copies.empty()) << decision.to_text();
  }
  EXPECT_NE(decide("nll_loss(f32[8,50000]{1,8}, i64[8])").to_text().find("bytes, far more than the call uses"),
            std::string::npos);
  EXPECT_EQ(decide("embedding(i64[20000], f32[50000,8]{1,50000})").kernel, "rows");
}

}  // namespace
}  // namespace xpuruntime

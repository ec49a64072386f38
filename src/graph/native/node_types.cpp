#include <algorithm>

#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {
namespace {

// A bit for each input that has the type of the first one of them.
constexpr unsigned all = ~0U;
constexpr unsigned inputs(std::initializer_list<unsigned> which) {
  unsigned bits = 0;
  for (const unsigned i : which) bits |= 1U << i;
  return bits;
}

struct OneType {
  std::string_view name = {};
  unsigned inputs = all;
  bool floating = false;
};

// Our kernels would take what ONNX does not: arithmetic on f32 and i64, say.
constexpr OneType one_type[] = {
    {"Add"},
    {"Sub"},
    {"Mul"},
    {"Div"},
    {"Mod"},
    {"Max"},
    {"Min"},
    {"Sum"},
    {"Mean"},
    {"MatMul"},
    {"Gemm"},
    {"Einsum"},
    {"Concat"},
    {"Range"},
    {"Clip"},
    {"PRelu"},
    {"And"},
    {"Or"},
    {"Xor"},
    {"Equal"},
    {"Less"},
    {"LessOrEqual"},
    {"Greater"},
    {"GreaterOrEqual"},
    {"BitShift"},
    {"BitwiseAnd"},
    {"BitwiseOr"},
    {"BitwiseXor"},
    {"Conv", all, true},
    {"ConvTranspose", all, true},
    {"InstanceNormalization", all, true},
    {"LayerNormalization", all, true},
    {"LSTM", inputs({0, 1, 2, 3, 5, 6, 7}), true},
    {"GRU", inputs({0, 1, 2, 3, 5}), true},
    {"RNN", inputs({0, 1, 2, 3, 5}), true},
    {"Where", inputs({1, 2})},
    {"Pad", inputs({0, 2})},
    {"ScatterElements", inputs({0, 2})},
    {"ScatterND", inputs({0, 2})},
};

}  // namespace

void check_types(const NodeCall& call) {
  if (!call.node().domain.empty()) return;
  const auto* row = std::find_if(std::begin(one_type), std::end(one_type),
                                 [&](const OneType& one) { return one.name == call.node().op; });
  if (row == std::end(one_type)) return;
  const auto refuse = [](const std::string& what) {
    fail(ErrorCode::corrupt_data, "Session", what + "; add a Cast, or export the model anew");
  };
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < call.size(); ++i) {
    const bool counts = row->inputs == all || (i < 32 && ((row->inputs >> i) & 1U) != 0);
    if (!call.has(i) || !counts) continue;
    if (!first) first = i;
    const std::string type(to_string(call.dtype(i)));
    if (call.dtype(i) != call.dtype(*first)) {
      refuse("inputs " + std::to_string(*first) + " and " + std::to_string(i) + " have to be of one type, and are " +
             std::string(to_string(call.dtype(*first))) + " and " + type);
    }
    if (row->floating && !is_floating(call.dtype(i))) {
      refuse("input " + std::to_string(i) + " has to be of a floating type, and is " + type);
    }
  }
}

}  // namespace xpuruntime::native

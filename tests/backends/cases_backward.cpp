#include <algorithm>
#include <cmath>

#include "backends/cases.h"
#include "backends/oracle_gradients.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::cases {
namespace {

/// Multiplications of a forward product, roughly. Those of many are left to the few cases below: the references would
/// take most of the suite's time.
bool is_large(const Problem& forward) {
  if (op_info(forward.op).category != OpCategory::matrix) return false;
  constexpr double most = 400'000;
  const double a = static_cast<double>(element_count(forward.inputs[0])),
               b = static_cast<double>(element_count(forward.inputs[1])),
               out = static_cast<double>(element_count(forward.outputs[0]));
  if (forward.op == OpId::matmul || forward.op == OpId::linear) return std::sqrt(a * b * out) > most;
  return out * b / static_cast<double>(std::max<std::int64_t>(forward.inputs[1].shape[0], 1)) > most;
}

/// The backward problem of a forward one, whose gradient lies as the forward output does; empty where there is none.
std::string backward_of(const std::string& text) {
  try {
    const Problem forward = parse_problem(text);
    if (forward.direction == Direction::backward) return {};  // it stands for itself
    if (!oracle::has_gradients(forward.op) || is_large(forward) || !opt_ins_of(forward).empty()) return {};
    std::vector<TensorSpec> inputs = forward.inputs;
    inputs.push_back(forward.outputs[0]);
    // Without the device: the case is for every one.
    return replaced(to_string(make_problem(forward.op, inputs, forward.attributes, {}, Direction::backward)), " @cpu:0",
                    "");
  } catch (const Error&) {
    return {};  // integers have no gradients
  }
}

/// What forward cases cannot have: outputs that are strided or of another dtype, and gradients that differ from both.
void add_outputs(List& list) {
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "matmul:backward(T[17,33], T[33,20], T[17,20]) -> T[17,33]{66,2}, T[33,20]{1,33}",
                "matmul:backward(T[5,7,16], T[16,9], T[5,7,9]) -> T[5,7,16]{16,80,1}, T[16,9]{18,2}",
                "matmul:backward(T[5,7,16]{16,80,1}, T[16,9], T[5,7,9])",  // rows that no one stride walks
                "matmul:backward(T[3,2,7,16], T[3,1,16,9], T[3,2,7,9])",
                "matmul:backward(T[1,2,7,16], T[3,1,16,9], T[3,2,7,9])",
                "matmul:backward(T[7,16], T[0,16,9], T[0,7,9])",  // nothing to sum: zeros
                "matmul:backward(T[0,7,16], T[16,9], T[0,7,9])",
                "matmul:backward(T[6,8], T[8,5], T[6,5]{0,0})",  // the gradient of a sum
                "linear:backward(T[9,33], T[17,33], T[17], T[9,17]) -> T[9,33]{66,2}, T[17,33]{1,17}, T[17]{3}",
                "linear:backward(T[2,9,33], T[17,33], T[17], T[2,9,17]{1,34,2}; activation=gelu)",
                "linear:backward(T[0,9,33], T[17,33], T[17], T[0,9,17]; activation=silu)",
                "conv2d:backward(T[2,4,7,8], T[6,4,3,3], T[6], T[2,6,5,6]) -> T[2,4,7,8]{224,1,32,4}, "
                "T[6,4,3,3]{72,18,6,2}, T[6]{2}",
                "relu:backward(T[6,9], T[6,9]{1,6}) -> T[6,9]{18,2}",
                "gelu:backward(T[6,9]{18,2}, T[6,9]{0,1}) -> T[6,9]{1,6}",
                "softmax:backward(T[6,9], T[6,9]{1,6}) -> T[6,9]{18,2}",
                "log_softmax:backward(T[2,6,9], T[2,6,9]{108,18,2}; dim=1) -> T[2,6,9]{1,2,12}",
                "layer_norm:backward(T[6,9], T[9], T[9], T[6,9]) -> T[6,9]{1,6}, T[9]{2}, T[9]{3}",
                "cross_entropy:backward(T[6,9], i64[6], T[]) -> T[6,9]{1,6}",
                "nll_loss:backward(T[6,9], i64[6], T[6]{2}; reduction=none) -> T[6,9]{18,2}",
            });
}

void add_mixed(List& list) {
  for (const char* text :
       {"matmul:backward(bf16[33,64], bf16[64,48], f32[33,48])",
        "matmul:backward(f16[33,64], f32[64,48], f16[33,48])",
        "matmul:backward(bf16[33,64], bf16[64,48], bf16[33,48]) -> f32[33,64], f32[64,48]",
        "matmul:backward(f32[9,16], f64[16,9], f64[9,9])",
        "matmul:backward(tf32[5,16], tf32[16,9], f32[5,9])",
        "matmul:backward(f8e4m3[5,16], f8e4m3[16,9], f32[5,9])",
        "matmul:backward(i8[5,16], f32[16,9], f32[5,9])",
        "linear:backward(bf16[33,64], bf16[48,64], f32[48], bf16[33,48]; activation=gelu)",
        "linear:backward(bf16[33,64], bf16[48,64], bf16[48], f32[33,48]; activation=relu)",
        "linear:backward(f32[33,64], f32[48,64], f32[48], bf16[33,48]; activation=silu) -> f32[33,64], bf16[48,64], "
        "f32[48]",
        "conv2d:backward(bf16[1,4,8,8], bf16[6,4,3,3], bf16[6], bf16[1,6,6,6]) -> f32[1,4,8,8], f32[6,4,3,3], f32[6]",
        "conv2d:backward(f16[1,4,8,8], f32[6,4,3,3], bf16[1,6,6,6])",
        "relu:backward(bf16[70], f32[70])",
        "silu:backward(f32[70], bf16[70]) -> f16[70]",
        "softmax:backward(bf16[5,70], f32[5,70])",
        "layer_norm:backward(bf16[5,70], f32[70], f32[70], bf16[5,70])",
        "layer_norm:backward(f32[5,70], bf16[70], f16[70], f32[5,70]) -> f32[5,70], f32[70], bf16[70]",
        "layer_norm:backward(bf16[5,70], bf16[70], bf16[70], f32[5,70])",
        "cross_entropy:backward(bf16[5,13], i64[5], f32[])",
        "cross_entropy:backward(bf16[5,13], i64[5], f32[13], f32[])",
        "cross_entropy:backward(f32[5,13], i64[5], f32[5]; reduction=none) -> f64[5,13]",
        "matmul:backward(f32[17,33]/4, f32[33,29]/4, f32[17,29]/4) -> f32[17,33]/4, f32[33,29]/4"}) {
    list.add(text);
  }
}

/// Enough for several threads, and rows past every chunk.
void add_large(List& list) {
  list.each({"f32", "f16", "bf16"},
            {
                "matmul:backward(T[4,64,70], T[70,65], T[4,64,65])",
                "matmul:backward(T[64,70], T[4,70,65], T[4,64,65])",
                "linear:backward(T[2,64,80], T[130,80], T[130], T[2,64,130]; activation=relu)",
                "conv2d:backward(T[3,8,20,20], T[17,8,3,3], T[17], T[3,17,20,20]; padding=1)",
                "conv2d:backward(T[1,24,40,40], T[24,1,3,3], T[1,24,40,40]; groups=24 padding=1)",
                "softmax:backward(T[3,9000], T[3,9000])",
                "log_softmax:backward(T[40,30,60], T[40,30,60]; dim=1)",
                "layer_norm:backward(T[3,9000], T[9000], T[9000], T[3,9000])",
                "layer_norm:backward(T[2000,96], T[96], T[96], T[2000,96])",
                "cross_entropy:backward(T[3,9000], i64[3], T[]; label_smoothing=0.1)",
                "gelu:backward(T[100000], T[100000])",
            });
}

/// Images smaller than their windows or the steps of these: oneDNN's copies of them have room beside that it does not
/// write. Tests of plans fill it with NaN.
void add_small_images(List& list) {
  list.each({"f32", "f16", "bf16"},
            {
                "conv2d:backward(T[2,32,1,1], T[32,32,3,3], T[2,32,1,1]; stride=2 padding=1)",
                "conv2d:backward(T[2,8,2,2], T[8,8,3,3], T[2,8,1,1]; stride=3 padding=1)",
                "conv2d:backward(T[1,8,1,1], T[16,8,7,7], T[1,16,1,1]; stride=2 padding=3)",
                "conv2d:backward(T[2,3,9,9], T[16,3,7,7], T[2,16,5,5]; stride=2 padding=3)",
                "conv2d:backward(T[2,16,8,7], T[24,16,3,3], T[2,24,4,4]; stride=2 padding=1)",
                "conv3d:backward(T[2,8,1,1,1], T[8,8,3,3,3], T[2,8,1,1,1]; stride=2 padding=1)",
                "conv3d:backward(T[2,8,3,3,3], T[8,2,3,3,3], T[2,8,2,2,2]; groups=4 stride=2 padding=1)",
                "conv3d:backward(T[1,16,3,8,8], T[32,16,3,1,1], T[1,32,2,8,8]; stride=2,1,1 padding=1,0,0)",
                "conv3d:backward(T[1,8,3,4,4], T[8,8,3,3,3], T[1,8,2,4,4]; stride=2,1,1 padding=1)",
                "conv3d:backward(T[1,16,4,1,8], T[16,16,3,3,3], T[1,16,4,1,8]; stride=1,2,1 padding=1)",
                "conv3d:backward(T[1,2,3,6,5], T[3,2,3,3,3], T[1,3,2,3,7]; stride=2,2,1 padding=1,1,2)",
                "conv3d:backward(T[1,4,4,2,6], T[8,4,2,7,2], T[1,8,3,2,7]; padding=0,3,1)",
                "conv3d:backward(T[3,1,1,3,9], T[8,1,1,7,3], T[3,8,1,1,7]; padding=0,2,0)",
            });
}

}  // namespace

std::vector<CaseText> backward_cases(const std::vector<CaseText>& forward) {
  List list;
  for (const CaseText& text : forward) {
    if (text.fill != oracle::Fill::usual) continue;
    if (std::string backward = backward_of(text.problem); !backward.empty()) list.add(std::move(backward));
  }
  add_outputs(list);
  add_mixed(list);
  add_large(list);
  add_small_images(list);
  list.each({"f32", "f16", "bf16", "f64"}, {"relu:backward(T[130], T[130])"}, oracle::Fill::special);
  return list.take();
}

}  // namespace xpuruntime::cases

#include "xpuruntime/runtime/report.h"

namespace xpuruntime {

std::vector<Problem> sample_problems() {
  constexpr std::string_view texts[] = {
      // A pre-norm transformer block: 128 tokens, width 768, 12 heads that lie in the rows of one projection.
      "layer_norm(f32[128,768], f32[768], f32[768])",
      "linear(f32[128,768], f32[2304,768], f32[2304])",
      "attention(f32[1,12,128,64]{768,64,2304,1}, f32[1,12,128,64]{768,64,2304,1}, f32[1,12,128,64]{768,64,2304,1}; "
      "causal=true)",
      "copy(f32[1,128,12,64]{8192,64,8192,1})",
      "linear(f32[128,768], f32[768,768], f32[768])",
      "add(f32[128,768], f32[128,768])",
      "linear(f32[128,768], f32[3072,768], f32[3072]; activation=gelu)",
      "linear(f32[128,3072], f32[768,3072], f32[768])",
      // A bottleneck of ResNet-50 on 56x56 with a pool behind it.
      "conv2d(f32[1,256,56,56], f32[64,256,1,1])",
      "batch_norm2d(f32[1,64,56,56], f32[64], f32[64], f32[64], f32[64])",
      "relu(f32[1,64,56,56])",
      "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)",
      "conv2d(f32[1,64,56,56], f32[256,64,1,1])",
      "batch_norm2d(f32[1,256,56,56], f32[256], f32[256], f32[256], f32[256])",
      "add(f32[1,256,56,56], f32[1,256,56,56])",
      "relu(f32[1,256,56,56])",
      "max_pool2d(f32[1,256,56,56]; kernel_size=3,3 stride=2,2 padding=1,1)",
  };
  std::vector<Problem> problems;
  for (const std::string_view text : texts) problems.push_back(parse_problem(text));
  return problems;
}

}  // namespace xpuruntime

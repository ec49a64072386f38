#include "graph/passes/passes.h"

namespace xpuruntime::native {
namespace {

struct PassOfLevel {
  int level;
  Pass* run;
};

// Norms come before biases, whose sums are parts of them; activations are joined once they are found.
constexpr PassOfLevel passes_by_level[] = {
    {2, find_activations}, {2, find_norms},       {2, find_attention}, {2, fold_channel_scales},
    {2, add_biases},       {2, join_activations}, {2, join_residuals},
};

}  // namespace

void run_passes(Program& program, int optimize_level, const PassContext& context) {
  if (optimize_level < 2) return;
  Rewriter rewriter(program, context);
  for (const PassOfLevel& pass : passes_by_level) {
    if (pass.level <= optimize_level) pass.run(rewriter);
  }
  rewriter.finish();
}

}  // namespace xpuruntime::native

#include "xpuruntime/precision/amp_registry.h"

namespace xpuruntime {
namespace {

// By the names that users know; two of them may name one op.
constexpr std::string_view whitelist[] = {"conv2d",
                                          "conv3d",
                                          "linear",
                                          "max_pool2d",
                                          "max_pool3d",
                                          "avg_pool2d",
                                          "avg_pool3d",
                                          "batch_norm1d",
                                          "batch_norm2d",
                                          "batch_norm3d",
                                          "dropout",
                                          "relu",
                                          "gelu",
                                          "sigmoid",
                                          "tanh",
                                          "elementwise_add",
                                          "elementwise_mul",
                                          "elementwise_sub",
                                          "elementwise_div",
                                          "matmul",
                                          "matrix_multiply"};
constexpr std::string_view blacklist[] = {
    "softmax",     "log_softmax",     "log",       "exp",        "sqrt",      "reduce_sum",         "reduce_mean",
    "reduce_max",  "reduce_min",      "normalize", "layer_norm", "embedding", "cross_entropy_loss", "nll_loss",
    "kl_div_loss", "poisson_nll_loss"};

}  // namespace

std::span<const std::string_view> DefaultAmpRules::default_whitelist() { return whitelist; }
std::span<const std::string_view> DefaultAmpRules::default_blacklist() { return blacklist; }

void DefaultAmpRules::apply_default_rules(AmpRegistry& registry) {
  const std::lock_guard lock(registry.mutex_);
  for (const std::string_view op : whitelist) registry.add_default(parse_op(op), OpPrecision::lower);
  for (const std::string_view op : blacklist) registry.add_default(parse_op(op), OpPrecision::higher);
  registry.changed();
}

}  // namespace xpuruntime

#pragma once

#include "backends/cpu/norm/lines.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// cross_entropy of dense scores, the classes being the lines' length. The class weights are f32; null where not given.
struct ClassLossJob {
  DataType dtype = DataType::float32;
  Lines lines = {};
  double smoothing = 0;
  const float* weight = nullptr;

  double share() const { return smoothing / static_cast<double>(lines.length); }
};

/// The dim of the scores that counts classes: the second, or the only one.
inline std::size_t class_dim(const TensorSpec& scores) { return scores.shape.size() == 1 ? 0 : 1; }

/// A tensor of one value a target, in the rank of the scores: with a class dim of extent 1.
TensorSpec with_class_dim(const TensorSpec& spec, const TensorSpec& scores);

/// An error that names the first target that is neither a class nor `ignore_index`; looks at all on up to `threads`.
Status check_targets(const Tensor& targets, std::int64_t classes, std::int64_t ignore_index, int threads);

/// What the vector code takes, of either direction, but for the output.
Verdict supports_class_inputs(const Problem& problem);

/// The job of a problem of either direction, without its weights.
ClassLossJob class_loss_job(const Problem& problem);

/// The bytes that `class_weights` needs: none where the weights are f32 or not given.
std::uint64_t class_weight_bytes(const Problem& problem);

/// The class weights as f32, in `space` where they are not.
const float* class_weights(const Tensor& weights, void* space);

/// The losses of positions [begin, end), position i being inner position i % inner of outer i / inner. `targets` has a
/// class for each of them, or -1 for one that does not count.
void cross_entropy_of_classes(const ClassLossJob& job, const void* scores, const std::int64_t* targets,
                              std::int64_t begin, std::int64_t end, float* losses);

/// The same with a dense tensor of probabilities of the scores' dtype.
void cross_entropy_of_probabilities(const ClassLossJob& job, const void* scores, const void* probabilities,
                                    std::int64_t begin, std::int64_t end, float* losses);

/// The gradient of the scores at the same positions, in `out`, which is as the scores are; gradients[i - begin] is that
/// of position i's loss. `weights` is the sum of the class weights.
void cross_entropy_gradient_of_classes(const ClassLossJob& job, double weights, const void* scores,
                                       const std::int64_t* targets, const float* gradients, std::int64_t begin,
                                       std::int64_t end, void* out);
void cross_entropy_gradient_of_probabilities(const ClassLossJob& job, const void* scores, const void* probabilities,
                                             const float* gradients, std::int64_t begin, std::int64_t end, void* out);

}  // namespace xpuruntime::cpu

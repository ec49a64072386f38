#pragma once

#include "backends/cpu/norm/lines.h"

namespace xpuruntime::cpu {

/// cross_entropy of dense scores, the classes being the lines' length. The class weights are f32; null where not given.
struct ClassLossJob {
  DataType dtype = DataType::float32;
  Lines lines = {};
  double smoothing = 0;
  const float* weight = nullptr;

  double share() const { return smoothing / static_cast<double>(lines.length); }
};

/// The job of a problem of either direction, without its weights.
ClassLossJob class_loss_job(const Problem& problem);

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

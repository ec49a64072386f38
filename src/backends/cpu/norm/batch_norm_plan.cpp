#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/batch_norm.h"
#include "backends/cpu/norm/kernels.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t picoseconds = 150;  // about what an element takes
// Values of a channel whose moments are taken at once, with planes and with channels last.
constexpr std::int64_t unit_values = 8192;
constexpr std::int64_t unit_rows = 256;
constexpr std::int64_t unit_channels = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::optional<BatchNormJob> job_of(const Problem& problem) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  const Lines lines = lines_along(in.shape, 1);
  if (in.contiguous && out.contiguous && lines.inner != 1) {
    return BatchNormJob{in.dtype, false, lines.outer, lines.length, lines.inner};
  }
  if (!has_channels_last(in) || !has_channels_last(out)) return std::nullopt;
  return BatchNormJob{in.dtype, true, lines.outer * lines.inner, lines.length, 1};
}

/// How the values of a channel are cut into units; depends on nothing but the shape.
struct Units {
  std::int64_t images = 1;  // of one unit; with channels last: rows
  std::int64_t groups = 1;
  std::int64_t piece = 1;  // of a plane
  std::int64_t pieces = 1;

  explicit Units(const BatchNormJob& job) {
    piece = std::clamp<std::int64_t>(job.plane, 1, unit_values);
    pieces = ceil_div(job.plane, piece);
    images = job.channels_last ? unit_rows : std::max<std::int64_t>(1, unit_values / piece);
    groups = ceil_div(job.batch, images);
  }
  std::int64_t count() const { return groups * pieces; }
};

/// The workspace: mean, scale and bias of each channel, then the moments of units where the channels are last.
struct Room {
  float* mean;
  float* scale;
  float* bias;
  float* unit_means;
  float* unit_squares;

  Room(void* workspace, const BatchNormJob& job, const Units& units) : mean(static_cast<float*>(workspace)) {
    scale = mean + job.channels;
    bias = scale + job.channels;
    unit_means = bias + job.channels;
    unit_squares = unit_means + job.channels * units.count();
  }
  BatchNormFactors factors() const { return {mean, scale, bias}; }
};

class BatchNormPlan final : public Plan {
 public:
  explicit BatchNormPlan(const Problem& problem)
      : job_(*job_of(problem)),
        units_(job_),
        training_(problem.attributes.boolean("training")),
        momentum_(problem.attributes.real("momentum")),
        eps_(problem.attributes.real("eps")),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const Room room(arguments.workspace, job_, units_);
    if (!training_) {
      for (std::int64_t c = 0; c < job_.channels; ++c) {
        set_factors(arguments, room, c, input(arguments, 1, c, 0), input(arguments, 2, c, 1));
      }
      write(arguments, room);
    } else if (job_.channels_last) {
      moments_of_rows(arguments, room);
      write(arguments, room);
    } else {
      train_planes(arguments, room);
    }
    return {};
  }

 private:
  static const void* x_of(const RunArguments& arguments) { return arguments.inputs[0]->as<const std::byte>(); }
  static void* y_of(const RunArguments& arguments) { return arguments.outputs[0]->as<std::byte>(); }

  /// Element c of a vector of channels; `absent` where the call has none.
  static double input(const RunArguments& arguments, std::size_t which, std::int64_t c, double absent) {
    if (which >= arguments.inputs.size()) return absent;
    const Tensor& tensor = *arguments.inputs[which];
    return loader_of(tensor.dtype())(tensor.as<const std::byte>(), c);
  }

  void set_factors(const RunArguments& arguments, const Room& room, std::int64_t c, double mean,
                   double variance) const {
    room.mean[c] = static_cast<float>(mean);
    room.scale[c] = static_cast<float>(input(arguments, 3, c, 1) / std::sqrt(variance + eps_));
    room.bias[c] = static_cast<float>(input(arguments, 4, c, 0));
  }

  void write(const RunArguments& arguments, const Room& room) const {
    const std::int64_t length = job_.channels_last ? job_.channels : job_.plane;
    const std::int64_t lines = job_.channels_last ? job_.batch : job_.batch * job_.channels;
    parallel_for(lines, lines_per_thread(length, picoseconds), threads_, [&](std::int64_t begin, std::int64_t end) {
      if (job_.channels_last) {
        write_rows(job_, x_of(arguments), y_of(arguments), begin, end, room.factors());
      } else {
        write_planes(job_, x_of(arguments), y_of(arguments), begin, end, 1, room.factors());
      }
    });
  }

  /// A channel stays with one thread, and is written while it is in the cache.
  void train_planes(const RunArguments& arguments, const Room& room) const {
    const std::int64_t planes = job_.batch * job_.channels;
    parallel_for(job_.channels, lines_per_thread(2 * job_.count(), picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c) {
                     finish(arguments, room, c, moments_of_channel(arguments, c));
                     write_planes(job_, x_of(arguments), y_of(arguments), c, planes, job_.channels, room.factors());
                   }
                 });
  }

  Moments moments_of_channel(const RunArguments& arguments, std::int64_t c) const {
    Moments all;
    for (std::int64_t u = 0; u < units_.count(); ++u) {
      const std::int64_t first = u / units_.pieces * units_.images, from = u % units_.pieces * units_.piece;
      all.add(plane_moments(job_, x_of(arguments), c, first, std::min(job_.batch, first + units_.images), from,
                            std::min(job_.plane, from + units_.piece)));
    }
    return all;
  }

  void moments_of_rows(const RunArguments& arguments, const Room& room) const {
    const std::int64_t blocks = ceil_div(job_.channels, unit_channels);
    const std::int64_t grain = lines_per_thread(unit_rows * unit_channels, picoseconds);
    parallel_for(units_.groups * blocks, grain, threads_, [&](std::int64_t first_unit, std::int64_t last_unit) {
      for (std::int64_t u = first_unit; u < last_unit; ++u) {
        const std::int64_t group = u / blocks, begin = u % blocks * unit_channels;
        const std::int64_t first = group * unit_rows, at = group * job_.channels + begin;
        row_moments(job_, x_of(arguments), first, std::min(job_.batch, first + unit_rows), begin,
                    std::min(job_.channels, begin + unit_channels), room.unit_means + at, room.unit_squares + at);
      }
    });
    for (std::int64_t c = 0; c < job_.channels; ++c) {
      Moments all;
      for (std::int64_t g = 0; g < units_.groups; ++g) {
        const auto rows = static_cast<double>(std::min(unit_rows, job_.batch - g * unit_rows));
        const std::int64_t at = g * job_.channels + c;
        all.add({rows, static_cast<double>(room.unit_means[at]), static_cast<double>(room.unit_squares[at])});
      }
      finish(arguments, room, c, all);
    }
  }

  /// The factors of a channel and its new running statistics: the variance there is the unbiased one, but of a single
  /// value there is none, and an empty batch has nothing to say.
  void finish(const RunArguments& arguments, const Room& room, std::int64_t c, const Moments& moments) const {
    set_factors(arguments, room, c, moments.mean, moments.variance());
    if (arguments.outputs.size() < 3) return;
    const double momentum = moments.count > 0 ? momentum_ : 0;
    const double variance = moments.squares / std::max(1.0, moments.count - 1);
    output(arguments, 1, c, (1 - momentum) * input(arguments, 1, c, 0) + momentum * moments.mean);
    output(arguments, 2, c, (1 - momentum) * input(arguments, 2, c, 1) + momentum * variance);
  }

  static void output(const RunArguments& arguments, std::size_t which, std::int64_t c, double value) {
    const Tensor& tensor = *arguments.outputs[which];
    storer_of(tensor.dtype())(tensor.as<std::byte>(), c, value);
  }

  BatchNormJob job_;
  Units units_;
  bool training_;
  double momentum_;
  double eps_;
  int threads_;
};

}  // namespace

Verdict supports_batch_norm_simd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict channels = is_contiguous(problem, 1); !channels.supported) return channels;
  const Verdict alike = is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", problem.inputs[0].dtype);
  if (!alike.supported || job_of(problem)) return alike;
  return Verdict::no("input and output are neither both contiguous nor both with dense channels last");
}

std::uint64_t workspace_batch_norm_simd(const Problem& problem, const DeviceProfile&) {
  const BatchNormJob job = *job_of(problem);
  const bool keeps_units = job.channels_last && problem.attributes.boolean("training");
  const std::int64_t floats = job.channels * (3 + (keeps_units ? 2 * Units(job).count() : 0));
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

std::unique_ptr<const Plan> prepare_batch_norm_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<BatchNormPlan>(problem);
}

}  // namespace xpuruntime::cpu

#include "backends/cuda/cutlass.h"

#include <algorithm>
#include <map>
#include <optional>

#include "backends/cuda/finish.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {

cudaError_t launch(const CutlassLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return launch.configuration->launch(launch, pointers, stream);
}

namespace {

constexpr std::size_t most_variants = 10;
constexpr int most_of_each = 3;                              // configuration
constexpr std::int64_t most_extent = std::int64_t{1} << 30;  // the kernels count in 32 bits
constexpr std::int64_t vector = 8;                           // elements of 16 bytes

Verdict is_built(const Problem&, const DeviceProfile&) {
  if (!cutlass_configurations().empty()) return Verdict::yes();
  return Verdict::no("this build has no CUTLASS: configure the preset `cuda` with pip's nvidia-cutlass installed");
}

// Code for sm_90a runs on nothing else.
Verdict is_hopper(const Problem&, const DeviceProfile& profile) {
  const int major = profile.compute_capability_major, minor = profile.compute_capability_minor;
  if (major == 9 && minor == 0) return Verdict::yes();
  return Verdict::no("compute capability " + std::to_string(major) + "." + std::to_string(minor) + " is not 9.0");
}

bool has_addend(const Problem& problem) { return finish_of(problem).beta != 0; }

Verdict is_one_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType dtype = problem.inputs[0].dtype;
  const Verdict b = is_same_dtype("input 1", problem.inputs[1].dtype, "the input's", dtype);
  if (!b.supported) return b;
  const Verdict output = is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", dtype);
  if (!output.supported || !has_addend(problem)) return output;
  return is_same_dtype("input 2", problem.inputs[2].dtype, "the input's", dtype);
}

Verdict extents_fit(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = is_not_empty(problem); !verdict.supported) return verdict;
  const MatmulShape shape = product_shape(problem);
  if (const Verdict verdict = has_one_batch_stride(shape); !verdict.supported) return verdict;
  for (const bool n : {true, false}) {
    const std::int64_t extent = n ? shape.n : shape.k;
    if (extent % vector == 0) continue;
    return Verdict::no(std::string(n ? "n = " : "k = ") + std::to_string(extent) + " is not a multiple of 8");
  }
  return is_at_most("the largest extent", std::max({shape.m, shape.n, shape.k, shape.batch_count}), most_extent);
}

/// Lines of neighbours that begin on 16 bytes, as Hopper's copies of tiles need them; nothing where it has none.
std::optional<CutlassMatrix> matrix_of(const TensorSpec& spec, const MatmulShape& shape, std::int64_t batch_stride,
                                       std::int64_t lines, std::int64_t line_stride, std::int64_t length,
                                       std::int64_t stride) {
  const bool batched = shape.batch_dims == 1;
  const std::int64_t leading = lines > 1 ? line_stride : length, batch = batched ? batch_stride : 0;
  const bool dense = (length == 1 || stride == 1) && leading >= length;
  const bool aligned = spec.alignment >= 16 && leading % vector == 0 && batch % vector == 0;
  const bool near = std::max(leading, batch) < std::int64_t{1} << 38;
  if (!dense || !aligned || !near || (batched && batch <= 0)) return {};
  return CutlassMatrix{leading, batch};
}

/// The third input as c, or as a bias where all rows share it.
bool set_addend(const Problem& problem, const MatmulShape& shape, double beta, CutlassLaunch& launch) {
  Problem other = problem;
  other.outputs[0] = broadcast_c(problem);
  const MatmulShape seen = product_shape(other);
  if (seen.m != shape.m || seen.batch_dims != shape.batch_dims) return false;
  const bool shared = (shape.m == 1 || seen.c.row == 0) && (shape.batch_dims == 0 || seen.c.batch[0] == 0);
  const TensorSpec& spec = problem.inputs[2];
  if (shared && beta == 1 && seen.c.column == 1 && spec.alignment >= 16) {
    launch.bias = true;
    return true;
  }
  const auto c = matrix_of(spec, shape, seen.c.batch[0], shape.m, seen.c.row, shape.n, seen.c.column);
  if (c) launch.c = *c;
  launch.beta = static_cast<float>(beta);
  return c.has_value();
}

/// All but the configuration and the split, or why not. The problem passed the checks above.
Verdict describe(const Problem& problem, const DeviceProfile& profile, CutlassLaunch& launch) {
  const MatmulShape shape = product_shape(problem);
  const Finish rest = finish_of(problem);
  const auto refuse = [](const char* which) {
    return Verdict::no(std::string(which) + " has no contiguous rows that begin on 16 bytes");
  };
  const auto a = matrix_of(problem.inputs[0], shape, shape.a.batch[0], shape.m, shape.a.row, shape.k, shape.a.column);
  if (!a) return refuse("input 0");
  auto b = matrix_of(problem.inputs[1], shape, shape.b.batch[0], shape.n, shape.b.column, shape.k, shape.b.row);
  launch.along_k = b.has_value();
  if (!b) b = matrix_of(problem.inputs[1], shape, shape.b.batch[0], shape.k, shape.b.row, shape.n, shape.b.column);
  if (!b) return Verdict::no("input 1 has no contiguous rows or columns that begin on 16 bytes");
  const auto d = matrix_of(problem.outputs[0], shape, shape.c.batch[0], shape.m, shape.c.row, shape.n, shape.c.column);
  if (!d) return refuse("output 0");
  if (rest.beta != 0 && !set_addend(problem, shape, rest.beta, launch)) return refuse("input 2");
  launch.m = static_cast<int>(shape.m);
  launch.n = static_cast<int>(shape.n);
  launch.k = static_cast<int>(shape.k);
  launch.batches = static_cast<int>(shape.batch_count);
  launch.a = *a;
  launch.b = *b;
  launch.d = *d;
  launch.dtype = problem.inputs[0].dtype;
  launch.alpha = static_cast<float>(rest.alpha);
  launch.activation = rest.activation;
  launch.units = std::max(profile.compute_units, 1);
  return Verdict::yes();
}

Verdict is_described(const Problem& problem, const DeviceProfile& profile) {
  CutlassLaunch launch;
  return describe(problem, profile, launch);
}

std::int64_t parts(std::int64_t of, std::int64_t size) { return (of + size - 1) / size; }

/// About how many microseconds it takes: good enough to put ways in order.
double estimate(const CutlassLaunch& p) {
  const CutlassConfiguration& tile = *p.configuration;
  const std::int64_t rows = parts(parts(p.m, tile.m), tile.cluster) * tile.cluster, columns = parts(p.n, tile.n);
  const std::int64_t tiles = rows * columns * p.batches, steps = parts(p.k, tile.k);
  // Of one step on one multiprocessor: to multiply, to copy both tiles, to read from memory what others do not read.
  const double m = tile.m, n = tile.n;
  const double multiply = 2 * m * n / 6.5e6;
  const double copy = 2 * (m + n / tile.cluster) / 70e3;
  const double read = 2 * (n / static_cast<double>(rows) + m / static_cast<double>(columns)) / 32e3;
  const double step = tile.k * std::max({multiply, copy, read});
  const double exchange = 8 * m * n / 70e3;  // sums of one part, written and read
  if (p.split == 0) {                        // a block has at least eight steps
    return 8 + step * std::max(static_cast<double>(tiles * steps) / p.units, 8.0) + 2 * exchange;
  }
  const auto turns = static_cast<double>(parts(tiles * p.split, p.units));
  const double work = turns * (1 + step * static_cast<double>(parts(steps, p.split)));
  return 4 + work + (p.split > 1 ? 2 + (p.split - 1) * exchange : 0);
}

struct Way {
  CutlassLaunch launch = {};
  std::uint64_t bytes = 0;
  double us = 0;
};

/// The likely best first.
std::vector<Way> ways_of(const Problem& problem, const DeviceProfile& profile) {
  CutlassLaunch launch;
  std::vector<Way> ways;
  if (!describe(problem, profile, launch).supported) return ways;
  const std::uint64_t limit = problem.limits.workspace_bytes.value_or(~std::uint64_t{0});
  for (const CutlassConfiguration* configuration : cutlass_configurations()) {
    if (configuration->dtype != launch.dtype) continue;
    launch.configuration = configuration;
    for (const int split : {1, 0, 2, 3, 4, 6, 8, 12, 16}) {
      const bool few = parts(launch.k, configuration->k) < 4 * (split == 0 ? 4 : split);  // steps for each part
      if (split != 1 && (!configuration->splits || few)) continue;
      launch.split = split;
      const std::uint64_t bytes = configuration->workspace_bytes(launch);
      if (bytes <= limit) ways.push_back({launch, bytes, estimate(launch)});
    }
  }
  std::stable_sort(ways.begin(), ways.end(), [](const Way& x, const Way& y) { return x.us < y.us; });
  return ways;
}

std::string token_of(const CutlassLaunch& launch) {
  const CutlassConfiguration& tile = *launch.configuration;
  return "tile=" + std::to_string(tile.m) + "x" + std::to_string(tile.n) + "x" + std::to_string(tile.k) +
         " cluster=" + std::to_string(tile.cluster) + " schedule=" + tile.schedule +
         " split=" + (launch.split == 0 ? "stream_k" : std::to_string(launch.split));
}

class CutlassPlan final : public Plan {
 public:
  CutlassPlan(Device device, const Way& way)
      : launch_("cutlass", device, way.launch, token_of(way.launch)), bytes_(way.bytes) {}

  Status run(const RunArguments& arguments) const override {
    if (bytes_ > 0 && arguments.workspace == nullptr) {
      return Status(ErrorCode::invalid_argument, "[cutlass] no workspace; pass the bytes that the kernel declares");
    }
    return launch_.run(arguments);
  }

  std::string token() const override { return launch_.token(); }
  std::optional<std::uint64_t> workspace_bytes() const override { return bytes_; }
  bool outlives_its_work() const override { return false; }
  bool sets_device() const override { return true; }

 private:
  LaunchPlan<CutlassLaunch> launch_;
  std::uint64_t bytes_;
};

}  // namespace

Verdict supports_cutlass(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({is_built, is_hopper, is_one_dtype, scalars_fit, extents_fit, is_described}, problem, profile);
}

std::uint64_t cutlass_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  std::uint64_t most = 0;
  for (const Way& way : ways_of(problem, profile)) most = std::max(most, way.bytes);
  return most;
}

std::vector<std::string> cutlass_variants(const Problem& problem, const PrepareContext& context) {
  std::vector<std::string> tokens;
  std::map<const CutlassConfiguration*, int> listed;
  for (const Way& way : ways_of(problem, context.profile)) {
    if (tokens.size() < most_variants && ++listed[way.launch.configuration] <= most_of_each) {
      tokens.push_back(token_of(way.launch));
    }
  }
  return tokens;
}

std::unique_ptr<const Plan> prepare_cutlass_variant(const Problem& problem, const PrepareContext& context,
                                                    std::string_view token) {
  for (const Way& way : ways_of(problem, context.profile)) {
    if (!token.empty() && token_of(way.launch) != token) continue;
    const ScopedDevice scope(context.device.index);
    check(scope.error(), "cutlass", "prepare");
    check(way.launch.configuration->prepare(way.launch), "cutlass", "prepare");
    return std::make_unique<CutlassPlan>(context.device, way);
  }
  fail(ErrorCode::not_supported, "cutlass", "it has no plan '" + std::string(token) + "' for this problem here");
}

std::unique_ptr<const Plan> prepare_cutlass(const Problem& problem, const PrepareContext& context) {
  return prepare_cutlass_variant(problem, context, {});
}

}  // namespace xpuruntime::cuda

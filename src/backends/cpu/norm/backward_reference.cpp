#include <cmath>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/reduce/parts.h"
#include "core/backward.h"

// The gradients of softmaxes and norms of rows, all in double.

namespace xpuruntime::cpu {
namespace {

/// Elements of one tensor of the call along some dims, from a position across them.
class Line {
 public:
  Line(const TensorSpec& along, const void* data, std::int64_t from)
      : load_(loader_of(along.dtype)), data_(data), from_(from), walk_(along.shape) {
    walk_.set_operand(0, along);
  }
  bool more() const { return walk_.more(); }
  void next() { walk_.next(); }
  std::int64_t offset() const { return from_ + walk_.offset(0); }
  double value() const { return load_(data_, offset()); }

 private:
  LoadElement load_;
  const void* data_;
  std::int64_t from_;
  Walk<1> walk_;
};

class SoftmaxBackwardPlan final : public Plan {
 public:
  explicit SoftmaxBackwardPlan(const Problem& problem)
      : log_(problem.op == OpId::log_softmax),
        along_(dim_bit(problem.attributes.integer("dim"), problem.inputs[0].shape.size())),
        x_(parts_of(problem.inputs[0], along_)),
        g_(parts_of(problem.inputs[1], along_)),
        out_(parts_of(problem.outputs[0], along_)) {}

  Status run(const RunArguments& arguments) const override {
    if (element_count(x_.along) == 0) return {};
    Walk<3> across(x_.across.shape, x_.across, g_.across, out_.across);
    for (; across.more(); across.next()) line(arguments, across);
    return {};
  }

 private:
  void line(const RunArguments& arguments, const Walk<3>& across) const {
    const auto x = [&] { return Line(x_.along, arguments.inputs[0]->as<const std::byte>(), across.offset(0)); };
    const auto g = [&] { return Line(g_.along, arguments.inputs[1]->as<const std::byte>(), across.offset(1)); };
    double highest = -std::numeric_limits<double>::infinity();
    for (Line line = x(); line.more(); line.next()) highest = std::fmax(highest, line.value());
    double sum = 0, weighted = 0, total = 0;
    Line gradient = g();
    for (Line line = x(); line.more(); line.next(), gradient.next()) {
      const double e = std::exp(line.value() - highest);
      sum += e;
      weighted += e * gradient.value();
      total += gradient.value();
    }
    gradient = g();
    Line to(out_.along, nullptr, across.offset(2));
    for (Line line = x(); line.more(); line.next(), gradient.next(), to.next()) {
      const double y = std::exp(line.value() - highest) / sum;
      const double value = log_ ? gradient.value() - y * total : y * (gradient.value() - weighted / sum);
      storer_of(out_.along.dtype)(arguments.outputs[0]->as<std::byte>(), to.offset(), value);
    }
  }

  bool log_;
  unsigned along_;
  Parts x_, g_, out_;
};

/// Norms of rows: the gradient of x row by row, then that of each parameter element by element.
class LayerNormBackwardPlan final : public Plan {
 public:
  explicit LayerNormBackwardPlan(const Problem& problem)
      : problem_(problem),
        centred_(problem.op == OpId::layer_norm),
        along_(last_dims(centred_ ? problem.attributes.integer("normalized_rank") : 1, problem.inputs[0].shape.size())),
        x_(parts_of(problem.inputs[0], along_)),
        g_(parts_of(problem.inputs.back(), along_)),
        out_(parts_of(problem.outputs[0], along_)),
        eps_(problem.attributes.real("eps")) {}

  Status run(const RunArguments& arguments) const override {
    auto* rows = static_cast<Row*>(arguments.workspace);
    if (element_count(x_.along) != 0) {
      Walk<3> across = rows_walk();
      for (std::int64_t i = 0; across.more(); ++i, across.next()) {
        rows[i] = row_of(arguments, across.offset(0));
        write_row(arguments, across, rows[i]);
      }
    }
    // Last: they may lie over the parameters themselves.
    for (std::size_t input = 1; input + 1 < problem_.inputs.size(); ++input) write_parameter(arguments, input, rows);
    return {};
  }

  static std::uint64_t workspace_bytes(const Problem& problem) {
    const LayerNormBackwardPlan plan(problem);
    return static_cast<std::uint64_t>(element_count(plan.x_.across)) * sizeof(Row);
  }

 private:
  struct Row {
    double mean = 0;
    double scale = 0;
  };

  Walk<3> rows_walk() const {
    Walk<3> across(x_.across.shape, x_.across, g_.across, out_.across);
    return across;
  }

  Row row_of(const RunArguments& arguments, std::int64_t from) const {
    const void* x = arguments.inputs[0]->as<const std::byte>();
    const auto count = static_cast<double>(element_count(x_.along));
    Row row;
    if (centred_) {
      for (Line line(x_.along, x, from); line.more(); line.next()) row.mean += line.value() / count;
    }
    double power = 0;
    for (Line line(x_.along, x, from); line.more(); line.next()) {
      power += (line.value() - row.mean) * (line.value() - row.mean);
    }
    row.scale = 1 / std::sqrt(power / count + eps_);
    return row;
  }

  /// The parameter at each position of a row; 1 where there is none.
  double weight(const RunArguments& arguments, const Walk<1>& walk) const {
    if (problem_.inputs.size() < 3) return 1;
    return loader_of(problem_.inputs[1].dtype)(arguments.inputs[1]->as<const std::byte>(), walk.offset(0));
  }

  void write_row(const RunArguments& arguments, const Walk<3>& across, const Row& row) const {
    const auto x = [&] { return Line(x_.along, arguments.inputs[0]->as<const std::byte>(), across.offset(0)); };
    const auto g = [&] { return Line(g_.along, arguments.inputs.back()->as<const std::byte>(), across.offset(1)); };
    const auto count = static_cast<double>(element_count(x_.along));
    double plain = 0, along_x = 0;
    const auto visit = [&](const auto& use) {
      Walk<1> parameter(x_.along.shape);
      if (problem_.inputs.size() > 2) parameter.set_operand(0, problem_.inputs[1]);
      Line gradient = g(), to(out_.along, nullptr, across.offset(2));
      for (Line line = x(); line.more(); line.next(), gradient.next(), to.next(), parameter.next()) {
        use((line.value() - row.mean) * row.scale, gradient.value() * weight(arguments, parameter), to.offset());
      }
    };
    visit([&](double normal, double gw, std::int64_t) {
      plain += gw / count;
      along_x += gw * normal / count;
    });
    visit([&](double normal, double gw, std::int64_t to) {
      const double value = row.scale * (gw - (centred_ ? plain : 0) - normal * along_x);
      storer_of(out_.along.dtype)(arguments.outputs[0]->as<std::byte>(), to, value);
    });
  }

  void write_parameter(const RunArguments& arguments, std::size_t input, const Row* rows) const {
    const auto output = gradient_of(problem_, input);
    if (!output) return;
    const TensorSpec& to = problem_.outputs[*output];
    const LoadElement load_x = loader_of(x_.along.dtype), load_g = loader_of(g_.along.dtype);
    Walk<3> walk(x_.along.shape, x_.along, g_.along, to);
    for (; walk.more(); walk.next()) {
      double sum = 0;
      Walk<3> across = rows_walk();
      for (std::int64_t i = 0; across.more(); ++i, across.next()) {
        const double g = load_g(arguments.inputs.back()->as<const std::byte>(), across.offset(1) + walk.offset(1));
        const double x = load_x(arguments.inputs[0]->as<const std::byte>(), across.offset(0) + walk.offset(0));
        sum += input == 1 ? g * (x - rows[i].mean) * rows[i].scale : g;
      }
      storer_of(to.dtype)(arguments.outputs[*output]->as<std::byte>(), walk.offset(2), sum);
    }
  }

  Problem problem_;
  bool centred_;
  unsigned along_;
  Parts x_, g_, out_;
  double eps_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_softmax_backward_reference(const Problem& problem) {
  return std::make_unique<SoftmaxBackwardPlan>(problem);
}

std::unique_ptr<const Plan> prepare_layer_norm_backward_reference(const Problem& problem) {
  return std::make_unique<LayerNormBackwardPlan>(problem);
}

std::uint64_t workspace_layer_norm_reference(const Problem& problem, const DeviceProfile&) {
  if (problem.direction == Direction::forward) return 0;
  return LayerNormBackwardPlan::workspace_bytes(problem);
}

}  // namespace xpuruntime::cpu

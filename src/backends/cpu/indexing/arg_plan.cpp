#include <algorithm>
#include <cmath>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/indexing/lines.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// The extreme of a line in separate lanes, which the compiler makes vectors of; NaN is left to the caller.
template <class Before>
float extreme_of(const float* line, std::int64_t count, const Before& before, bool* has_nan) {
  constexpr std::int64_t lanes = 32;
  float best[lanes];
  std::fill_n(best, lanes, line[0]);
  bool nan = std::isnan(line[0]);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      const float value = line[i + l];
      nan |= value != value;
      best[l] = before(value, best[l]) ? value : best[l];
    }
  }
  for (; i < count; ++i) {
    nan |= line[i] != line[i];
    best[0] = before(line[i], best[0]) ? line[i] : best[0];
  }
  *has_nan = nan;
  for (std::int64_t l = 1; l < lanes; ++l) best[0] = before(best[l], best[0]) ? best[l] : best[0];
  return best[0];
}

template <class Before>
std::int64_t place_in_line(const float* line, std::int64_t count, bool last, const Before& before) {
  bool has_nan = false;
  const float extreme = extreme_of(line, count, before, &has_nan);
  const auto fits = [&](float value) { return has_nan ? value != value : value == extreme; };
  if (last) {
    for (std::int64_t i = count; i-- > 0;) {
      if (fits(line[i])) return i;
    }
  }
  return std::find_if(line, line + count, fits) - line;
}

/// A few lines that lie side by side, `inner` elements from one of theirs to the next.
template <class Before>
void places_across(const float* in, std::int64_t length, std::int64_t inner, std::int64_t lines, bool last,
                   const Before& before, std::int64_t* out) {
  constexpr std::int64_t most = 64;
  float best[most];
  std::copy_n(in, lines, best);
  std::fill_n(out, lines, std::int64_t{0});
  for (std::int64_t i = 1; i < length; ++i) {
    for (std::int64_t l = 0; l < lines; ++l) {
      const float value = in[i * inner + l], held = best[l];
      const bool nan = value != value, held_nan = held != held;
      const bool wins = (nan && (last || !held_nan)) || (!held_nan && (before(value, held) || (last && value == held)));
      best[l] = wins ? value : held;
      out[l] = wins ? i : out[l];
    }
  }
}

class ArgPlan final : public Plan {
 public:
  explicit ArgPlan(const Problem& problem)
      : largest_(problem.op == OpId::arg_max),
        last_(problem.attributes.boolean("select_last_index")),
        threads_(threads_for(problem)) {
    const LinesOf lines(problem.inputs[0], problem.attributes.integer("dim"));
    length_ = lines.length;
    inner_ = std::max<std::int64_t>(lines.stride, 1);
    lines_ = element_count(problem.outputs[0]);
  }

  Status run(const RunArguments& arguments) const override {
    const auto* in = arguments.inputs[0]->as<const float>();
    auto* out = arguments.outputs[0]->as<std::int64_t>();
    if (largest_) {
      find(in, out, [](float a, float b) { return a > b; });
    } else {
      find(in, out, [](float a, float b) { return a < b; });
    }
    return {};
  }

 private:
  static constexpr std::int64_t grain = 16384, side_by_side = 64;

  template <class Before>
  void find(const float* in, std::int64_t* out, const Before& before) const {
    parallel_for(lines_, grain / length_ + 1, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t line = begin; line < end;) {
        if (inner_ == 1) {
          out[line] = place_in_line(in + line * length_, length_, last_, before);
          ++line;
          continue;
        }
        const std::int64_t column = line % inner_;
        const std::int64_t count = std::min({inner_ - column, end - line, side_by_side});
        places_across(in + line / inner_ * inner_ * length_ + column, length_, inner_, count, last_, before,
                      out + line);
        line += count;
      }
    });
  }

  bool largest_;
  bool last_;
  int threads_;
  std::int64_t length_ = 1;
  std::int64_t inner_ = 1;  // lines that lie side by side
  std::int64_t lines_ = 1;
};

}  // namespace

Verdict supports_arg_rows(const Problem& problem, const DeviceProfile&) {
  if (const DataType to = problem.outputs[0].dtype; to != DataType::int64) {
    return Verdict::no("output 0 is " + std::string(to_string(to)) + ", and this kernel takes i64");
  }
  return is_contiguous(problem);
}

std::unique_ptr<const Plan> prepare_arg_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ArgPlan>(problem);
}

}  // namespace xpuruntime::cpu

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

using Triple = std::array<std::int64_t, 3>;

/// Windows in three dims; two-dimensional ones have a depth of 1.
struct Windows {
  std::int64_t batch = 1;
  Triple in, out, kernel, stride, padding = {}, dilation;

  Windows(const Problem& problem, bool dilated) {
    const Dims& x = problem.inputs[0].shape;
    const Dims& y = problem.outputs[0].shape;
    const std::size_t flat = 5 - x.size();  // dims that are missing
    batch = x[0];
    in = out = kernel = stride = dilation = {1, 1, 1};
    for (std::size_t i = flat; i < 3; ++i) {
      in[i] = x[i + 2 - flat];
      out[i] = y[i + 2 - flat];
      stride[i] = problem.attributes.list("stride")[i - flat];
      padding[i] = problem.attributes.list("padding")[i - flat];
      if (dilated) dilation[i] = problem.attributes.list("dilation")[i - flat];
    }
  }
  void set_kernel(std::span<const std::int64_t> sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t dim = 3 - sizes.size() + i;
      kernel[dim] = sizes[i];
      if (stride[dim] == 0) stride[dim] = sizes[i];
    }
  }
  /// Calls `use(offset in the image, offset in the kernel)` for each element of a window that lies inside the image.
  template <class Use>
  void each(const Triple& at, Use use) const {
    Triple p;
    for (std::int64_t d = 0; d < kernel[0]; ++d) {
      p[0] = at[0] * stride[0] - padding[0] + d * dilation[0];
      for (std::int64_t h = 0; h < kernel[1]; ++h) {
        p[1] = at[1] * stride[1] - padding[1] + h * dilation[1];
        for (std::int64_t w = 0; w < kernel[2]; ++w) {
          p[2] = at[2] * stride[2] - padding[2] + w * dilation[2];
          if (!inside(p)) continue;
          use((p[0] * in[1] + p[1]) * in[2] + p[2], (d * kernel[1] + h) * kernel[2] + w);
        }
      }
    }
  }
  template <class Use>
  void each_output(Use use) const {
    for_each_position({out[0], out[1], out[2]}, [&](const Position& p) { use(Triple{p[0], p[1], p[2]}); });
  }
  std::int64_t image() const { return in[0] * in[1] * in[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }

 private:
  bool inside(const Triple& p) const {
    return p[0] >= 0 && p[0] < in[0] && p[1] >= 0 && p[1] < in[1] && p[2] >= 0 && p[2] < in[2];
  }
};

/// Elements of a window as average pooling counts them: with the padding, but never beyond it.
double padded_count(const Windows& w, const Triple& at) {
  double count = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t begin = at[i] * w.stride[i] - w.padding[i];
    count *= static_cast<double>(std::min(begin + w.kernel[i], w.in[i] + w.padding[i]) - begin);
  }
  return count;
}

struct Channels {
  std::int64_t in, out, group_in, group_out;
};

Approximate conv_at(const Windows& w, const Channels& c, const std::vector<Values>& inputs, std::int64_t n,
                    std::int64_t channel, const Triple& at) {
  const std::int64_t first = channel / c.group_out * c.group_in;
  double sum = 0, size = 0;
  for (std::int64_t i = 0; i < c.group_in; ++i) {
    const std::int64_t image = (n * c.in + first + i) * w.image();
    const std::int64_t taps = (channel * c.group_in + i) * w.taps();
    w.each(at, [&](std::int64_t x, std::int64_t k) {
      const double term =
          inputs[0][static_cast<std::size_t>(image + x)] * inputs[1][static_cast<std::size_t>(taps + k)];
      sum += term;
      size += std::fabs(term);
    });
  }
  double units = sum_units(static_cast<double>(c.group_in * w.taps())) + 1;
  if (inputs.size() == 3) {
    const double bias = inputs[2][static_cast<std::size_t>(channel)];
    sum += bias;
    size += std::fabs(bias);
    ++units;
  }
  return {sum, units * size};
}

double largest(const Windows& w, const Values& x, std::int64_t image, const Triple& at) {
  double best = -std::numeric_limits<double>::infinity();
  w.each(at, [&](std::int64_t i, std::int64_t) {
    const double value = x[static_cast<std::size_t>(image + i)];
    if (is_above(value, best) || std::isnan(value)) best = value;  // once NaN, nothing is greater
  });
  return best;
}

Approximate average(const Windows& w, const Values& x, std::int64_t image, const Triple& at, bool with_padding) {
  double sum = 0, size = 0, count = 0;
  w.each(at, [&](std::int64_t i, std::int64_t) {
    const double value = x[static_cast<std::size_t>(image + i)];
    sum += value;
    size += std::fabs(value);
    ++count;
  });
  const double divisor = with_padding ? padded_count(w, at) : count;
  return {sum / divisor, (sum_units(count) + 2) * size / divisor};
}

std::vector<Answer> solve_conv(const Problem& problem, const std::vector<Values>& inputs) {
  Windows w(problem, true);
  const Dims& weight = problem.inputs[1].shape;
  w.set_kernel(std::span(weight.begin() + 2, weight.end()));
  const std::int64_t groups = problem.attributes.integer("groups");
  const Channels c = {problem.inputs[0].shape[1], weight[0], weight[1], weight[0] / groups};
  Answer out;
  for (std::int64_t n = 0; n < w.batch; ++n) {
    for (std::int64_t channel = 0; channel < c.out; ++channel) {
      w.each_output([&](const Triple& at) {
        const Approximate result = conv_at(w, c, inputs, n, channel, at);
        out.add(result.value, result.slack);
      });
    }
  }
  return {out};
}

std::vector<Answer> solve_pool(const Problem& problem, const std::vector<Values>& inputs) {
  const bool max = problem.op == OpId::max_pool2d || problem.op == OpId::max_pool3d;
  Windows w(problem, max);
  w.set_kernel(problem.attributes.list("kernel_size"));
  const bool with_padding = !max && problem.attributes.boolean("count_include_pad");
  Answer out;
  for (std::int64_t plane = 0; plane < w.batch * problem.inputs[0].shape[1]; ++plane) {
    w.each_output([&](const Triple& at) {
      const Approximate result = max ? Approximate{largest(w, inputs[0], plane * w.image(), at), 0}
                                     : average(w, inputs[0], plane * w.image(), at, with_padding);
      out.add(result.value, result.slack);
    });
  }
  return {out};
}

}  // namespace

std::span<const Reference> window_references() {
  static constexpr Reference rows[] = {
      {{OpId::conv2d, OpId::conv3d}, solve_conv, gradients_of_conv},
      {{OpId::max_pool2d, OpId::max_pool3d, OpId::avg_pool2d, OpId::avg_pool3d}, solve_pool},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

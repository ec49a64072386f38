#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cases.h"
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

namespace xpuruntime::cases {
namespace {

void add_conv2d(List& list) {
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "conv2d(T[1,1,1,1], T[1,1,1,1])",
          "conv2d(T[1,3,8,8], T[16,3,3,3]; padding=1)",
          "conv2d(T[2,3,9,7], T[16,3,3,3], T[16]; padding=1 stride=2)",
          "conv2d(T[1,16,12,12], T[17,16,3,3], T[17]; padding=1)",
          "conv2d(T[1,16,13,11], T[16,16,3,3]; padding=1)",
          "conv2d(T[2,17,7,7], T[16,17,3,3], T[16])",
          "conv2d(T[1,64,14,14], T[64,64,3,3]; padding=1)",
          "conv2d(T[1,16,6,6], T[8,16,3,3]; padding=2)",
          "conv2d(T[3,5,4,4], T[7,5,3,3], T[7]; padding=1)",  // fewer rows than a tile
          "conv2d(T[1,4,5,5], T[4,4,3,3]; padding=0,1)",
          "conv2d(T[1,4,9,10], T[4,4,3,3]; stride=1,2 padding=1)",
          "conv2d(T[1,8,10,10], T[8,8,3,3]; dilation=2 padding=2)",
          "conv2d(T[1,8,11,10], T[8,8,3,3]; dilation=3,2)",
          "conv2d(T[1,16,14,14], T[32,16,1,1])",
          "conv2d(T[2,17,7,9], T[33,17,1,1], T[33])",
          "conv2d(T[1,63,7,7], T[65,63,1,1])",
          "conv2d(T[1,63,20,20], T[31,63,1,1])",  // of bf16, products that oneDNN 2.6 breaks down on
          "conv2d(T[1,63,44,28], T[8,63,1,1])",
          "conv2d(T[1,126,20,20], T[62,63,1,1]; groups=2)",
          "conv2d(T[1,63,12,12], T[31,63,3,3]; padding=1)",
          "conv2d(T[1,64,7,7], T[64,64,1,1]; stride=2)",
          "conv2d(T[1,8,5,5], T[8,8,1,1]; padding=1)",
          "conv2d(T[1,3,17,17], T[16,3,7,7], T[16]; stride=2 padding=3)",
          "conv2d(T[2,3,30,31], T[8,3,7,7]; stride=2 padding=3)",
          "conv2d(T[1,16,9,9], T[8,16,5,5]; padding=2)",
          "conv2d(T[1,4,9,12], T[5,4,1,5], T[5]; padding=0,2)",  // asymmetric
          "conv2d(T[1,4,12,9], T[5,4,5,2]; stride=3,1)",
          "conv2d(T[1,3,5,5], T[4,3,5,5])",  // one position
          "conv2d(T[1,6,8,8], T[4,3,3,3], T[4]; groups=2 padding=1)",
          "conv2d(T[2,16,7,7], T[32,4,3,3]; groups=4 padding=1)",
          "conv2d(T[1,16,7,7], T[16,4,1,1]; groups=4)",
          "conv2d(T[1,16,9,9], T[16,1,3,3], T[16]; groups=16 padding=1)",  // depthwise
          "conv2d(T[2,17,8,10], T[17,1,3,3]; groups=17 padding=1 stride=2)",
          "conv2d(T[1,33,15,15], T[33,1,5,5], T[33]; groups=33 padding=2)",
          "conv2d(T[1,8,12,12], T[8,1,3,3]; groups=8 dilation=2 padding=2)",
          "conv2d(T[1,8,20,3], T[8,1,7,7]; groups=8 padding=3)",
          "conv2d(T[1,5,8,8], T[10,1,3,3], T[10]; groups=5 padding=1)",  // two outputs for each channel
          "conv2d(T[0,3,8,8], T[4,3,3,3]; padding=1)",
          "conv2d(T[1,3,8,8], T[0,3,3,3])",
          "conv2d(T[1,0,8,8], T[4,0,3,3], T[4])",                                // only the bias
          "conv2d(T[1,16,8,8]{1024,1,128,16}, T[16,16,3,3], T[16]; padding=1)",  // channels last
          "conv2d(T[1,16,8,8]{1024,1,128,16}, T[16,16,3,3]{144,1,48,16}; padding=1) -> T[1,16,8,8]{1024,1,128,16}",
          "conv2d(T[1,16,8,8]{1024,1,128,16}, T[16,16,3,3]{144,1,48,16}; padding=1) -> T[1,16,8,8]",
          "conv2d(T[1,16,8,8]{1024,1,128,16}, T[16,1,3,3]; groups=16 padding=1) -> T[1,16,8,8]{1024,1,128,16}",
          "conv2d(T[2,24,29,7], T[64,24,5,5], T[64]; padding=4,4 dilation=2,2)",  // wider than the image
          "conv2d(T[1,16,12,11], T[64,16,7,7]; padding=6,6 dilation=2,2)",
          "conv2d(T[1,16,8,8]{1024,1,128,16}, T[24,16,3,3], T[24]; stride=2 padding=1) -> T[1,24,4,4]{384,1,96,24}",
          "conv2d(T[2,8,6,6], T[16,8,1,1]) -> T[2,16,6,6]{576,1,96,16}",
          "conv2d(T[1,4,8,8]{512,128,16,2}, T[4,4,3,3]; padding=1)",  // every other column
          "conv2d(T[1,4,8,8], T[4,4,3,3]{9,36,3,1}; padding=1)",      // weights [in, out]
          "conv2d(T[1,4,8,8], T[4,4,3,3]; padding=1) -> T[1,4,8,8]{512,128,16,2}",
      });
  list.each({"f32", "f16", "bf16"}, {
                                        "conv2d(T[1,32,30,30], T[40,32,3,3], T[40]; padding=1)",
                                        "conv2d(T[4,16,18,19], T[24,16,3,3]; padding=1)",
                                        "conv2d(T[2,64,28,28], T[96,64,1,1], T[96])",
                                        "conv2d(T[1,96,56,56], T[96,1,3,3], T[96]; groups=96 padding=1)",
                                        "conv2d(T[1,3,80,80], T[16,3,7,7]; stride=2 padding=3)",
                                    });
  for (const char* text :
       {"conv2d(f32[1,5,9,9]/4, f32[6,5,3,3]/4, f32[6]/4; padding=1) -> f32[1,6,9,9]/4",
        "conv2d(bf16[1,5,9,9]/2, bf16[6,5,3,3]/2; padding=1)",
        "conv2d(f32[1,5,9,9], f32[6,5,3,3]; padding=1) -> f64[1,6,9,9]",
        "conv2d(f32[1,5,9,9], f32[6,5,3,3]; padding=1) -> bf16[1,6,9,9]",
        "conv2d(bf16[1,16,9,9], bf16[8,16,3,3], f32[8]; padding=1)",
        "conv2d(bf16[1,16,9,9], bf16[8,16,3,3]) -> f32[1,8,7,7]", "conv2d(i8[1,5,7,7], i8[6,5,3,3]; padding=1)",
        "conv2d(u8[1,16,7,7], i8[16,16,3,3])", "conv2d(u8[2,32,9,11], i8[40,32,1,1], i32[40])",
        "conv2d(i8[1,6,12,13], u8[8,3,3,5], i32[8]; groups=2 stride=2,1)",
        "conv2d(u8[1,3,40,41], u8[20,3,7,7], i32[20]; stride=2 padding=3)",
        "conv2d(i8[1,4,9,9], i8[4,1,3,3]; groups=4 padding=2 dilation=2)",
        "conv2d(u8[1,2,5,5], i8[3,2,5,5]; padding=4)", "conv2d(u8[1,96,30,30], i8[70,96,3,3], i32[70]; padding=1)",
        "conv3d(u8[1,3,5,6,7], i8[4,3,3,3,3], i32[4]; padding=1)",
        "conv3d(i8[2,2,4,4,9], i8[6,2,2,3,1]; stride=1,2,3 padding=1,0,2)",
        "conv2d(i32[1,2,5,5], i32[3,2,3,3], i32[3])", "conv2d(i16[1,2,5,5], i16[3,2,3,3])",
        "conv2d(i64[1,2,5,5], i64[3,2,3,3])"}) {
    list.add(text);
  }
}

void add_conv3d(List& list) {
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "conv3d(T[1,1,1,1,1], T[1,1,1,1,1])",
                "conv3d(T[1,3,5,6,7], T[4,3,3,3,3], T[4]; padding=1)",
                "conv3d(T[2,4,6,5,5], T[8,4,3,3,3]; stride=2 padding=1)",
                "conv3d(T[1,4,7,7,7], T[4,4,3,3,3]; dilation=2)",
                "conv3d(T[1,16,4,4,4], T[16,16,1,1,1], T[16])",
                "conv3d(T[1,3,4,8,8], T[4,3,1,3,5]; padding=0,1,2 stride=1,2,1)",
                "conv3d(T[1,6,4,5,6], T[4,3,2,3,2]; groups=2)",
                "conv3d(T[1,8,4,5,6], T[8,1,3,3,3], T[8]; groups=8 padding=1)",
                "conv3d(T[0,2,3,3,3], T[2,2,3,3,3])",
                "conv3d(T[1,4,3,4,5]{240,1,80,20,4}, T[4,4,3,3,3]; padding=1)",
                "conv3d(T[1,2,4,4,4], T[3,2,3,3,3]; padding=1) -> T[1,3,4,4,4]{192,1,48,12,3}",
            });
  list.each({"f32", "bf16"}, {"conv3d(T[1,8,9,14,15], T[12,8,3,3,3], T[12]; padding=1)"});
  list.add("conv3d(f32[1,3,5,6,7]/4, f32[4,3,3,3,3]/4; padding=1) -> f32[1,4,5,6,7]/4");
  list.each({"i8", "u8", "i16", "i32", "i64"}, {"conv3d(T[1,2,3,4,5], T[3,2,2,2,2])"});
}

/// Input, weight and output with dense channels last.
void add_channels_last(List& list) {
  list.each(
      {"f32", "f16", "bf16"},
      {
          "conv2d(T[1,3,8,8]{192,1,24,3}, T[4,3,3,3]{27,1,9,3}, T[4]; stride=1,1 padding=1,1)"
          " -> T[1,4,8,8]{256,1,32,4}",
          "conv2d(T[2,17,9,7]{1071,1,119,17}, T[33,17,3,3]{153,1,51,17}, T[33]; stride=2,2 padding=1,1)"
          " -> T[2,33,5,4]{660,1,132,33}",
          "conv2d(T[1,64,20,13]{16640,1,832,64}, T[48,64,1,1], T[48]; stride=1,1 padding=0,0)"
          " -> T[1,48,20,13]{12480,1,624,48}",
          "conv2d(T[3,16,5,6]{480,1,96,16}, T[8,16,1,1]; stride=2,2 padding=0,0)"
          " -> T[3,8,3,3]{72,1,24,8}",
          "conv2d(T[1,8,12,31]{2976,1,248,8}, T[24,8,5,3]{120,1,24,8}, T[24]; stride=1,2 padding=2,1)"
          " -> T[1,24,12,16]{4608,1,384,24}",
          "conv2d(T[1,12,10,10]{1200,1,120,12}, T[8,12,3,3]{108,1,36,12}, T[8]; stride=1,1 padding=2,2 dilation=2,2)"
          " -> T[1,8,10,10]{800,1,80,8}",
          "conv2d(T[2,32,28,28]{25088,1,896,32}, T[64,32,3,3]{288,1,96,32}, T[64]; stride=1,1 padding=1,1)"
          " -> T[2,64,28,28]{50176,1,1792,64}",
          "conv2d(T[2,8,9,9]{648,1,72,8}, T[8,1,3,3], T[8]; stride=1,1 padding=1,1 groups=8)"
          " -> T[2,8,9,9]{648,1,72,8}",
          "conv2d(T[1,12,9,9]{972,1,108,12}, T[8,3,3,3]{27,1,9,3}, T[8]; stride=1,1 padding=1,1 groups=4)"
          " -> T[1,8,9,9]{648,1,72,8}",
          "conv3d(T[1,5,4,6,7]{840,1,210,35,5}, T[6,5,3,3,3]{135,1,45,15,5}, T[6]; stride=1,1,1 padding=1,1,1)"
          " -> T[1,6,4,6,7]{1008,1,252,42,6}",
          "conv3d(T[2,16,3,5,5]{1200,1,400,80,16}, T[9,16,1,1,1], T[9]; stride=1,1,1 padding=0,0,0)"
          " -> T[2,9,3,5,5]{675,1,225,45,9}",
          "conv3d(T[1,8,5,8,8]{2560,1,512,64,8}, T[16,8,2,3,3]{144,1,72,24,8}, T[16]; stride=1,2,2 padding=0,1,1)"
          " -> T[1,16,4,4,4]{1024,1,256,64,16}",
      });
}

}  // namespace

std::vector<CaseText> conv_cases() {
  List list;
  add_conv2d(list);
  add_conv3d(list);
  add_channels_last(list);
  return list.take();
}

std::vector<CaseText> pool_cases() {
  List list;
  const auto special = oracle::Fill::special;
  list.each_op({"max_pool2d", "avg_pool2d"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[1,1,1,1]; kernel_size=1)",
                   "OP(T[1,3,8,8]; kernel_size=2)",
                   "OP(T[2,3,9,7]; kernel_size=3 stride=2 padding=1)",
                   "OP(T[1,5,7,33]; kernel_size=3 stride=1 padding=1)",
                   "OP(T[1,3,5,1]; kernel_size=3 stride=1 padding=1)",
                   "OP(T[1,3,1,18]; kernel_size=3 stride=1 padding=1)",
                   "OP(T[2,3,3,16]; kernel_size=3 stride=1)",
                   "OP(T[1,2,6,50]; kernel_size=3 stride=1 padding=0,1)",
                   "OP(T[1,2,2,35]; kernel_size=3 stride=1 padding=1,0)",
                   "OP(T[1,5,10,17]; kernel_size=2,3 stride=1,2)",
                   "OP(T[2,2,11,11]; kernel_size=3 stride=2 ceil_mode=true)",
                   "OP(T[1,2,7,8]; kernel_size=3,2 stride=3 padding=1 ceil_mode=true)",
                   "OP(T[1,4,7,7]; kernel_size=7)",
                   "OP(T[1,3,13,31]; kernel_size=5 stride=1 padding=2)",
                   "OP(T[0,3,8,8]; kernel_size=2)",
                   "OP(T[1,0,8,8]; kernel_size=2)",
                   "OP(T[1,17,8,8]{1088,1,136,17}; kernel_size=3 stride=2 padding=1) -> T[1,17,4,4]",
                   "OP(T[2,5,9,7]{1071,1,119,17}; kernel_size=3 stride=2 padding=1) -> T[2,5,5,4]{440,1,88,22}",
                   "OP(T[1,8,8,8]{512,1,64,8}; kernel_size=2) -> T[1,8,4,4]{128,1,32,8}",
                   "OP(T[1,3,8,8]{384,128,16,2}; kernel_size=2)",
                   "OP(T[1,3,8,8]; kernel_size=2) -> T[1,3,4,4]{96,32,8,2}",
                   "OP(T[2,16,65,63]; kernel_size=3 stride=2 padding=1)",
                   "OP(T[2,17,9,7]{1071,1,119,17}; kernel_size=3 stride=2 padding=1) -> T[2,17,5,4]{340,1,68,17}",
                   "OP(T[1,64,12,12]{9216,1,768,64}; kernel_size=3 stride=1 padding=1) -> T[1,64,12,12]{9216,1,768,64}",
                   "OP(T[2,3,11,11]{363,1,33,3}; kernel_size=3 stride=2 ceil_mode=true) -> T[2,3,5,5]{75,1,15,3}",
                   "OP(T[2,40,7,7]{1960,1,280,40}; kernel_size=7)",
                   "OP(T[2,70,17,18]{21420,1,1260,70}; kernel_size=17)",
                   "OP(T[1,7,40,33]{9240,1,231,7}; kernel_size=20,21 stride=9,8 padding=10,3 ceil_mode=true)",
               });
  list.each_op({"max_pool3d", "avg_pool3d"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[1,1,1,1,1]; kernel_size=1)",
                   "OP(T[1,3,4,6,8]; kernel_size=2)",
                   "OP(T[2,19,4,6,8]{3648,1,912,152,19}; kernel_size=2) -> T[2,19,2,3,4]{456,1,228,76,19}",
                   "OP(T[2,2,5,7,9]; kernel_size=3 stride=2 padding=1)",
                   "OP(T[1,3,5,6,7]; kernel_size=2,3,2 stride=1,2,3 padding=1,1,0 ceil_mode=true)",
                   "OP(T[0,3,4,4,4]; kernel_size=2)",
                   "OP(T[1,3,4,4,4]{192,1,48,12,3}; kernel_size=2)",
                   "OP(T[1,3,4,4,4]; kernel_size=2) -> T[1,3,2,2,2]{48,16,8,4,2}",
               });
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "max_pool2d(T[1,3,12,13]; kernel_size=3 dilation=2 padding=1)",
                "max_pool2d(T[1,3,12,13]; kernel_size=2,3 dilation=3,2 stride=2 ceil_mode=true)",
                "max_pool3d(T[1,2,7,8,9]; kernel_size=2 dilation=2 stride=1)",
                "max_pool2d(T[1,2,3,4]; kernel_size=1 stride=1 dilation=9223372036854775807)",
                "avg_pool2d(T[1,3,9,9]; kernel_size=3 stride=2 padding=1 count_include_pad=false)",
                "avg_pool2d(T[1,3,9,21]; kernel_size=3 stride=1 padding=1 count_include_pad=false)",
                "avg_pool2d(T[1,3,10,10]; kernel_size=3 stride=2 padding=1 ceil_mode=true count_include_pad=false)",
                "avg_pool2d(T[1,3,10,10]; kernel_size=3 stride=2 padding=1 ceil_mode=true)",
                "avg_pool3d(T[1,2,5,6,7]; kernel_size=3 stride=2 padding=1 ceil_mode=true count_include_pad=false)",
            });
  list.each({"f32", "f16", "bf16"},
            {"max_pool2d(T[1,3,17,19]; kernel_size=3 stride=2 padding=1)",
             "max_pool2d(T[2,3,9,19]; kernel_size=3 stride=1 padding=1)",
             "max_pool2d(T[1,16,9,9]{1296,1,144,16}; kernel_size=2)", "max_pool3d(T[1,2,5,5,5]; kernel_size=2)"},
            special);
  list.each_op({"max_pool2d", "avg_pool2d"}, {"f32", "bf16"},
               {"OP(T[2,32,80,80]; kernel_size=3 stride=2 padding=1)", "OP(T[8,64,28,28]; kernel_size=2)"});
  list.each_op({"max_pool2d", "avg_pool2d"}, {"f32"},
               {"OP(T[1,3,9,9]/4; kernel_size=2) -> T[1,3,4,4]/4", "OP(T[1,3,9,9]; kernel_size=2) -> bf16[1,3,4,4]"});
  list.each({"i8", "u8", "i32", "i64", "i16"},
            {"max_pool2d(T[1,3,9,9]; kernel_size=3 stride=2 padding=1)", "max_pool3d(T[1,2,4,5,6]; kernel_size=2)"});
  return list.take();
}

Checks conv_checks() {
  return {
      .small =
          {
              "conv2d(T[1,8,9,9], T[8,8,3,3], T[8]; padding=1,1)",
              "conv2d(T[1,4,9,9], T[4,1,3,3]; padding=1,1 groups=4)",
              "conv2d(T[2,8,4,4], T[16,8,1,1])",
              "conv3d(T[1,2,4,4,4], T[3,2,2,2,2])",
              "avg_pool2d(T[1,3,8,8]; kernel_size=3,3 stride=2,2 padding=1,1)",
              "max_pool2d(T[1,3,8,8]; kernel_size=3,3 stride=2,2 padding=1,1)",
              "conv2d:backward(T[1,4,6,6], T[5,4,3,3], T[5], T[1,5,6,6]; padding=1,1)",
          },
      .gradients =
          {
              "conv2d:backward(f64[2,4,5,6], f64[6,2,3,2], f64[6], f64[2,6,3,3]; groups=2 stride=2 padding=1,0 "
              "dilation=1,1)",
              "conv2d:backward(f64[1,3,6,6], f64[3,1,3,3], f64[1,3,4,4]; groups=3 padding=1 dilation=2 stride=1)",
              "conv3d:backward(f64[1,2,3,4,4], f64[3,2,2,2,2], f64[3], f64[1,3,2,3,3])",
          },
      .mistakes =
          {
              {"conv2d(bf16[1,3,8,8], bf16[4,3,3,3]; padding=1)",
               "conv2d(bf16[1,3,8,8], bf16[4,3,3,3]; padding=2 dilation=2)"},
              {"max_pool2d(f32[1,2,8,8]; kernel_size=3 stride=2 padding=1)", "max_pool2d(f32[1,2,8,8]; kernel_size=2)"},
              {"avg_pool2d(bf16[1,2,8,8]; kernel_size=3 stride=2 padding=1)",
               "avg_pool2d(bf16[1,2,8,8]; kernel_size=2)"},
              {"avg_pool2d(bf16[1,2,8,8]; kernel_size=3 padding=1)",
               "avg_pool2d(bf16[1,2,8,8]; kernel_size=3 padding=1 count_include_pad=false)"},
          },
      .gradient_mistakes =
          {
              {"conv2d:backward(bf16[1,3,8,8], bf16[4,3,3,3], bf16[1,4,8,8]; padding=1)",
               "conv2d:backward(bf16[1,3,8,8], bf16[4,3,3,3], bf16[1,4,8,8]; padding=2 dilation=2)"},
          },
  };
}

}  // namespace xpuruntime::cases

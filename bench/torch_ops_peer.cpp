// PyTorch's ops on the CPU, called as a user in C++ calls them: into an output that is there where PyTorch has such a
// function, else plainly. A module of its own, opened at run time, so that nothing of ours links PyTorch.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cpu_peers.h"

namespace xpuruntime::bench {
namespace {

using At = at::Tensor;
using Tensors = std::vector<At>;
using Function = std::function<void(At& out)>;

std::optional<at::ScalarType> torch_dtype(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return at::kDouble;
    case DataType::float32:
      return at::kFloat;
    case DataType::float16:
      return at::kHalf;
    case DataType::bfloat16:
      return at::kBFloat16;
    case DataType::int64:
      return at::kLong;
    case DataType::int32:
      return at::kInt;
    case DataType::int8:
      return at::kChar;
    case DataType::uint8:
      return at::kByte;
    case DataType::boolean:
      return at::kBool;
    default:
      return std::nullopt;
  }
}

at::IntArrayRef extents(const Dims& dims) { return {dims.data(), dims.size()}; }

std::optional<At> at_or_none(const Tensors& in, std::size_t i) {
  return i < in.size() ? std::optional<At>(in[i]) : std::nullopt;
}

At turned(const At& tensor, bool transposed) { return transposed ? tensor.transpose(-1, -2) : tensor; }

Function product(const Problem& p, const Tensors& in) {
  const At a = turned(in[0], p.attributes.boolean("transpose_a"));
  const At b = turned(in[1], p.attributes.boolean("transpose_b"));
  if (a.scalar_type() == at::kChar) return [a, b](At& out) { at::_int_mm_out(out, a, b); };
  return [a, b](At& out) { at::matmul_out(out, a, b); };
}

Function linear(const Problem& p, const Tensors& in) {
  if (in[0].scalar_type() == at::kChar) {
    return [a = in[0], b = in[1].t()](At& out) { at::_int_mm_out(out, a, b); };
  }
  return [in, activation = p.attributes.choice("activation")](At& out) {
    out = at::linear(in[0], in[1], at_or_none(in, 2));
    if (activation == "relu") at::relu_(out);
    if (activation == "gelu") at::gelu_(out);
    if (activation == "silu") at::silu_(out);
  };
}

Function convolution(const Problem& p, const Tensors& in) {
  const auto stride = p.attributes.list("stride"), padding = p.attributes.list("padding"),
             dilation = p.attributes.list("dilation");
  const auto groups = p.attributes.integer("groups");
  if (p.op == OpId::conv3d) {
    return [=](At& out) { out = at::conv3d(in[0], in[1], at_or_none(in, 2), stride, padding, dilation, groups); };
  }
  return [=](At& out) { out = at::conv2d(in[0], in[1], at_or_none(in, 2), stride, padding, dilation, groups); };
}

Function attention(const Problem& p, const Tensors& in) {
  const double scale = p.attributes.real("scale");
  const std::optional<double> given = scale == 0 ? std::nullopt : std::optional(scale);
  const bool grouped = in[0].size(1) != in[1].size(1);
  return [=, causal = p.attributes.boolean("causal")](At& out) {
    out = at::scaled_dot_product_attention(in[0], in[1], in[2], at_or_none(in, 3), 0.0, causal, given, grouped);
  };
}

Function pool(const Problem& p, const At& x) {
  const auto kernel = p.attributes.list("kernel_size"), padding = p.attributes.list("padding");
  auto stride = p.attributes.list("stride");
  for (std::size_t i = 0; i < stride.size(); ++i) stride[i] = stride[i] == 0 ? kernel[i] : stride[i];
  const bool ceil = p.attributes.boolean("ceil_mode");
  if (p.op == OpId::max_pool2d || p.op == OpId::max_pool3d) {
    const auto dilation = p.attributes.list("dilation");
    if (p.op == OpId::max_pool3d) {
      return [=](At& out) { out = at::max_pool3d(x, kernel, stride, padding, dilation, ceil); };
    }
    return [=](At& out) { out = at::max_pool2d(x, kernel, stride, padding, dilation, ceil); };
  }
  const bool padded = p.attributes.boolean("count_include_pad");
  if (p.op == OpId::avg_pool3d) {
    return [=](At& out) { at::avg_pool3d_out(out, x, kernel, stride, padding, ceil, padded); };
  }
  return [=](At& out) { at::avg_pool2d_out(out, x, kernel, stride, padding, ceil, padded); };
}

Function batch_norm(const Problem& p, const Tensors& in) {
  // Training changes the running statistics in place: these are the peer's own.
  std::vector<std::optional<At>> rest(5);
  for (std::size_t i = 1; i < in.size(); ++i) rest[i] = in[i].clone();
  const bool training = p.attributes.boolean("training");
  const double momentum = p.attributes.real("momentum"), eps = p.attributes.real("eps");
  return [=, x = in[0]](At& out) {
    out = at::batch_norm(x, rest[3], rest[4], rest[1], rest[2], training, momentum, eps, false);
  };
}

Function norm(const Problem& p, const Tensors& in) {
  const double eps = p.attributes.real("eps");
  const At x = in[0];
  if (p.op == OpId::normalize) {
    return [=, order = p.attributes.real("p"), dim = p.attributes.integer("dim")](At& out) {
      at::div_out(out, x, at::norm(x, order, {dim}, true).clamp_min_(eps));
    };
  }
  if (p.op == OpId::rms_norm) {
    return [=](At& out) { out = at::rms_norm(x, {x.size(-1)}, at_or_none(in, 1), eps); };
  }
  const auto rank = p.attributes.integer("normalized_rank");
  const std::vector<std::int64_t> shape = x.sizes().slice(static_cast<std::size_t>(x.dim() - rank)).vec();
  return [=](At& out) { out = at::layer_norm(x, shape, at_or_none(in, 1), at_or_none(in, 2), eps); };
}

Function reduction(const Problem& p, const At& x) {
  const auto dims = p.attributes.list("dim");
  const bool keep = p.attributes.boolean("keepdim");
  switch (p.op) {
    case OpId::reduce_sum:
      return [=](At& out) { at::sum_out(out, x, at::IntArrayRef(dims), keep); };
    case OpId::reduce_mean:
      return [=](At& out) { at::mean_out(out, x, at::IntArrayRef(dims), keep); };
    case OpId::reduce_max:
      return [=](At& out) { at::amax_out(out, x, dims, keep); };
    default:
      return [=](At& out) { at::amin_out(out, x, dims, keep); };
  }
}

std::int64_t reduction_code(std::string_view name) {
  if (name == "none") return at::Reduction::None;
  return name == "mean" ? at::Reduction::Mean : at::Reduction::Sum;
}

Function loss(const Problem& p, const Tensors& in) {
  const std::string_view name = p.attributes.choice("reduction");
  const std::int64_t code = reduction_code(name);
  if (p.op == OpId::kl_div) {
    const double batch = name == "batchmean" ? static_cast<double>(in[0].size(0)) : 1.0;
    return [=, logs = p.attributes.boolean("log_target")](At& out) {
      out = at::kl_div(in[0], in[1], code, logs).div_(batch);
    };
  }
  if (p.op == OpId::poisson_nll_loss) {
    const bool logs = p.attributes.boolean("log_input"), full = p.attributes.boolean("full");
    return [=, eps = p.attributes.real("eps")](At& out) {
      out = at::poisson_nll_loss(in[0], in[1], logs, full, eps, code);
    };
  }
  const std::int64_t ignored = p.attributes.integer("ignore_index");
  if (p.op == OpId::nll_loss) {
    return [=](At& out) { out = at::nll_loss_nd(in[0], in[1], at_or_none(in, 2), code, ignored); };
  }
  return [=, smoothing = p.attributes.real("label_smoothing")](At& out) {
    out = at::cross_entropy_loss(in[0], in[1], at_or_none(in, 2), code, ignored, smoothing);
  };
}

// What comes out is written where it belongs: PyTorch's own views cost nothing, ours are copies.
Function movement(const Problem& p, const Tensors& in) {
  if (p.op == OpId::concat) {
    return [in, dim = p.attributes.integer("dim")](At& out) { at::cat_out(out, in, dim); };
  }
  At view = in[0];
  if (p.op == OpId::transpose) {
    auto dims = p.attributes.list("dims");
    for (std::int64_t i = view.dim(); dims.size() < static_cast<std::size_t>(view.dim());) dims.push_back(--i);
    view = view.permute(dims);
  } else if (p.op == OpId::slice) {
    view = view.slice(p.attributes.integer("dim"), p.attributes.integer("start"), p.attributes.integer("end"),
                      p.attributes.integer("step"));
  }
  return [view](At& out) { out.copy_(view); };
}

Function elementwise(const Problem& p, const Tensors& in) {
  const At x = in[0];
  const At y = in.size() > 1 ? in[1] : x;
  switch (p.op) {
    case OpId::relu:
      return [=](At& out) { at::clamp_min_out(out, x, 0); };
    case OpId::gelu:
      return [=, kind = p.attributes.choice("approximate")](At& out) { at::gelu_out(out, x, kind); };
    case OpId::silu:
      return [=](At& out) { at::silu_out(out, x); };
    case OpId::sigmoid:
      return [=](At& out) { at::sigmoid_out(out, x); };
    case OpId::tanh:
      return [=](At& out) { at::tanh_out(out, x); };
    case OpId::add:
      return [=](At& out) { at::add_out(out, x, y); };
    case OpId::sub:
      return [=](At& out) { at::sub_out(out, x, y); };
    case OpId::mul:
      return [=](At& out) { at::mul_out(out, x, y); };
    case OpId::div:
      return [=](At& out) { at::div_out(out, x, y); };
    case OpId::log:
      return [=](At& out) { at::log_out(out, x); };
    case OpId::exp:
      return [=](At& out) { at::exp_out(out, x); };
    case OpId::sqrt:
      return [=](At& out) { at::sqrt_out(out, x); };
    default:
      return {};
  }
}

Function function_of(const Problem& p, const Tensors& in) {
  switch (p.op) {
    case OpId::matmul:
      return product(p, in);
    case OpId::linear:
      return linear(p, in);
    case OpId::conv2d:
    case OpId::conv3d:
      return convolution(p, in);
    case OpId::attention:
      return attention(p, in);
    case OpId::max_pool2d:
    case OpId::max_pool3d:
    case OpId::avg_pool2d:
    case OpId::avg_pool3d:
      return pool(p, in[0]);
    case OpId::batch_norm1d:
    case OpId::batch_norm2d:
    case OpId::batch_norm3d:
      return batch_norm(p, in);
    case OpId::layer_norm:
    case OpId::rms_norm:
    case OpId::normalize:
      return norm(p, in);
    case OpId::softmax:
      return [x = in[0], dim = p.attributes.integer("dim")](At& out) { at::softmax_out(out, x, dim); };
    case OpId::log_softmax:
      return [x = in[0], dim = p.attributes.integer("dim")](At& out) { at::log_softmax_out(out, x, dim); };
    case OpId::dropout:
      return [x = in[0], rate = p.attributes.real("p"), on = p.attributes.boolean("training")](At& out) {
        out = at::dropout(x, rate, on);
      };
    case OpId::reduce_sum:
    case OpId::reduce_mean:
    case OpId::reduce_max:
    case OpId::reduce_min:
      return reduction(p, in[0]);
    case OpId::embedding:
      return [in](At& out) { out = at::embedding(in[1], in[0]); };
    case OpId::cross_entropy:
    case OpId::nll_loss:
    case OpId::kl_div:
    case OpId::poisson_nll_loss:
      return loss(p, in);
    case OpId::cast:
    case OpId::copy:
    case OpId::transpose:
    case OpId::concat:
    case OpId::slice:
      return movement(p, in);
    default:
      return elementwise(p, in);
  }
}

class TorchContender final : public Contender {
 public:
  TorchContender(Function function, At out, const TensorSpec& spec, int threads)
      : function_(std::move(function)), wanted_(out), out_(std::move(out)), spec_(spec), threads_(threads) {}

  double run(std::uint64_t calls) override {
    const c10::InferenceMode guard;
    at::set_num_threads(threads_);  // others in this process share OpenMP with it
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) {
      function_(out_);
      // An op that chose a layout of its own has not done all of the work yet.
      if (out_.strides() != wanted_.strides()) wanted_.copy_(out_);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Tensor output() override {
    const c10::InferenceMode guard;
    if (!out_.is_same(wanted_)) wanted_.copy_(out_);
    return Tensor(wanted_.data_ptr(), spec_);
  }

 private:
  Function function_;
  At wanted_;  // in the layout that is asked for
  At out_;
  TensorSpec spec_;
  int threads_;
};

class TorchPeer final : public Peer {
 public:
  explicit TorchPeer(int threads) : threads_(threads) {}

  std::string version() const override { return TORCH_VERSION; }

  std::unique_ptr<Contender> make(const Problem& problem, std::span<const Tensor> inputs, std::string& why) override
      try {
    const c10::InferenceMode guard;
    Tensors in;
    for (const Tensor& input : inputs) {
      const auto dtype = torch_dtype(input.dtype());
      if (!dtype) return why = "it has no such dtype", nullptr;
      if (input.spec().alignment < size_of(input.dtype())) return why = "it takes no such addresses", nullptr;
      in.push_back(at::from_blob(input.as<void>(), extents(input.shape()), extents(input.strides()), *dtype));
    }
    const TensorSpec& spec = problem.outputs.at(0);
    const auto dtype = torch_dtype(spec.dtype);
    Function function = function_of(problem, in);
    if (!dtype || !function) return why = "it has no such op", nullptr;
    At out = at::empty_strided(extents(spec.shape), extents(spec.strides), *dtype);
    auto made = std::make_unique<TorchContender>(std::move(function), std::move(out), spec, threads_);
    made->run(1);
    return made;
  } catch (const std::exception& error) {
    why = error.what();
    return nullptr;
  }

 private:
  int threads_;
};

}  // namespace
}  // namespace xpuruntime::bench

extern "C" xpuruntime::bench::Peer* make_torch_peer(int threads) { return new xpuruntime::bench::TorchPeer(threads); }

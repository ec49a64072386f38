#pragma once

#include <array>
#include <vector>

#include "xpuruntime/runtime/op_options.h"

// Made by tools/op_functions.py from the rows of the ops. Each op is a function that returns new tensors, and one that
// writes to those it is given first:
//   Tensor y = ops::conv2d(x, w, {.bias = &b, .stride = 2, .padding = 1});
//   ops::matmul_out(c, a, b);
// What is required is an argument, all else a field of the options, in the order of the struct. Calls go through
// Runtime::global(), with its policy, and run on the tensors' device and its current stream; call_op.h says more.

namespace xpuruntime::ops {

/// Multiplies two matrices, or two batches of them that broadcast: alpha * (a * scale_a) @ (b * scale_b) + beta * c.
inline Tensor matmul(const Tensor& input, const Tensor& other, const MatmulOptions& options = {}) {
  return call(OpId::matmul, {input, other, options.c, options.scale_a, options.scale_b},
              {options.transpose_a, options.transpose_b, options.alpha, options.beta});
}
inline void matmul_out(const Tensor& out, const Tensor& input, const Tensor& other, const MatmulOptions& options = {}) {
  call_out({&out, 1}, OpId::matmul, {input, other, options.c, options.scale_a, options.scale_b},
           {options.transpose_a, options.transpose_b, options.alpha, options.beta});
}

/// Multiplies by a weight [out, in], adds the bias and applies the activation.
inline Tensor linear(const Tensor& input, const Tensor& weight, const LinearOptions& options = {}) {
  return call(OpId::linear, {input, weight, options.bias}, {options.activation});
}
inline void linear_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                       const LinearOptions& options = {}) {
  call_out({&out, 1}, OpId::linear, {input, weight, options.bias}, {options.activation});
}

/// Convolves images with filters, and adds the bias.
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dOptions& options = {}) {
  return call(OpId::conv2d, {input, weight, options.bias},
              {options.stride, options.padding, options.dilation, options.groups});
}
inline void conv2d_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                       const Conv2dOptions& options = {}) {
  call_out({&out, 1}, OpId::conv2d, {input, weight, options.bias},
           {options.stride, options.padding, options.dilation, options.groups});
}

/// Convolves volumes with filters, and adds the bias.
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dOptions& options = {}) {
  return call(OpId::conv3d, {input, weight, options.bias},
              {options.stride, options.padding, options.dilation, options.groups});
}
inline void conv3d_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                       const Conv3dOptions& options = {}) {
  call_out({&out, 1}, OpId::conv3d, {input, weight, options.bias},
           {options.stride, options.padding, options.dilation, options.groups});
}

/// Weights the values by the softmax of the scaled products of queries and keys.
inline Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options = {}) {
  return call(OpId::attention, {query, key, value, options.attn_mask, options.lengths, options.page_table},
              {options.causal, options.scale, options.causal_align, false});
}
inline void attention_out(const Tensor& out, const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionOptions& options = {}) {
  call_out({&out, 1}, OpId::attention, {query, key, value, options.attn_mask, options.lengths, options.page_table},
           {options.causal, options.scale, options.causal_align, false});
}

/// The same, and as the last result its lse.
inline std::array<Tensor, 2> attention_with_lse(const Tensor& query, const Tensor& key, const Tensor& value,
                                                const AttentionOptions& options = {}) {
  return call_all<2>(OpId::attention, {query, key, value, options.attn_mask, options.lengths, options.page_table},
                     {options.causal, options.scale, options.causal_align, true});
}
inline void attention_with_lse_out(const std::array<Tensor, 2>& out, const Tensor& query, const Tensor& key,
                                   const Tensor& value, const AttentionOptions& options = {}) {
  call_out(out, OpId::attention, {query, key, value, options.attn_mask, options.lengths, options.page_table},
           {options.causal, options.scale, options.causal_align, true});
}

/// Takes the largest element of each window of an image.
inline Tensor max_pool2d(const Tensor& input, const Ints& kernel_size, const MaxPool2dOptions& options = {}) {
  return call(OpId::max_pool2d, {input},
              {kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode});
}
inline void max_pool2d_out(const Tensor& out, const Tensor& input, const Ints& kernel_size,
                           const MaxPool2dOptions& options = {}) {
  call_out({&out, 1}, OpId::max_pool2d, {input},
           {kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode});
}

/// Takes the largest element of each window of a volume.
inline Tensor max_pool3d(const Tensor& input, const Ints& kernel_size, const MaxPool3dOptions& options = {}) {
  return call(OpId::max_pool3d, {input},
              {kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode});
}
inline void max_pool3d_out(const Tensor& out, const Tensor& input, const Ints& kernel_size,
                           const MaxPool3dOptions& options = {}) {
  call_out({&out, 1}, OpId::max_pool3d, {input},
           {kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode});
}

/// Takes the mean of each window of an image.
inline Tensor avg_pool2d(const Tensor& input, const Ints& kernel_size, const AvgPool2dOptions& options = {}) {
  return call(OpId::avg_pool2d, {input},
              {kernel_size, options.stride, options.padding, options.ceil_mode, options.count_include_pad});
}
inline void avg_pool2d_out(const Tensor& out, const Tensor& input, const Ints& kernel_size,
                           const AvgPool2dOptions& options = {}) {
  call_out({&out, 1}, OpId::avg_pool2d, {input},
           {kernel_size, options.stride, options.padding, options.ceil_mode, options.count_include_pad});
}

/// Takes the mean of each window of a volume.
inline Tensor avg_pool3d(const Tensor& input, const Ints& kernel_size, const AvgPool3dOptions& options = {}) {
  return call(OpId::avg_pool3d, {input},
              {kernel_size, options.stride, options.padding, options.ceil_mode, options.count_include_pad});
}
inline void avg_pool3d_out(const Tensor& out, const Tensor& input, const Ints& kernel_size,
                           const AvgPool3dOptions& options = {}) {
  call_out({&out, 1}, OpId::avg_pool3d, {input},
           {kernel_size, options.stride, options.padding, options.ceil_mode, options.count_include_pad});
}

/// Normalizes each channel by its mean and variance, those of the batch in training.
inline Tensor batch_norm1d(const Tensor& input, const BatchNorm1dOptions& options = {}) {
  return call(OpId::batch_norm1d, {input, options.running_mean, options.running_var, options.weight, options.bias},
              {options.training, options.momentum, options.eps});
}
inline void batch_norm1d_out(const Tensor& out, const Tensor& input, const BatchNorm1dOptions& options = {}) {
  call_out({&out, 1}, OpId::batch_norm1d,
           {input, options.running_mean, options.running_var, options.weight, options.bias},
           {options.training, options.momentum, options.eps});
}

/// Normalizes each channel by its mean and variance, those of the batch in training.
inline Tensor batch_norm2d(const Tensor& input, const BatchNorm2dOptions& options = {}) {
  return call(OpId::batch_norm2d, {input, options.running_mean, options.running_var, options.weight, options.bias},
              {options.training, options.momentum, options.eps});
}
inline void batch_norm2d_out(const Tensor& out, const Tensor& input, const BatchNorm2dOptions& options = {}) {
  call_out({&out, 1}, OpId::batch_norm2d,
           {input, options.running_mean, options.running_var, options.weight, options.bias},
           {options.training, options.momentum, options.eps});
}

/// Normalizes each channel by its mean and variance, those of the batch in training.
inline Tensor batch_norm3d(const Tensor& input, const BatchNorm3dOptions& options = {}) {
  return call(OpId::batch_norm3d, {input, options.running_mean, options.running_var, options.weight, options.bias},
              {options.training, options.momentum, options.eps});
}
inline void batch_norm3d_out(const Tensor& out, const Tensor& input, const BatchNorm3dOptions& options = {}) {
  call_out({&out, 1}, OpId::batch_norm3d,
           {input, options.running_mean, options.running_var, options.weight, options.bias},
           {options.training, options.momentum, options.eps});
}

/// Normalizes each row by its own mean and variance, then scales by the weight and adds the bias.
inline Tensor layer_norm(const Tensor& input, const LayerNormOptions& options = {}) {
  return call(OpId::layer_norm, {input, options.weight, options.bias}, {options.normalized_rank, options.eps});
}
inline void layer_norm_out(const Tensor& out, const Tensor& input, const LayerNormOptions& options = {}) {
  call_out({&out, 1}, OpId::layer_norm, {input, options.weight, options.bias}, {options.normalized_rank, options.eps});
}

/// Divides each row by the root of the mean of its squares, then scales by the weight.
inline Tensor rms_norm(const Tensor& input, const RmsNormOptions& options = {}) {
  return call(OpId::rms_norm, {input, options.weight}, {options.eps});
}
inline void rms_norm_out(const Tensor& out, const Tensor& input, const RmsNormOptions& options = {}) {
  call_out({&out, 1}, OpId::rms_norm, {input, options.weight}, {options.eps});
}

/// Divides by the p-norm along a dim, or by eps where that is larger.
inline Tensor normalize(const Tensor& input, const NormalizeOptions& options = {}) {
  return call(OpId::normalize, {input}, {options.p, options.dim, options.eps});
}
inline void normalize_out(const Tensor& out, const Tensor& input, const NormalizeOptions& options = {}) {
  call_out({&out, 1}, OpId::normalize, {input}, {options.p, options.dim, options.eps});
}

/// Exponentials along a dim, divided by their sum.
inline Tensor softmax(const Tensor& input, const SoftmaxOptions& options = {}) {
  return call(OpId::softmax, {input}, {options.dim});
}
inline void softmax_out(const Tensor& out, const Tensor& input, const SoftmaxOptions& options = {}) {
  call_out({&out, 1}, OpId::softmax, {input}, {options.dim});
}

/// The logarithm of the softmax along a dim.
inline Tensor log_softmax(const Tensor& input, const LogSoftmaxOptions& options = {}) {
  return call(OpId::log_softmax, {input}, {options.dim});
}
inline void log_softmax_out(const Tensor& out, const Tensor& input, const LogSoftmaxOptions& options = {}) {
  call_out({&out, 1}, OpId::log_softmax, {input}, {options.dim});
}

/// Zeroes elements with probability p and divides the others by 1 - p; copies when not training.
inline Tensor dropout(const Tensor& input, const DropoutOptions& options = {}) {
  return call(OpId::dropout, {input, options.seed_and_offset}, {options.p, options.seed, options.training});
}
inline void dropout_out(const Tensor& out, const Tensor& input, const DropoutOptions& options = {}) {
  call_out({&out, 1}, OpId::dropout, {input, options.seed_and_offset}, {options.p, options.seed, options.training});
}

/// The larger of each element and 0.
inline Tensor relu(const Tensor& input) { return call(OpId::relu, {input}); }
inline void relu_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::relu, {input}); }

/// The Gaussian error linear unit of each element, exact or by its approximation with tanh.
inline Tensor gelu(const Tensor& input, const GeluOptions& options = {}) {
  return call(OpId::gelu, {input}, {options.approximate});
}
inline void gelu_out(const Tensor& out, const Tensor& input, const GeluOptions& options = {}) {
  call_out({&out, 1}, OpId::gelu, {input}, {options.approximate});
}

/// Each element times its sigmoid; also called swish.
inline Tensor silu(const Tensor& input) { return call(OpId::silu, {input}); }
inline void silu_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::silu, {input}); }

/// The logistic function of each element.
inline Tensor sigmoid(const Tensor& input) { return call(OpId::sigmoid, {input}); }
inline void sigmoid_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::sigmoid, {input}); }

/// The hyperbolic tangent of each element.
inline Tensor tanh(const Tensor& input) { return call(OpId::tanh, {input}); }
inline void tanh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::tanh, {input}); }

/// Adds two arrays element by element, with broadcasting.
inline Tensor add(const Tensor& input, const Operand& other) { return call(OpId::add, {input, other}); }
inline void add_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::add, {input, other});
}

/// Subtracts the second array from the first element by element, with broadcasting.
inline Tensor sub(const Tensor& input, const Operand& other) { return call(OpId::sub, {input, other}); }
inline void sub_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::sub, {input, other});
}

/// Multiplies two arrays element by element, with broadcasting.
inline Tensor mul(const Tensor& input, const Operand& other) { return call(OpId::mul, {input, other}); }
inline void mul_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::mul, {input, other});
}

/// Divides the first array by the second element by element, with broadcasting.
inline Tensor div(const Tensor& input, const Operand& other) { return call(OpId::div, {input, other}); }
inline void div_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::div, {input, other});
}

/// The natural logarithm of each element.
inline Tensor log(const Tensor& input) { return call(OpId::log, {input}); }
inline void log_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::log, {input}); }

/// The exponential of each element.
inline Tensor exp(const Tensor& input) { return call(OpId::exp, {input}); }
inline void exp_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::exp, {input}); }

/// The square root of each element.
inline Tensor sqrt(const Tensor& input) { return call(OpId::sqrt, {input}); }
inline void sqrt_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::sqrt, {input}); }

/// Adds up the elements along dims, or all.
inline Tensor reduce_sum(const Tensor& input, const ReduceSumOptions& options = {}) {
  return call(OpId::reduce_sum, {input}, {options.dim, options.keepdim});
}
inline void reduce_sum_out(const Tensor& out, const Tensor& input, const ReduceSumOptions& options = {}) {
  call_out({&out, 1}, OpId::reduce_sum, {input}, {options.dim, options.keepdim});
}

/// Takes the mean of the elements along dims, or of all.
inline Tensor reduce_mean(const Tensor& input, const ReduceMeanOptions& options = {}) {
  return call(OpId::reduce_mean, {input}, {options.dim, options.keepdim});
}
inline void reduce_mean_out(const Tensor& out, const Tensor& input, const ReduceMeanOptions& options = {}) {
  call_out({&out, 1}, OpId::reduce_mean, {input}, {options.dim, options.keepdim});
}

/// Takes the largest element along dims, or of all.
inline Tensor reduce_max(const Tensor& input, const ReduceMaxOptions& options = {}) {
  return call(OpId::reduce_max, {input}, {options.dim, options.keepdim});
}
inline void reduce_max_out(const Tensor& out, const Tensor& input, const ReduceMaxOptions& options = {}) {
  call_out({&out, 1}, OpId::reduce_max, {input}, {options.dim, options.keepdim});
}

/// Takes the smallest element along dims, or of all.
inline Tensor reduce_min(const Tensor& input, const ReduceMinOptions& options = {}) {
  return call(OpId::reduce_min, {input}, {options.dim, options.keepdim});
}
inline void reduce_min_out(const Tensor& out, const Tensor& input, const ReduceMinOptions& options = {}) {
  call_out({&out, 1}, OpId::reduce_min, {input}, {options.dim, options.keepdim});
}

/// Looks up rows of the weight by their indices.
inline Tensor embedding(const Tensor& input, const Tensor& weight) { return call(OpId::embedding, {input, weight}); }
inline void embedding_out(const Tensor& out, const Tensor& input, const Tensor& weight) {
  call_out({&out, 1}, OpId::embedding, {input, weight});
}

/// The cross entropy of scores and targets, which are classes or probabilities.
inline Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {}) {
  return call(OpId::cross_entropy, {input, target, options.weight},
              {options.reduction, options.ignore_index, options.label_smoothing});
}
inline void cross_entropy_out(const Tensor& out, const Tensor& input, const Tensor& target,
                              const CrossEntropyOptions& options = {}) {
  call_out({&out, 1}, OpId::cross_entropy, {input, target, options.weight},
           {options.reduction, options.ignore_index, options.label_smoothing});
}

/// The negative log-likelihood of classes, given the logarithms of their probabilities.
inline Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options = {}) {
  return call(OpId::nll_loss, {input, target, options.weight}, {options.reduction, options.ignore_index});
}
inline void nll_loss_out(const Tensor& out, const Tensor& input, const Tensor& target,
                         const NllLossOptions& options = {}) {
  call_out({&out, 1}, OpId::nll_loss, {input, target, options.weight}, {options.reduction, options.ignore_index});
}

/// The Kullback-Leibler divergence of a target from a distribution that is given by logarithms.
inline Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {}) {
  return call(OpId::kl_div, {input, target}, {options.reduction, options.log_target});
}
inline void kl_div_out(const Tensor& out, const Tensor& input, const Tensor& target, const KlDivOptions& options = {}) {
  call_out({&out, 1}, OpId::kl_div, {input, target}, {options.reduction, options.log_target});
}

/// The negative log-likelihood of counts under a Poisson distribution with the given rates.
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllLossOptions& options = {}) {
  return call(OpId::poisson_nll_loss, {input, target},
              {options.log_input, options.full, options.eps, options.reduction});
}
inline void poisson_nll_loss_out(const Tensor& out, const Tensor& input, const Tensor& target,
                                 const PoissonNllLossOptions& options = {}) {
  call_out({&out, 1}, OpId::poisson_nll_loss, {input, target},
           {options.log_input, options.full, options.eps, options.reduction});
}

/// Converts the elements to another dtype.
inline Tensor cast(const Tensor& input, DataType dtype) { return call(OpId::cast, {input}, {dtype}); }
inline void cast_out(const Tensor& out, const Tensor& input, DataType dtype) {
  call_out({&out, 1}, OpId::cast, {input}, {dtype});
}

/// Copies the elements, into a contiguous result unless `out` says otherwise.
inline Tensor copy(const Tensor& input) { return call(OpId::copy, {input}); }
inline void copy_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::copy, {input}); }

/// Reorders the dims, and moves the elements accordingly.
inline Tensor transpose(const Tensor& input, const TransposeOptions& options = {}) {
  return call(OpId::transpose, {input}, {options.dims});
}
inline void transpose_out(const Tensor& out, const Tensor& input, const TransposeOptions& options = {}) {
  call_out({&out, 1}, OpId::transpose, {input}, {options.dims});
}

/// Joins arrays along a dim.
inline Tensor concat(const std::vector<Tensor>& tensors, const ConcatOptions& options = {}) {
  return call(OpId::concat, {tensors}, {options.dim});
}
inline void concat_out(const Tensor& out, const std::vector<Tensor>& tensors, const ConcatOptions& options = {}) {
  call_out({&out, 1}, OpId::concat, {tensors}, {options.dim});
}

/// Takes every step-th element from start to end along a dim.
inline Tensor slice(const Tensor& input, const SliceOptions& options = {}) {
  return call(OpId::slice, {input}, {options.dim, options.start, options.end, options.step});
}
inline void slice_out(const Tensor& out, const Tensor& input, const SliceOptions& options = {}) {
  call_out({&out, 1}, OpId::slice, {input}, {options.dim, options.start, options.end, options.step});
}

/// Multiplies gradients by the inverse of a loss scale, and says whether any is infinite or NaN.
inline std::array<Tensor, 2> unscale(const Tensor& input, const Operand& inverse_scale) {
  return call_all<2>(OpId::unscale, {input, inverse_scale});
}
inline void unscale_out(const std::array<Tensor, 2>& out, const Tensor& input, const Operand& inverse_scale) {
  call_out(out, OpId::unscale, {input, inverse_scale});
}

/// Adds the residual, and gives rms_norm of the sum as it is stored, and the sum: the next residual.
inline std::array<Tensor, 2> add_rms_norm(const Tensor& input, const Tensor& residual,
                                          const AddRmsNormOptions& options = {}) {
  return call_all<2>(OpId::add_rms_norm, {input, residual, options.weight}, {options.eps});
}
inline void add_rms_norm_out(const std::array<Tensor, 2>& out, const Tensor& input, const Tensor& residual,
                             const AddRmsNormOptions& options = {}) {
  call_out(out, OpId::add_rms_norm, {input, residual, options.weight}, {options.eps});
}

/// silu of the first half of the last dim times its second half, or silu of one array times another.
inline Tensor silu_mul(const Tensor& input, const SiluMulOptions& options = {}) {
  return call(OpId::silu_mul, {input, options.other});
}
inline void silu_mul_out(const Tensor& out, const Tensor& input, const SiluMulOptions& options = {}) {
  call_out({&out, 1}, OpId::silu_mul, {input, options.other});
}

/// Rotates pairs of a head's elements, i and i + pairs or neighbours where interleaved, by the angles of its token's
/// position, and copies elements past the pairs.
inline Tensor rope(const Tensor& input, const Tensor& positions, const Tensor& cos, const Tensor& sin,
                   const RopeOptions& options = {}) {
  return call(OpId::rope, {input, positions, cos, sin}, {options.interleaved});
}
inline void rope_out(const Tensor& out, const Tensor& input, const Tensor& positions, const Tensor& cos,
                     const Tensor& sin, const RopeOptions& options = {}) {
  call_out({&out, 1}, OpId::rope, {input, positions, cos, sin}, {options.interleaved});
}

/// Writes new keys and values after the `lengths` tokens of each sequence, in pages where there is a page table: into
/// the caches where they are `out`, else into copies of them.
inline std::array<Tensor, 2> kv_append(const Tensor& key_cache, const Tensor& value_cache, const Tensor& key,
                                       const Tensor& value, const Tensor& lengths,
                                       const KvAppendOptions& options = {}) {
  return call_all<2>(OpId::kv_append, {key_cache, value_cache, key, value, lengths, options.page_table});
}
inline void kv_append_out(const std::array<Tensor, 2>& out, const Tensor& key_cache, const Tensor& value_cache,
                          const Tensor& key, const Tensor& value, const Tensor& lengths,
                          const KvAppendOptions& options = {}) {
  call_out(out, OpId::kv_append, {key_cache, value_cache, key, value, lengths, options.page_table});
}

/// Takes the slices of a dim that the indices name, which may have any number of dims. Negative indices count from the
/// back.
inline Tensor gather(const Tensor& input, const Tensor& indices, const GatherOptions& options = {}) {
  return call(OpId::gather, {input, indices}, {options.dim});
}
inline void gather_out(const Tensor& out, const Tensor& input, const Tensor& indices,
                       const GatherOptions& options = {}) {
  call_out({&out, 1}, OpId::gather, {input, indices}, {options.dim});
}

/// Takes for each index the element at that place of the dim and at its own place of the others.
inline Tensor gather_elements(const Tensor& input, const Tensor& indices, const GatherElementsOptions& options = {}) {
  return call(OpId::gather_elements, {input, indices}, {options.dim});
}
inline void gather_elements_out(const Tensor& out, const Tensor& input, const Tensor& indices,
                                const GatherElementsOptions& options = {}) {
  call_out({&out, 1}, OpId::gather_elements, {input, indices}, {options.dim});
}

/// Takes the slices at the positions that the last dim of the indices lists, after `batch_dims` dims that both inputs
/// have.
inline Tensor gather_nd(const Tensor& input, const Tensor& indices, const GatherNdOptions& options = {}) {
  return call(OpId::gather_nd, {input, indices}, {options.batch_dims});
}
inline void gather_nd_out(const Tensor& out, const Tensor& input, const Tensor& indices,
                          const GatherNdOptions& options = {}) {
  call_out({&out, 1}, OpId::gather_nd, {input, indices}, {options.batch_dims});
}

/// Writes each update to the place of the dim that its index names, or reduces what is there with it: into the input
/// where that is `out`, else into a copy. Of several for one place the last stays.
inline Tensor scatter_elements(const Tensor& input, const Tensor& indices, const Tensor& updates,
                               const ScatterElementsOptions& options = {}) {
  return call(OpId::scatter_elements, {input, indices, updates}, {options.dim, options.reduction});
}
inline void scatter_elements_out(const Tensor& out, const Tensor& input, const Tensor& indices, const Tensor& updates,
                                 const ScatterElementsOptions& options = {}) {
  call_out({&out, 1}, OpId::scatter_elements, {input, indices, updates}, {options.dim, options.reduction});
}

/// Writes each slice of the updates to the position that the last dim of the indices lists, or reduces what is there
/// with it: into the input where that is `out`, else into a copy. Of several for one place the last stays.
inline Tensor scatter_nd(const Tensor& input, const Tensor& indices, const Tensor& updates,
                         const ScatterNdOptions& options = {}) {
  return call(OpId::scatter_nd, {input, indices, updates}, {options.reduction});
}
inline void scatter_nd_out(const Tensor& out, const Tensor& input, const Tensor& indices, const Tensor& updates,
                           const ScatterNdOptions& options = {}) {
  call_out({&out, 1}, OpId::scatter_nd, {input, indices, updates}, {options.reduction});
}

/// Adds elements before and after each dim, or cuts them off where negative: a value, 0 without one, or the input's
/// own: mirrored, its edge again, or from its other end.
inline Tensor pad(const Tensor& input, const PadOptions& options = {}) {
  return call(OpId::pad, {input, options.value}, {options.pads, options.mode});
}
inline void pad_out(const Tensor& out, const Tensor& input, const PadOptions& options = {}) {
  call_out({&out, 1}, OpId::pad, {input, options.value}, {options.pads, options.mode});
}

/// Repeats the input along its dims.
inline Tensor tile(const Tensor& input, const TileOptions& options = {}) {
  return call(OpId::tile, {input}, {options.repeats});
}
inline void tile_out(const Tensor& out, const Tensor& input, const TileOptions& options = {}) {
  call_out({&out, 1}, OpId::tile, {input}, {options.repeats});
}

/// Reverses the order of the elements along dims, or all.
inline Tensor flip(const Tensor& input, const FlipOptions& options = {}) {
  return call(OpId::flip, {input}, {options.dims});
}
inline void flip_out(const Tensor& out, const Tensor& input, const FlipOptions& options = {}) {
  call_out({&out, 1}, OpId::flip, {input}, {options.dims});
}

/// Adds up the elements along a dim up to each one, that one left out where exclusive, from the end where reverse.
inline Tensor cumsum(const Tensor& input, const CumsumOptions& options = {}) {
  return call(OpId::cumsum, {input}, {options.dim, options.exclusive, options.reverse});
}
inline void cumsum_out(const Tensor& out, const Tensor& input, const CumsumOptions& options = {}) {
  call_out({&out, 1}, OpId::cumsum, {input}, {options.dim, options.exclusive, options.reverse});
}

/// Gives the place of the largest element along a dim, of equal ones the first or the last; NaN counts as the largest.
inline Tensor arg_max(const Tensor& input, const ArgMaxOptions& options = {}) {
  return call(OpId::arg_max, {input}, {options.dim, options.keepdim, options.select_last_index});
}
inline void arg_max_out(const Tensor& out, const Tensor& input, const ArgMaxOptions& options = {}) {
  call_out({&out, 1}, OpId::arg_max, {input}, {options.dim, options.keepdim, options.select_last_index});
}

/// Gives the place of the smallest element along a dim, of equal ones the first or the last; NaN counts as the
/// smallest.
inline Tensor arg_min(const Tensor& input, const ArgMinOptions& options = {}) {
  return call(OpId::arg_min, {input}, {options.dim, options.keepdim, options.select_last_index});
}
inline void arg_min_out(const Tensor& out, const Tensor& input, const ArgMinOptions& options = {}) {
  call_out({&out, 1}, OpId::arg_min, {input}, {options.dim, options.keepdim, options.select_last_index});
}

/// Takes the k largest or smallest elements along a dim and their places, in order; of equal ones those in front. NaN
/// counts as the largest.
inline std::array<Tensor, 2> top_k(const Tensor& input, const TopKOptions& options = {}) {
  return call_all<2>(OpId::top_k, {input}, {options.k, options.dim, options.largest, options.sorted});
}
inline void top_k_out(const std::array<Tensor, 2>& out, const Tensor& input, const TopKOptions& options = {}) {
  call_out(out, OpId::top_k, {input}, {options.k, options.dim, options.largest, options.sorted});
}

/// Puts a dim of `depth` elements at `dim`: the second of the values where the index says, else the first; 1 and 0
/// without values. An index outside of it, counted from either end, leaves the first everywhere.
inline Tensor one_hot(const Tensor& input, const OneHotOptions& options = {}) {
  return call(OpId::one_hot, {input, options.values}, {options.depth, options.dim});
}
inline void one_hot_out(const Tensor& out, const Tensor& input, const OneHotOptions& options = {}) {
  call_out({&out, 1}, OpId::one_hot, {input, options.values}, {options.depth, options.dim});
}

/// Keeps the upper or the lower triangle of each matrix, from the given diagonal, and makes the rest 0.
inline Tensor trilu(const Tensor& input, const TriluOptions& options = {}) {
  return call(OpId::trilu, {input}, {options.diagonal, options.upper});
}
inline void trilu_out(const Tensor& out, const Tensor& input, const TriluOptions& options = {}) {
  call_out({&out, 1}, OpId::trilu, {input}, {options.diagonal, options.upper});
}

/// Multiplies the elements along dims, or all.
inline Tensor reduce_prod(const Tensor& input, const ReduceProdOptions& options = {}) {
  return call(OpId::reduce_prod, {input}, {options.dim, options.keepdim});
}
inline void reduce_prod_out(const Tensor& out, const Tensor& input, const ReduceProdOptions& options = {}) {
  call_out({&out, 1}, OpId::reduce_prod, {input}, {options.dim, options.keepdim});
}

/// Reverses the first elements of each sequence along `time_dim`, as many as its length says.
inline Tensor reverse_sequence(const Tensor& input, const Tensor& lengths, const ReverseSequenceOptions& options = {}) {
  return call(OpId::reverse_sequence, {input, lengths}, {options.batch_dim, options.time_dim});
}
inline void reverse_sequence_out(const Tensor& out, const Tensor& input, const Tensor& lengths,
                                 const ReverseSequenceOptions& options = {}) {
  call_out({&out, 1}, OpId::reverse_sequence, {input, lengths}, {options.batch_dim, options.time_dim});
}

/// Each value over its scale, rounded to an integer (ties to even), plus the zero point, held in the range of the
/// result's dtype.
inline Tensor quantize(const Tensor& input, const Operand& scale, const QuantizeOptions& options = {}) {
  return call(OpId::quantize, {input, scale, options.zero_point}, {options.dim, options.block_size, options.dtype});
}
inline void quantize_out(const Tensor& out, const Tensor& input, const Operand& scale,
                         const QuantizeOptions& options = {}) {
  call_out({&out, 1}, OpId::quantize, {input, scale, options.zero_point},
           {options.dim, options.block_size, options.dtype});
}

/// Each integer less the zero point, times its scale.
inline Tensor dequantize(const Tensor& input, const Operand& scale, const DequantizeOptions& options = {}) {
  return call(OpId::dequantize, {input, scale, options.zero_point}, {options.dim, options.block_size, options.dtype});
}
inline void dequantize_out(const Tensor& out, const Tensor& input, const Operand& scale,
                           const DequantizeOptions& options = {}) {
  call_out({&out, 1}, OpId::dequantize, {input, scale, options.zero_point},
           {options.dim, options.block_size, options.dtype});
}

/// Each element without its sign.
inline Tensor abs(const Tensor& input) { return call(OpId::abs, {input}); }
inline void abs_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::abs, {input}); }

/// Each element with the other sign.
inline Tensor neg(const Tensor& input) { return call(OpId::neg, {input}); }
inline void neg_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::neg, {input}); }

/// -1, 0 or 1, by the sign of each element; NaN stays.
inline Tensor sign(const Tensor& input) { return call(OpId::sign, {input}); }
inline void sign_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::sign, {input}); }

/// The largest integer that is not above each element.
inline Tensor floor(const Tensor& input) { return call(OpId::floor, {input}); }
inline void floor_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::floor, {input}); }

/// The smallest integer that is not below each element.
inline Tensor ceil(const Tensor& input) { return call(OpId::ceil, {input}); }
inline void ceil_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::ceil, {input}); }

/// The integer nearest to each element, of two the even one.
inline Tensor round(const Tensor& input) { return call(OpId::round, {input}); }
inline void round_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::round, {input}); }

/// 1 divided by each element.
inline Tensor reciprocal(const Tensor& input) { return call(OpId::reciprocal, {input}); }
inline void reciprocal_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::reciprocal, {input}); }

/// The error function of each element.
inline Tensor erf(const Tensor& input) { return call(OpId::erf, {input}); }
inline void erf_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::erf, {input}); }

/// The sine of each element.
inline Tensor sin(const Tensor& input) { return call(OpId::sin, {input}); }
inline void sin_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::sin, {input}); }

/// The cosine of each element.
inline Tensor cos(const Tensor& input) { return call(OpId::cos, {input}); }
inline void cos_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::cos, {input}); }

/// The tangent of each element.
inline Tensor tan(const Tensor& input) { return call(OpId::tan, {input}); }
inline void tan_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::tan, {input}); }

/// The arc sine of each element.
inline Tensor asin(const Tensor& input) { return call(OpId::asin, {input}); }
inline void asin_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::asin, {input}); }

/// The arc cosine of each element.
inline Tensor acos(const Tensor& input) { return call(OpId::acos, {input}); }
inline void acos_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::acos, {input}); }

/// The arc tangent of each element.
inline Tensor atan(const Tensor& input) { return call(OpId::atan, {input}); }
inline void atan_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::atan, {input}); }

/// The hyperbolic sine of each element.
inline Tensor sinh(const Tensor& input) { return call(OpId::sinh, {input}); }
inline void sinh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::sinh, {input}); }

/// The hyperbolic cosine of each element.
inline Tensor cosh(const Tensor& input) { return call(OpId::cosh, {input}); }
inline void cosh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::cosh, {input}); }

/// The inverse hyperbolic sine of each element.
inline Tensor asinh(const Tensor& input) { return call(OpId::asinh, {input}); }
inline void asinh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::asinh, {input}); }

/// The inverse hyperbolic cosine of each element.
inline Tensor acosh(const Tensor& input) { return call(OpId::acosh, {input}); }
inline void acosh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::acosh, {input}); }

/// The inverse hyperbolic tangent of each element.
inline Tensor atanh(const Tensor& input) { return call(OpId::atanh, {input}); }
inline void atanh_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::atanh, {input}); }

/// log(1 + exp(x)) of each element x.
inline Tensor softplus(const Tensor& input) { return call(OpId::softplus, {input}); }
inline void softplus_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::softplus, {input}); }

/// Whether each element is NaN.
inline Tensor isnan(const Tensor& input) { return call(OpId::isnan, {input}); }
inline void isnan_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::isnan, {input}); }

/// Whether each element is infinite.
inline Tensor isinf(const Tensor& input) { return call(OpId::isinf, {input}); }
inline void isinf_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::isinf, {input}); }

/// The larger of two elements; NaN where one of them is.
inline Tensor maximum(const Tensor& input, const Operand& other) { return call(OpId::maximum, {input, other}); }
inline void maximum_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::maximum, {input, other});
}

/// The smaller of two elements; NaN where one of them is.
inline Tensor minimum(const Tensor& input, const Operand& other) { return call(OpId::minimum, {input, other}); }
inline void minimum_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::minimum, {input, other});
}

/// The first array to the power of the second, element by element.
inline Tensor pow(const Tensor& input, const Operand& exponent) { return call(OpId::pow, {input, exponent}); }
inline void pow_out(const Tensor& out, const Tensor& input, const Operand& exponent) {
  call_out({&out, 1}, OpId::pow, {input, exponent});
}

/// What is left of a division whose quotient is rounded down: of the second array's sign. Of integers by 0: 0.
inline Tensor remainder(const Tensor& input, const Operand& other) { return call(OpId::remainder, {input, other}); }
inline void remainder_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::remainder, {input, other});
}

/// What is left of a division whose quotient is cut off: of the first array's sign. Of integers by 0: 0.
inline Tensor fmod(const Tensor& input, const Operand& other) { return call(OpId::fmod, {input, other}); }
inline void fmod_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::fmod, {input, other});
}

/// The quotient of two integers, cut off; by 0 it is 0.
inline Tensor trunc_div(const Tensor& input, const Operand& other) { return call(OpId::trunc_div, {input, other}); }
inline void trunc_div_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::trunc_div, {input, other});
}

/// Each element, held between min and max; NaN stays.
inline Tensor clip(const Tensor& input, const ClipOptions& options = {}) {
  return call(OpId::clip, {input}, {options.min, options.max});
}
inline void clip_out(const Tensor& out, const Tensor& input, const ClipOptions& options = {}) {
  call_out({&out, 1}, OpId::clip, {input}, {options.min, options.max});
}

/// Whether two elements are equal; NaN is equal to nothing.
inline Tensor equal(const Tensor& input, const Operand& other) { return call(OpId::equal, {input, other}); }
inline void equal_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::equal, {input, other});
}

/// Whether two elements differ; NaN differs from everything.
inline Tensor not_equal(const Tensor& input, const Operand& other) { return call(OpId::not_equal, {input, other}); }
inline void not_equal_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::not_equal, {input, other});
}

/// Whether the first element is below the second.
inline Tensor less(const Tensor& input, const Operand& other) { return call(OpId::less, {input, other}); }
inline void less_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::less, {input, other});
}

/// Whether the first element is not above the second.
inline Tensor less_equal(const Tensor& input, const Operand& other) { return call(OpId::less_equal, {input, other}); }
inline void less_equal_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::less_equal, {input, other});
}

/// Whether the first element is above the second.
inline Tensor greater(const Tensor& input, const Operand& other) { return call(OpId::greater, {input, other}); }
inline void greater_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::greater, {input, other});
}

/// Whether the first element is not below the second.
inline Tensor greater_equal(const Tensor& input, const Operand& other) {
  return call(OpId::greater_equal, {input, other});
}
inline void greater_equal_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::greater_equal, {input, other});
}

/// Whether both elements are true.
inline Tensor logical_and(const Tensor& input, const Operand& other) { return call(OpId::logical_and, {input, other}); }
inline void logical_and_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::logical_and, {input, other});
}

/// Whether one of two elements is true.
inline Tensor logical_or(const Tensor& input, const Operand& other) { return call(OpId::logical_or, {input, other}); }
inline void logical_or_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::logical_or, {input, other});
}

/// Whether just one of two elements is true.
inline Tensor logical_xor(const Tensor& input, const Operand& other) { return call(OpId::logical_xor, {input, other}); }
inline void logical_xor_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::logical_xor, {input, other});
}

/// Whether each element is false.
inline Tensor logical_not(const Tensor& input) { return call(OpId::logical_not, {input}); }
inline void logical_not_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::logical_not, {input}); }

/// The bits that both elements have.
inline Tensor bitwise_and(const Tensor& input, const Operand& other) { return call(OpId::bitwise_and, {input, other}); }
inline void bitwise_and_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::bitwise_and, {input, other});
}

/// The bits that one of two elements has.
inline Tensor bitwise_or(const Tensor& input, const Operand& other) { return call(OpId::bitwise_or, {input, other}); }
inline void bitwise_or_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::bitwise_or, {input, other});
}

/// The bits that just one of two elements has.
inline Tensor bitwise_xor(const Tensor& input, const Operand& other) { return call(OpId::bitwise_xor, {input, other}); }
inline void bitwise_xor_out(const Tensor& out, const Tensor& input, const Operand& other) {
  call_out({&out, 1}, OpId::bitwise_xor, {input, other});
}

/// The bits that each element does not have.
inline Tensor bitwise_not(const Tensor& input) { return call(OpId::bitwise_not, {input}); }
inline void bitwise_not_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::bitwise_not, {input}); }

/// Each element's bits, moved up by so many places.
inline Tensor shift_left(const Tensor& input, const Operand& bits) { return call(OpId::shift_left, {input, bits}); }
inline void shift_left_out(const Tensor& out, const Tensor& input, const Operand& bits) {
  call_out({&out, 1}, OpId::shift_left, {input, bits});
}

/// Each element's bits, moved down by so many places; a sign stays.
inline Tensor shift_right(const Tensor& input, const Operand& bits) { return call(OpId::shift_right, {input, bits}); }
inline void shift_right_out(const Tensor& out, const Tensor& input, const Operand& bits) {
  call_out({&out, 1}, OpId::shift_right, {input, bits});
}

/// The second array's element where the condition is true, else the third's.
inline Tensor where(const Tensor& condition, const Tensor& input, const Tensor& other) {
  return call(OpId::where, {condition, input, other});
}
inline void where_out(const Tensor& out, const Tensor& condition, const Tensor& input, const Tensor& other) {
  call_out({&out, 1}, OpId::where, {condition, input, other});
}

/// Each element, times negative_slope where it is negative.
inline Tensor leaky_relu(const Tensor& input, const LeakyReluOptions& options = {}) {
  return call(OpId::leaky_relu, {input}, {options.negative_slope});
}
inline void leaky_relu_out(const Tensor& out, const Tensor& input, const LeakyReluOptions& options = {}) {
  call_out({&out, 1}, OpId::leaky_relu, {input}, {options.negative_slope});
}

/// Each element, times its weight where it is negative.
inline Tensor prelu(const Tensor& input, const Tensor& weight) { return call(OpId::prelu, {input, weight}); }
inline void prelu_out(const Tensor& out, const Tensor& input, const Tensor& weight) {
  call_out({&out, 1}, OpId::prelu, {input, weight});
}

/// Each element x, or alpha (exp(x) - 1) where it is negative.
inline Tensor elu(const Tensor& input, const EluOptions& options = {}) {
  return call(OpId::elu, {input}, {options.alpha});
}
inline void elu_out(const Tensor& out, const Tensor& input, const EluOptions& options = {}) {
  call_out({&out, 1}, OpId::elu, {input}, {options.alpha});
}

/// alpha x + beta of each element x, held between 0 and 1.
inline Tensor hard_sigmoid(const Tensor& input, const HardSigmoidOptions& options = {}) {
  return call(OpId::hard_sigmoid, {input}, {options.alpha, options.beta});
}
inline void hard_sigmoid_out(const Tensor& out, const Tensor& input, const HardSigmoidOptions& options = {}) {
  call_out({&out, 1}, OpId::hard_sigmoid, {input}, {options.alpha, options.beta});
}

/// Each element x times (x / 6 + 1 / 2) held between 0 and 1.
inline Tensor hard_swish(const Tensor& input) { return call(OpId::hard_swish, {input}); }
inline void hard_swish_out(const Tensor& out, const Tensor& input) { call_out({&out, 1}, OpId::hard_swish, {input}); }

}  // namespace xpuruntime::ops

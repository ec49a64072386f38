#include "backends/cpu/backend.h"

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/matmul/backward.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/movement/kernels.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/pool/kernels.h"
#include "backends/cpu/reduce/kernels.h"

namespace xpuruntime {
namespace cpu {

namespace {

// Fastest first, reference last. The order is the priority.
constexpr KernelSpec table[] = {
    product_row<supports_product_small, prepare_product_small, workspace_product_small, prefers_product_small>(
        OpId::matmul, "small"),
    product_row<supports_product_skinny, prepare_product_skinny, workspace_product_skinny, prefers_product_skinny>(
        OpId::matmul, "skinny"),
    product_row<supports_product_amx, prepare_product_amx, workspace_product_amx, prefers_product_amx>(OpId::matmul,
                                                                                                       "amx"),
    {OpId::matmul, "int8", supports_product_int8, prepare_product_int8, workspace_product_int8},
    product_row<supports_product_packed, prepare_product_packed, workspace_product_packed, prefers_product_packed>(
        OpId::matmul, "packed"),
    product_row<supports_product_onednn, prepare_product_onednn, workspace_product_onednn, prefers_product_onednn>(
        OpId::matmul, "onednn"),
    product_row<supports_product_openblas, prepare_product_openblas>(OpId::matmul, "openblas"),
    with_backward({OpId::matmul, "reference", supports_aligned, prepare_product_reference}),
    product_row<supports_product_small, prepare_product_small, workspace_product_small, prefers_product_small>(
        OpId::linear, "small"),
    product_row<supports_product_skinny, prepare_product_skinny, workspace_product_skinny, prefers_product_skinny>(
        OpId::linear, "skinny"),
    product_row<supports_product_amx, prepare_product_amx, workspace_product_amx, prefers_product_amx>(OpId::linear,
                                                                                                       "amx"),
    {OpId::linear, "int8", supports_product_int8, prepare_product_int8, workspace_product_int8},
    product_row<supports_product_packed, prepare_product_packed, workspace_product_packed, prefers_product_packed>(
        OpId::linear, "packed"),
    product_row<supports_product_onednn, prepare_product_onednn, workspace_product_onednn, prefers_product_onednn>(
        OpId::linear, "onednn"),
    product_row<supports_product_openblas, prepare_product_openblas>(OpId::linear, "openblas"),
    with_backward({OpId::linear, "reference", supports_aligned, prepare_product_reference, workspace_linear_reference}),
    with_backward({OpId::conv2d, "onednn", supports_conv_onednn, prepare_conv_onednn, workspace_conv_onednn,
                   prefers_conv_onednn}),
    {OpId::conv2d, "depthwise", supports_conv_depthwise, prepare_conv_depthwise, workspace_conv_depthwise},
    {OpId::conv2d, "direct", supports_conv_direct, prepare_conv_direct, workspace_conv_direct},
    {OpId::conv2d, "winograd", supports_conv_winograd, prepare_conv_winograd, workspace_conv_winograd},
    with_backward({OpId::conv2d, "im2col", supports_conv_im2col, prepare_conv_im2col, workspace_conv_im2col}),
    with_backward({OpId::conv2d, "reference", supports_aligned, prepare_conv_reference}),
    with_backward({OpId::conv3d, "onednn", supports_conv_onednn, prepare_conv_onednn, workspace_conv_onednn,
                   prefers_conv_onednn}),
    {OpId::conv3d, "depthwise", supports_conv_depthwise, prepare_conv_depthwise, workspace_conv_depthwise},
    {OpId::conv3d, "direct", supports_conv_direct, prepare_conv_direct, workspace_conv_direct},
    with_backward({OpId::conv3d, "im2col", supports_conv_im2col, prepare_conv_im2col, workspace_conv_im2col}),
    with_backward({OpId::conv3d, "reference", supports_aligned, prepare_conv_reference}),
    {OpId::attention, "single_query", supports_attention_single_query, prepare_attention_single_query,
     workspace_attention_single_query},
    {OpId::attention, "tiled_amx", supports_attention_tiled_amx, prepare_attention_tiled_amx,
     workspace_attention_tiled_amx},
    {OpId::attention, "tiled", supports_attention_tiled, prepare_attention_tiled, workspace_attention_tiled},
    {OpId::attention, "composed", supports_attention_composed, prepare_attention_composed,
     workspace_attention_composed},
    {OpId::attention, "reference", supports_aligned, prepare_attention_reference},
    {OpId::max_pool2d, "simd", supports_pool_simd, prepare_pool_simd, workspace_pool_simd},
    {OpId::max_pool2d, "reference", supports_aligned, prepare_pool_reference},
    {OpId::max_pool3d, "simd", supports_pool_simd, prepare_pool_simd, workspace_pool_simd},
    {OpId::max_pool3d, "reference", supports_aligned, prepare_pool_reference},
    {OpId::avg_pool2d, "simd", supports_pool_simd, prepare_pool_simd, workspace_pool_simd},
    {OpId::avg_pool2d, "reference", supports_aligned, prepare_pool_reference},
    {OpId::avg_pool3d, "simd", supports_pool_simd, prepare_pool_simd, workspace_pool_simd},
    {OpId::avg_pool3d, "reference", supports_aligned, prepare_pool_reference},
    {OpId::batch_norm1d, "simd", supports_batch_norm_simd, prepare_batch_norm_simd, workspace_batch_norm_simd},
    {OpId::batch_norm1d, "reference", supports_aligned, prepare_batch_norm_reference},
    {OpId::batch_norm2d, "simd", supports_batch_norm_simd, prepare_batch_norm_simd, workspace_batch_norm_simd},
    {OpId::batch_norm2d, "reference", supports_aligned, prepare_batch_norm_reference},
    {OpId::batch_norm3d, "simd", supports_batch_norm_simd, prepare_batch_norm_simd, workspace_batch_norm_simd},
    {OpId::batch_norm3d, "reference", supports_aligned, prepare_batch_norm_reference},
    with_backward(
        {OpId::layer_norm, "simd", supports_layer_norm_simd, prepare_layer_norm_simd, workspace_layer_norm_simd}),
    with_backward({OpId::layer_norm, "reference", supports_aligned, prepare_layer_norm_reference,
                   workspace_layer_norm_reference}),
    with_backward(
        {OpId::rms_norm, "simd", supports_layer_norm_simd, prepare_layer_norm_simd, workspace_layer_norm_simd}),
    with_backward(
        {OpId::rms_norm, "reference", supports_aligned, prepare_layer_norm_reference, workspace_layer_norm_reference}),
    {OpId::normalize, "simd", supports_normalize_simd, prepare_normalize_simd},
    {OpId::normalize, "reference", supports_aligned, prepare_normalize_reference},
    with_backward({OpId::softmax, "simd", supports_softmax_simd, prepare_softmax_simd, workspace_softmax_simd}),
    with_backward({OpId::softmax, "reference", supports_aligned, prepare_softmax_reference}),
    with_backward({OpId::log_softmax, "simd", supports_softmax_simd, prepare_softmax_simd, workspace_softmax_simd}),
    with_backward({OpId::log_softmax, "reference", supports_aligned, prepare_softmax_reference}),
    {OpId::dropout, "simd", supports_dropout_simd, prepare_dropout_simd},
    {OpId::dropout, "reference", supports_aligned, prepare_dropout_reference},
    with_backward({OpId::relu, "simd", supports_unary_simd, prepare_unary_simd}),
    with_backward({OpId::relu, "reference", supports_aligned, prepare_unary_reference}),
    with_backward({OpId::gelu, "simd", supports_unary_simd, prepare_unary_simd}),
    with_backward({OpId::gelu, "reference", supports_aligned, prepare_unary_reference}),
    with_backward({OpId::silu, "simd", supports_unary_simd, prepare_unary_simd}),
    with_backward({OpId::silu, "reference", supports_aligned, prepare_unary_reference}),
    with_backward({OpId::sigmoid, "simd", supports_unary_simd, prepare_unary_simd}),
    with_backward({OpId::sigmoid, "reference", supports_aligned, prepare_unary_reference}),
    with_backward({OpId::tanh, "simd", supports_unary_simd, prepare_unary_simd}),
    with_backward({OpId::tanh, "reference", supports_aligned, prepare_unary_reference}),
    {OpId::add, "simd", supports_binary_simd, prepare_binary_simd},
    {OpId::add, "reference", supports_aligned, prepare_binary_reference},
    {OpId::sub, "simd", supports_binary_simd, prepare_binary_simd},
    {OpId::sub, "reference", supports_aligned, prepare_binary_reference},
    {OpId::mul, "simd", supports_binary_simd, prepare_binary_simd},
    {OpId::mul, "reference", supports_aligned, prepare_binary_reference},
    {OpId::div, "simd", supports_binary_simd, prepare_binary_simd},
    {OpId::div, "reference", supports_aligned, prepare_binary_reference},
    {OpId::log, "simd", supports_unary_simd, prepare_unary_simd},
    {OpId::log, "reference", supports_aligned, prepare_unary_reference},
    {OpId::exp, "simd", supports_unary_simd, prepare_unary_simd},
    {OpId::exp, "reference", supports_aligned, prepare_unary_reference},
    {OpId::sqrt, "simd", supports_unary_simd, prepare_unary_simd},
    {OpId::sqrt, "reference", supports_aligned, prepare_unary_reference},
    {OpId::reduce_sum, "simd", supports_reduce_simd, prepare_reduce_simd, workspace_reduce_simd},
    {OpId::reduce_sum, "reference", supports_aligned, prepare_reduce_reference},
    {OpId::reduce_mean, "simd", supports_reduce_simd, prepare_reduce_simd, workspace_reduce_simd},
    {OpId::reduce_mean, "reference", supports_aligned, prepare_reduce_reference},
    {OpId::reduce_max, "simd", supports_reduce_simd, prepare_reduce_simd, workspace_reduce_simd},
    {OpId::reduce_max, "reference", supports_aligned, prepare_reduce_reference},
    {OpId::reduce_min, "simd", supports_reduce_simd, prepare_reduce_simd, workspace_reduce_simd},
    {OpId::reduce_min, "reference", supports_aligned, prepare_reduce_reference},
    {OpId::embedding, "rows", supports_embedding_rows, prepare_embedding_rows},
    {OpId::embedding, "reference", supports_aligned, prepare_embedding_reference},
    with_backward(
        {OpId::cross_entropy, "simd", supports_class_loss_simd, prepare_class_loss_simd, workspace_class_loss_simd}),
    with_backward({OpId::cross_entropy, "reference", supports_aligned, prepare_class_loss_reference}),
    with_backward(
        {OpId::nll_loss, "simd", supports_class_loss_simd, prepare_class_loss_simd, workspace_class_loss_simd}),
    with_backward({OpId::nll_loss, "reference", supports_aligned, prepare_class_loss_reference}),
    {OpId::kl_div, "simd", supports_pointwise_loss_simd, prepare_pointwise_loss_simd, workspace_pointwise_loss_simd},
    {OpId::kl_div, "reference", supports_aligned, prepare_pointwise_loss_reference},
    {OpId::poisson_nll_loss, "simd", supports_pointwise_loss_simd, prepare_pointwise_loss_simd,
     workspace_pointwise_loss_simd},
    {OpId::poisson_nll_loss, "reference", supports_aligned, prepare_pointwise_loss_reference},
    {OpId::cast, "simd", supports_cast_simd, prepare_cast_simd},
    {OpId::cast, "reference", supports_aligned, prepare_unary_reference},
    {OpId::copy, "blocked", supports_copy_bytes, prepare_copy_bytes},
    {OpId::copy, "reference", supports_aligned, prepare_copy_reference},
    {OpId::transpose, "blocked", supports_copy_bytes, prepare_copy_bytes},
    {OpId::transpose, "reference", supports_aligned, prepare_copy_reference},
    {OpId::concat, "rows", supports_copy_bytes, prepare_concat_rows},
    {OpId::concat, "reference", supports_aligned, prepare_concat_reference},
    {OpId::slice, "rows", supports_copy_bytes, prepare_copy_bytes},
    {OpId::slice, "reference", supports_aligned, prepare_copy_reference},
    {OpId::unscale, "simd", supports_unscale_simd, prepare_unscale_simd},
    {OpId::unscale, "reference", supports_aligned, prepare_unscale_reference},
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return table; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = make_cpu_driver();
};

}  // namespace
}  // namespace cpu

std::shared_ptr<Backend> make_cpu_backend() {
  cpu::check_thread_environment();
  return std::make_shared<cpu::CpuBackend>();
}

}  // namespace xpuruntime

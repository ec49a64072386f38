#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <string>

// What is called of oneDNN; what is missing here does not link.
#define XRT_ONEDNN_FUNCTIONS(X)                          \
  X(dnnl_cpu_isa2str)                                    \
  X(dnnl_cpu_isa_hints2str)                              \
  X(dnnl_dilated_convolution_backward_data_desc_init)    \
  X(dnnl_dilated_convolution_backward_weights_desc_init) \
  X(dnnl_dilated_convolution_forward_desc_init)          \
  X(dnnl_engine_create)                                  \
  X(dnnl_engine_destroy)                                 \
  X(dnnl_get_cpu_isa_hints)                              \
  X(dnnl_get_effective_cpu_isa)                          \
  X(dnnl_matmul_desc_init)                               \
  X(dnnl_memory_create)                                  \
  X(dnnl_memory_desc_equal)                              \
  X(dnnl_memory_desc_get_size)                           \
  X(dnnl_memory_desc_init_by_strides)                    \
  X(dnnl_memory_desc_init_by_tag)                        \
  X(dnnl_memory_destroy)                                 \
  X(dnnl_memory_set_data_handle)                         \
  X(dnnl_post_ops_append_eltwise)                        \
  X(dnnl_post_ops_append_sum)                            \
  X(dnnl_post_ops_append_sum_v2)                         \
  X(dnnl_post_ops_create)                                \
  X(dnnl_post_ops_destroy)                               \
  X(dnnl_primitive_attr_create)                          \
  X(dnnl_primitive_attr_destroy)                         \
  X(dnnl_primitive_attr_set_post_ops)                    \
  X(dnnl_primitive_attr_set_scratchpad_mode)             \
  X(dnnl_primitive_create)                               \
  X(dnnl_primitive_desc_destroy)                         \
  X(dnnl_primitive_desc_iterator_create)                 \
  X(dnnl_primitive_desc_iterator_destroy)                \
  X(dnnl_primitive_desc_iterator_fetch)                  \
  X(dnnl_primitive_desc_query_md)                        \
  X(dnnl_primitive_destroy)                              \
  X(dnnl_primitive_execute)                              \
  X(dnnl_reorder_primitive_desc_create)                  \
  X(dnnl_stream_create)                                  \
  X(dnnl_stream_destroy)                                 \
  X(dnnl_version)

// Pointers into our own copy of the library, null until it is open. The C++ functions of dnnl.hpp, which stand in this
// namespace, find them before the global functions of the same names.
namespace dnnl {
#define XRT_POINTER(name) extern decltype(&::name) name;
XRT_ONEDNN_FUNCTIONS(XRT_POINTER)
#undef XRT_POINTER
}  // namespace dnnl

#include <oneapi/dnnl/dnnl.hpp>

namespace xpuruntime::cpu {

/// Opens oneDNN at the first call; empty if it is open, else why it is not.
const std::string& why_no_onednn();

}  // namespace xpuruntime::cpu

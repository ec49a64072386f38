#pragma once

#include <cstdint>

#include "backends/cpu/base/activation.h"
#include "backends/cpu/base/elements.h"
#include "core/matmul_shape.h"
#include "xpuruntime/registry/kernel.h"

// matmul and linear are one thing to our kernels: a product of two matrices and what is done to each sum.

namespace xpuruntime::cpu {

/// out[m,n] = activation(sum over k of a[m,k] * b[k,n] + bias[n]), for each batch index.
struct Product {
  MatmulShape shape = {};  // batch dims that only a and out walk have become rows
  DataType a = DataType::float32;
  DataType b = DataType::float32;
  DataType out = DataType::float32;
  bool has_bias = false;
  DataType bias = DataType::float32;
  std::int64_t bias_stride = 0;
  Activation activation = Activation::none;
  int threads = 1;

  double multiplications() const {
    return static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) *
           static_cast<double>(shape.batch_count);
  }
};

constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// For problems of matmul and linear.
Product product_of(const Problem& problem);

/// Threads worth using for so many multiplications at so many a microsecond on each thread; small work gets one.
int useful_threads(int threads, double multiplications, double per_microsecond);

}  // namespace xpuruntime::cpu

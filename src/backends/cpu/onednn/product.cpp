#include "backends/cpu/matmul/product.h"

#include <map>
#include <string>

#include "backends/cpu/matmul/finish.h"
#include "backends/cpu/matmul/split.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/program.h"
#include "backends/cpu/onednn/types.h"

namespace xpuruntime::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Base = Place::Base;

bool is_integer(const Product& product) { return product.a == DataType::int8 || product.a == DataType::uint8; }

/// How fast one thread multiplies, roughly: what small work is told from large by.
double multiplications_per_us(const Product& product) {
  if (is_integer(product)) return 4e5;
  return product.a == DataType::bfloat16 ? 2e5 : 5e4;
}

// oneDNN's relu makes zeros of NaN, so that one is always ours. The others are ours where the result is f32: 16-bit
// results must not be rounded before.
bool activation_is_ours(const Product& product) {
  return product.activation == Activation::relu || product.out == DataType::float32;
}

/// One matrix of the product as oneDNN is told about it.
struct Operand {
  MatrixLayout layout = {};
  MatrixStrides strides = {};
  DataType dtype = DataType::float32;

  Desc desc(std::int64_t batches, std::int64_t rows, std::int64_t columns) const {
    if (batches == 1) return Desc({rows, columns}, onednn_type(dtype), {layout.row(), layout.column()});
    const std::int64_t step = strides.batch[0];
    return Desc({step == 0 ? 1 : batches, rows, columns}, onednn_type(dtype),
                {step == 0 ? rows * columns : step, layout.row(), layout.column()});
  }
};

/// Writes the program of one product.
class ProductProgram {
 public:
  /// `converts_b`: to the layout that oneDNN likes best, which pays where it is done once for many runs.
  ProductProgram(const Product& product, bool fixed_split, bool converts_b = false)
      : product_(product),
        converts_b_(converts_b),
        a_{*layout_of(shape().m, shape().k, shape().a), shape().a, product.a},
        b_{*layout_of(shape().k, shape().n, shape().b), shape().b, product.b},
        c_{*layout_of(shape().m, shape().n, shape().c), shape().c, product.out},
        // Integers are fast only where the output is dense, which a cut through its columns is not.
        slices_(split_product(shape(), product.threads, fixed_split, multiplications_per_us(product),
                              is_integer(product) ? SplitSide::rows : SplitSide::longer)),
        // Sums of integers are exact, in whatever order.
        by_threads_(!is_integer(product) && follows_threads(shape(), fixed_split, multiplications_per_us(product))),
        builder_(product.threads) {}

  Program write() {
    for (const Slice& slice : slices_) add_task(slice);
    Program& program = builder_.program();
    program.token = "slices=" + std::to_string(slices_.size()) + (by_threads_ ? split_by_threads : "");
    if (product_.activation != Activation::none && activation_is_ours(product_)) {
      program.finish = [product = product_, c = c_, slices = slices_](const RunArguments& arguments,
                                                                      std::int64_t task) {
        finish_slice(product, c, slices[static_cast<std::size_t>(task)], arguments);
      };
    }
    return std::move(program);
  }

 private:
  const MatmulShape& shape() const { return product_.shape; }

  static void finish_slice(const Product& product, const Operand& c, const Slice& slice,
                           const RunArguments& arguments) {
    for (std::int64_t i = 0; i < slice.batches; ++i) {
      const std::int64_t offset = batch_offset(product.shape, product.shape.c, slice.batch + i) +
                                  slice.row * c.layout.row() + slice.column * c.layout.column();
      const auto finish = [&](auto* out) {
        finish_rows(out + offset, c.layout.row(), slice.rows, slice.columns, nullptr, product.activation);
      };
      if (product.out == DataType::float32) {
        finish(arguments.outputs[0]->as<float>());
      } else {
        finish(arguments.outputs[0]->as<Bfloat>());
      }
    }
  }

  void add_task(const Slice& slice) {
    builder_.begin_task();
    // One call takes all batches where one stride leads from each to the next.
    const std::int64_t batches = shape().batch_dims > 1 ? 1 : slice.batches;
    const std::size_t piece = piece_for(batches, slice.rows, slice.columns);
    for (std::int64_t i = 0; i < slice.batches; i += batches) {
      std::vector<Place> given = places(slice, slice.batch + i);
      given[1] = builder_.converted(conversions_[piece], given[1]);
      builder_.step(piece, std::move(given));
    }
  }

  std::vector<Place> places(const Slice& slice, std::int64_t batch) const {
    const auto bytes = [](std::int64_t elements, DataType dtype) {
      return elements * static_cast<std::int64_t>(size_of(dtype));
    };
    const std::int64_t a = batch_offset(shape(), shape().a, batch) + slice.row * a_.layout.row();
    const std::int64_t b = batch_offset(shape(), shape().b, batch) + slice.column * b_.layout.column();
    const std::int64_t c = batch_offset(shape(), shape().c, batch) + slice.row * c_.layout.row() + slice.column;
    std::vector<Place> places = {{Base::input, 0, bytes(a, product_.a)},
                                 {Base::input, 1, bytes(b, product_.b)},
                                 {Base::output, 0, bytes(c, product_.out)}};
    if (product_.has_bias) places.push_back({Base::input, 2, bytes(slice.column, product_.bias)});
    return places;
  }

  // Slices have few distinct sizes: each is made once.
  std::size_t piece_for(std::int64_t batches, std::int64_t rows, std::int64_t columns) {
    const Size size = {batches, rows, columns};
    for (const auto& [piece, made] : sizes_) {
      if (made == size) return piece;
    }
    const Desc a = a_.desc(batches, rows, shape().k), b = b_.desc(batches, shape().k, columns),
               c = c_.desc(batches, rows, columns);
    const Desc free_b = converts_b_ && batches == 1 ? Desc(b.dims(), b.data_type(), dnnl::memory::format_tag::any) : b;
    Desc bias;
    if (product_.has_bias) {
      bias = batches == 1 ? Desc({1, columns}, onednn_type(product_.bias), {columns, 1})
                          : Desc({1, 1, columns}, onednn_type(product_.bias), {columns, columns, 1});
    }
    const dnnl::matmul::desc desc =
        product_.has_bias ? dnnl::matmul::desc(a, free_b, bias, c) : dnnl::matmul::desc(a, free_b, c);
    const dnnl::matmul::primitive_desc description(desc, attributes(), onednn_engine());
    const Desc taken = description.weights_desc();
    std::vector<std::pair<int, Desc>> arguments = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, taken}, {DNNL_ARG_DST, c}};
    if (product_.has_bias) arguments.emplace_back(DNNL_ARG_BIAS, bias);
    const std::size_t piece = builder_.piece(description, std::move(arguments));
    conversions_[piece] = builder_.conversion(b, taken, taken);
    sizes_.emplace_back(piece, size);
    return piece;
  }

  dnnl::primitive_attr attributes() const {
    dnnl::primitive_attr attributes = onednn_attributes();
    if (product_.activation == Activation::none || activation_is_ours(product_)) return attributes;
    dnnl::post_ops after;
    after.append_eltwise(
        1, product_.activation == Activation::gelu ? dnnl::algorithm::eltwise_gelu_erf : dnnl::algorithm::eltwise_swish,
        1, 0);
    attributes.set_post_ops(after);
    return attributes;
  }

  using Size = std::array<std::int64_t, 3>;
  Product product_;
  bool converts_b_;
  Operand a_, b_, c_;
  std::vector<Slice> slices_;
  bool by_threads_;
  std::vector<std::pair<std::size_t, Size>> sizes_;  // by piece
  std::map<std::size_t, Conversion> conversions_;    // of b, by piece
  ProgramBuilder builder_;
};

Program make_product(const Problem& problem) {
  return ProductProgram(product_of(problem), problem.limits.deterministic).write();
}

/// With the weight's rows as oneDNN likes them.
Program make_product_of_constant(const Problem& problem) {
  return ProductProgram(product_of(problem), problem.limits.deterministic, true).write();
}

Verdict supports_types(const Product& product) {
  const auto name = [](DataType dtype) { return std::string(to_string(dtype)); };
  const std::string given = name(product.a) + " times " + name(product.b) + " to " + name(product.out);
  bool taken = false;
  if (is_integer(product)) {
    taken = product.b == DataType::int8 && product.out == DataType::int32;
    if (product.has_bias || product.activation != Activation::none) {
      return Verdict::no("it adds no bias and no activation to integers");
    }
  } else {
    const bool f32_out = product.out == DataType::float32;
    taken = product.a == product.b && (product.a == DataType::float32 || product.a == DataType::bfloat16) &&
            (f32_out || product.out == product.a);
  }
  if (!taken) return Verdict::no("oneDNN does not multiply " + given);
  if (breaks_onednn(product.a, product.shape.k)) {
    return Verdict::no("oneDNN 2 may break down on sums of " + std::to_string(product.shape.k) + " products of " +
                       name(product.a));
  }
  if (product.has_bias && product.bias != product.a && product.bias != DataType::float32) {
    return Verdict::no("it adds no bias of " + name(product.bias) + " here");
  }
  return Verdict::yes();
}

}  // namespace

Verdict supports_product_onednn(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict verdict = supports_onednn(problem, profile); !verdict.supported) return verdict;
  const Product product = product_of(problem);
  if (const Verdict verdict = supports_types(product); !verdict.supported) return verdict;
  return supports_library_layouts(problem, product.shape);
}

std::uint64_t workspace_product_onednn(const Problem& problem, const DeviceProfile& profile) {
  return program_workspace(problem, profile, make_product);
}

std::unique_ptr<const Plan> prepare_product_onednn(const Problem& problem, const PrepareContext&) {
  return prepare_program(problem, make_product, make_product_of_constant);
}

}  // namespace xpuruntime::cpu

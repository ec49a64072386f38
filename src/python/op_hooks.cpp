#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "core/elements.h"
#include "python/arguments.h"
#include "python/op_call.h"
#include "python/signatures.h"
#include "runtime/constant.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

std::vector<std::int64_t> integers(PyObject* value, const OpCall& call, const char* name) {
  return integers_from(value, call.function(), name);
}

/// Ops know their optional inputs by their place: those that are missing before one that is there become constants.
/// Returns which are constants. Only the first input is required.
std::vector<bool> fill_gaps(OpCall& call, const Dims& shape) {
  const auto optional = op_info(call.op()).inputs.subspan(1);
  std::vector<bool> made;
  for (const InputSpec& spec : optional) made.push_back(call.optional_input(spec.name) == nullptr);
  while (!made.empty() && made.back()) made.pop_back();
  if (std::find(made.begin(), made.end(), true) == made.end()) return made;
  const std::size_t there = call.input_count();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Tensor& input = call.input(0);
    if (!is_floating(input.dtype()))
      fail(ErrorCode::invalid_argument, "ops", "the input is not floating; cast it to f32");
    const DataType dtype = size_of(input.dtype()) == 1 ? DataType::float32 : input.dtype();
    if (made[i]) call.mark_constant(i + 1);
    const Tensor tensor =
        made[i] ? constant(dtype, shape, optional[i].fill, input.device()) : *call.optional_input(optional[i].name);
    if (i + 1 < there) {
      call.set_input(i + 1, tensor);
    } else {
      call.add_input(tensor);
    }
  }
  return made;
}

std::size_t normalized_dims(OpCall& call) {
  const std::vector<std::int64_t> shape = integers(call.value("normalized_shape"), call, "normalized_shape");
  const Dims& own = call.input(0).shape();
  const bool fits = !shape.empty() && shape.size() <= own.size() &&
                    std::equal(shape.rbegin(), shape.rend(), std::make_reverse_iterator(own.end()));
  if (!fits) {
    call.where("normalized_shape")
        .fail(ErrorCode::invalid_argument, to_string(Dims(shape)) + " is not the end of the input's shape " +
                                               to_string(own) + "; pass its last extents");
  }
  return shape.size();
}

std::int64_t axis(OpCall& call, const char* name) {
  const std::int64_t dim = integer_from(call.value(name), call.function(), name);
  const auto rank = static_cast<std::int64_t>(call.input(0).shape().size());
  if (dim < -rank || dim >= rank) {
    call.where(name).fail(ErrorCode::invalid_argument, std::to_string(dim) + " is not a dim of " +
                                                           to_string(call.input(0).shape()) + "; pass one from " +
                                                           std::to_string(-rank) + " to " + std::to_string(rank - 1));
  }
  return dim < 0 ? dim + rank : dim;
}

bool is_integer_array(OpCall& call, const char* parameter) {
  PyObject* value = call.value(parameter);
  if (PyFloat_Check(value) || PyLong_Check(value)) return false;
  BoundArray array;
  array.bind(value, Access::read, call.where(parameter));
  return !is_floating(array.tensor().dtype());
}

/// To the op a 0 means that none was given.
void check_at_least_one(OpCall& call, const char* name) {
  PyObject* value = call.value(name);
  if (value == nullptr) return;
  for (const std::int64_t number : integers(value, call, name)) {
    if (number >= 1) continue;
    call.where(name).fail(ErrorCode::invalid_argument, std::to_string(number) + " is too small; pass 1 or more");
  }
}

Tensor with_dim(const Tensor& tensor, std::size_t at) {
  std::vector<std::int64_t> extents(tensor.shape().begin(), tensor.shape().end());
  std::vector<std::int64_t> strides(tensor.strides().begin(), tensor.strides().end());
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(at), 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(at), 1);
  return Tensor(tensor.data(), make_spec(tensor.dtype(), Dims(extents), Dims(strides)), tensor.device(),
                tensor.byte_offset(), tensor.owner());
}

/// Padding that keeps the extent, which is what "same" means: only with stride 1 and where it is even on both sides.
std::vector<std::int64_t> same_padding(OpCall& call) {
  const std::size_t dims = call.op() == OpId::conv2d ? 2 : 3;
  const auto dilation = call.attributes().list("dilation");
  const auto stride = call.attributes().list("stride");
  if (std::any_of(stride.begin(), stride.end(), [](std::int64_t s) { return s != 1; })) {
    call.where("padding").fail(ErrorCode::invalid_argument,
                               "'same' goes with a stride of 1 only; give the padding in numbers");
  }
  std::vector<std::int64_t> padding;
  for (std::size_t i = 0; i < dims; ++i) {
    const Dims& kernel = call.input(1).shape();
    const std::int64_t all = kernel.size() == dims + 2 ? dilation[i] * (kernel[i + 2] - 1) : 0;
    if (all % 2 != 0) {
      call.where("padding").fail(
          ErrorCode::not_supported,
          "'same' would need more padding on one side than on the other, which is not offered; pad the input first");
    }
    padding.push_back(all / 2);
  }
  return padding;
}

// A forked child draws numbers of its own.
std::int64_t fresh_seed() {
  static pid_t process = 0;
  static std::mt19937_64 generator;
  if (process != getpid()) {
    generator.seed(std::random_device{}());
    process = getpid();
  }
  return static_cast<std::int64_t>(generator());
}

// A sum with a factor is a product and a sum: both are on the record.
void alpha_before(OpCall& call) {
  PyObject* given = call.value("alpha");
  if (given == nullptr || (PyLong_Check(given) && PyLong_AsLong(given) == 1)) return;
  PyErr_Clear();
  const double number = real_from(given, call.function(), "alpha");
  nb::object alpha = PyIndex_Check(given) != 0 ? nb::steal(PyNumber_Index(given)) : nb::object();
  PyErr_Clear();
  const bool whole = alpha.is_valid();
  if (!whole) alpha = nb::float_(number);
  PyObject* other = call.value("other");
  if (!whole && is_integer_array(call, "input") && (PyLong_Check(other) || is_integer_array(call, "other"))) {
    call.where("alpha").fail(ErrorCode::invalid_argument,
                             "a fraction beside integers would change their dtype; pass an integer, or cast them");
  }
  if (PyFloat_Check(other) || PyLong_Check(other)) {
    const double product = real_from(other, call.function(), "other") * number;
    const bool integers = whole && PyLong_Check(other) != 0;
    call.replace("other",
                 integers ? nb::steal(PyNumber_Multiply(other, alpha.ptr())) : nb::object(nb::float_(product)));
    if (call.value("other") == nullptr) throw nb::python_error();
  } else {
    const nb::object ops = nb::module_::import_("xpuruntime._core").attr("ops");
    call.replace("other", ops.attr("mul")(nb::handle(other), alpha));
  }
}

void attention_before(OpCall& call) {
  PyObject* scale = call.value("scale");
  if (scale != nullptr && scale != Py_None && real_from(scale, call.function(), "scale") == 0) {
    call.where("scale").fail(ErrorCode::not_supported,
                             "0 stands for one over the root of the head size; pass None for that, or another number");
  }
  PyObject* probability = call.value("dropout_p");
  if (probability != nullptr && real_from(probability, call.function(), "dropout_p") != 0) {
    call.where("dropout_p").fail(ErrorCode::not_supported, "dropout inside attention is not offered; pass 0");
  }
}

void batch_norm_before(OpCall& call) {
  BoundArray input;
  input.bind(call.value("input"), Access::read, call.where("input"));
  const std::size_t rank = input.tensor().shape().size();
  call.set_op(rank < 4 ? OpId::batch_norm1d : rank == 4 ? OpId::batch_norm2d : OpId::batch_norm3d);
}

// As in PyTorch, training brings the running statistics up to date in place.
void batch_norm_after(OpCall& call) {
  if (call.input(0).shape().size() < 2) return;  // the op says what is wrong
  const bool training = call.attributes().boolean("training");
  const bool statistics =
      call.optional_input("running_mean") != nullptr || call.optional_input("running_var") != nullptr;
  // A statistic that is missing beside the other would be made up in silence.
  if ((call.optional_input("running_mean") == nullptr) != (call.optional_input("running_var") == nullptr)) {
    call.where("running_mean")
        .fail(ErrorCode::invalid_argument, "it and running_var go together; give both, or neither with training");
  }
  if (!training && !statistics) {
    call.where("running_mean")
        .fail(ErrorCode::invalid_argument,
              "there are no statistics to use; give running_mean and running_var, or set training");
  }
  const std::int64_t channels = call.input(0).shape()[1];
  if (training && channels != 0 && element_count(call.input(0).spec()) == channels) {
    call.where("input").fail(ErrorCode::invalid_argument,
                             "it has one value a channel, which has no spread to learn from; pass a larger batch");
  }
  const std::vector<bool> made = fill_gaps(call, Dims{channels});
  if (!training || made.size() < 2) return;
  call.add_hidden_output(made[0] ? call.input(1) : call.written_input("running_mean"));
  call.add_hidden_output(made[1] ? call.input(2) : call.written_input("running_var"));
}

void conv_after(OpCall& call) {
  PyObject* padding = call.value("padding");
  if (padding == nullptr) return;
  if (!PyUnicode_Check(padding)) {
    call.attributes().set_list("padding", integers(padding, call, "padding"));
    return;
  }
  const std::string word = text_from(padding, call.function(), "padding");
  if (word == "same") {
    call.attributes().set_list("padding", same_padding(call));
  } else if (word != "valid") {
    call.where("padding").fail(ErrorCode::invalid_argument,
                               "'" + word + "' is not a padding; pass numbers, 'same' or 'valid'");
  }
}

// The seed is an input, so that a new one needs no new decision.
void dropout_after(OpCall& call) {
  PyObject* given = call.value("seed");
  const std::int64_t seed = given == nullptr ? fresh_seed() : integer_from(given, call.function(), "seed");
  Tensor seed_and_offset = Tensor::empty(DataType::int64, {2});
  seed_and_offset.as<std::int64_t>()[0] = seed;
  seed_and_offset.as<std::int64_t>()[1] = 0;
  call.add_copied_input(seed_and_offset);
}

// PyTorch's default of an eps that is None follows the dtype. Some ops normalize the last dim alone.
void normalized_shape_after(OpCall& call) {
  if (call.value("eps") == nullptr && call.has_default("eps", "None")) {
    call.attributes().set_real("eps", epsilon_of(call.input(0).dtype()));
  }
  const std::size_t count = normalized_dims(call);
  const auto attributes = op_info(call.op()).attributes;
  const bool any_rank = std::any_of(attributes.begin(), attributes.end(),
                                    [](const AttributeSpec& spec) { return spec.name == "normalized_rank"; });
  if (any_rank) {
    call.attributes().set("normalized_rank", static_cast<std::int64_t>(count));
  } else if (count != 1) {
    call.where("normalized_shape")
        .fail(ErrorCode::not_supported, "only the last dim is normalized; reshape the input so that it is one");
  }
  const Dims& shape = call.input(0).shape();
  fill_gaps(call, Dims(std::span(shape.end() - count, count)));
}

void pool_after(OpCall& call) {
  check_at_least_one(call, "kernel_size");
  check_at_least_one(call, "stride");
}

// A vector stands for a row on the left and a column on the right, and the result lacks that dim. What is added to the
// result has its dims: then the op itself takes vectors.
void matmul_after(OpCall& call) {
  if (call.input_count() > 2) return;
  const bool left = call.input(0).shape().size() == 1, right = call.input(1).shape().size() == 1;
  if (!left && !right) return;
  if (right) {
    call.set_input(1, with_dim(call.input(1), 1));
    call.drop_dim_from_end(1);
  }
  if (left) {
    call.set_input(0, with_dim(call.input(0), 0));
    call.drop_dim_from_end(right ? 1 : 2);
  }
}

void permute_after(OpCall& call) {
  PyObject* dims = call.value("dims");
  if (dims != nullptr) call.attributes().set_list("dims", integers(dims, call, "dims"));
}

void transpose_after(OpCall& call) {
  const std::int64_t first = axis(call, "dim0"), second = axis(call, "dim1");
  std::vector<std::int64_t> dims(call.input(0).shape().size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<std::int64_t>(i);
  std::swap(dims[static_cast<std::size_t>(first)], dims[static_cast<std::size_t>(second)]);
  call.attributes().set_list("dims", dims);
}

struct Hook {
  std::string_view of = {};  // a function, or a parameter with a reader of its own
  void (*before)(OpCall&) = nullptr;
  void (*after)(OpCall&) = nullptr;
};

constexpr Hook hooks[] = {{"matmul", nullptr, matmul_after},
                          {"padding", nullptr, conv_after},
                          {"dropout_p", attention_before},
                          {"max_pool2d", nullptr, pool_after},
                          {"max_pool3d", nullptr, pool_after},
                          {"avg_pool2d", nullptr, pool_after},
                          {"avg_pool3d", nullptr, pool_after},
                          {"batch_norm", batch_norm_before, batch_norm_after},  // for any rank
                          {"batch_norm1d", nullptr, batch_norm_after},
                          {"batch_norm2d", nullptr, batch_norm_after},
                          {"batch_norm3d", nullptr, batch_norm_after},
                          {"normalized_shape", nullptr, normalized_shape_after},
                          {"seed", nullptr, dropout_after},
                          {"alpha", alpha_before},
                          {"dims", nullptr, permute_after},
                          {"dim0", nullptr, transpose_after}};

}  // namespace

void add_hooks(Signature& signature) {
  for (const Hook& hook : hooks) {
    const bool reads = std::any_of(signature.parameters.begin(), signature.parameters.end(), [&](const Parameter& one) {
      return one.kind == ParameterKind::special && one.name == hook.of;
    });
    if (!reads && hook.of != signature.name) continue;
    signature.before = hook.before;
    signature.after = hook.after;
    return;
  }
}

}  // namespace xpuruntime::python

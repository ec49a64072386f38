#pragma once

#include "graph/native/builder.h"

namespace xpuruntime::native {

/// A builder with arithmetic: what an operator without an op of its own is made of.
struct Calls {
  Builder& builder;

  int add(int a, int b) const { return builder.call(OpId::add, {a, b}); }
  int sub(int a, int b) const { return builder.call(OpId::sub, {a, b}); }
  int mul(int a, int b) const { return builder.call(OpId::mul, {a, b}); }
  int div(int a, int b) const { return builder.call(OpId::div, {a, b}); }
  int one(OpId op, int a) const { return builder.call(op, {a}); }
  /// A number in the dtype of another slot.
  int number(double value, int like) const { return builder.number(builder.spec(like).dtype, value); }
  // On devices that have no kernel of the op, in other ways that are as exact.
  int negative(int a) const { return has(OpId::neg) ? one(OpId::neg, a) : mul(a, number(-1, a)); }
  int absolute(int a) const {
    return has(OpId::abs) ? one(OpId::abs, a) : add(one(OpId::relu, a), one(OpId::relu, negative(a)));
  }
  /// The larger (maximum) or the smaller of two, element by element.
  int extreme(OpId op, int a, int b) const;
  bool has(OpId op) const { return builder.has_kernel(op); }
  int cast(int a, DataType dtype) const {
    if (builder.spec(a).dtype == dtype) return a;
    Attributes attributes(OpId::cast);
    attributes.set("dtype", static_cast<std::int64_t>(dtype));
    return builder.call(OpId::cast, {a}, &attributes);
  }
  int reduce(OpId op, int a, std::span<const std::int64_t> dims, bool keep) const {
    Attributes attributes(op);
    if (!dims.empty()) attributes.set_list("dim", dims);
    attributes.set("keepdim", keep);
    return builder.call(op, {a}, &attributes);
  }
  int permuted(int a, std::span<const std::int64_t> dims) const {
    bool moves = false;
    for (std::size_t d = 0; d < dims.size(); ++d) moves = moves || dims[d] != static_cast<std::int64_t>(d);
    if (!moves) return a;
    Attributes attributes(OpId::transpose);
    attributes.set_list("dims", dims);
    return builder.call(OpId::transpose, {a}, &attributes);
  }
  int concat(std::span<const int> parts, std::int64_t dim) const {
    if (parts.size() == 1) return parts[0];
    Attributes attributes(OpId::concat);
    attributes.set("dim", dim);
    return builder.call(OpId::concat, parts, &attributes);
  }
  /// Any number of parts: more than one call takes are put together in turns.
  int joined(std::span<const int> parts, std::int64_t dim) const;
  int slice(int a, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1) const {
    Attributes attributes(OpId::slice);
    attributes.set("dim", dim).set("start", start).set("end", end).set("step", step);
    return builder.call(OpId::slice, {a}, &attributes);
  }
  /// f16 and bf16 as f32: sums of squares and the like would overflow.
  int widened(int a) const { return size_of(builder.spec(a).dtype) == 2 ? cast(a, DataType::float32) : a; }
  /// So much of one value before and after a dim.
  int padded(int a, std::size_t dim, std::int64_t before, std::int64_t after, double value) const;
  /// What indices name on an axis; their dims take its place. On devices without `gather` they count from the front.
  int gathered(int a, std::size_t axis, int index) const;
  /// The elements of dims in the opposite order.
  int flipped(int a, std::size_t dim) const;
};

}  // namespace xpuruntime::native

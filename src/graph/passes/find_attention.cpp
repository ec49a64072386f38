#include <limits>

#include "core/elements.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

// softmax(scale q k^T + mask) v as exporters write it, and the transposes around it, which become strides. A row that
// is masked wholly by -infinity is NaN in this formula and 0 in the op, so such rows of the mask become NaN.

namespace xpuruntime::native {
namespace {

struct AttentionParts {
  int q = -1, keys = -1, v = -1, mask = -1;  // keys are [batch, heads, size, length]
  double scale = 1;
  Steps steps = {};
  std::size_t product = Rewriter::none;  // q k^T
};

/// A slot times or over one number: what is scaled, and by how much.
int unscaled(const Rewriter& program, int slot, double& scale, Steps& steps) {
  const std::size_t step = program.maker(slot);
  if (step == Rewriter::none || program.reads(slot) != 1) return slot;
  const Step& at = program.step(step);
  int found = slot;
  if (program.is(step, OpId::div)) {
    const auto number = program.number(at.inputs[1]);
    if (!number || *number == 0) return slot;
    scale /= *number;
    found = at.inputs[0];
  } else if (program.is(step, OpId::mul)) {
    either_order(at, [&](int value, int other) {
      const auto number = program.number(other);
      if (!number) return false;
      scale *= *number;
      found = value;
      return true;
    });
  }
  if (found != slot) steps.push_back(step);
  return found;
}

bool is_product(const Rewriter& program, std::size_t step) {
  return program.is(step, OpId::matmul) && program.step(step).inputs.size() == 2 &&
         program.step(step).attributes.to_string().empty();
}

/// From the input of the softmax to q and the keys.
bool find_scores(const Rewriter& program, int slot, AttentionParts& parts) {
  slot = unscaled(program, slot, parts.scale, parts.steps);
  parts.product = program.maker(slot);
  if (!is_product(program, parts.product)) return false;
  parts.steps.push_back(parts.product);
  parts.q = unscaled(program, program.step(parts.product).inputs[0], parts.scale, parts.steps);
  parts.keys = unscaled(program, program.step(parts.product).inputs[1], parts.scale, parts.steps);
  return true;
}

bool find_masked_scores(const Rewriter& program, int slot, AttentionParts& parts) {
  const std::size_t sum = program.maker(slot);
  if (!program.is(sum, OpId::add)) return find_scores(program, slot, parts);
  return either_order(program.step(sum), [&](int scores, int mask) {
    AttentionParts tried = parts;
    tried.steps.push_back(sum);
    tried.mask = mask;
    if (program.shape(mask).size() > 4 || !find_scores(program, scores, tried)) return false;
    parts = tried;
    return true;
  });
}

/// The memory of a slot with two dims in the other order.
int swapped(Rewriter& program, int slot, std::size_t a, std::size_t b) {
  const TensorSpec from = program.spec(slot);
  Dims shape = from.shape, strides = from.strides;
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return program.add_view(slot, make_spec(from.dtype, shape, strides, from.alignment));
}

/// What a transpose of dims makes, as a view of its input.
int seen_through(Rewriter& program, std::size_t transpose) {
  const Step at = program.step(transpose);
  const TensorSpec from = program.spec(at.inputs[0]);
  const std::vector<std::int64_t> dims = at.attributes.list("dims");
  Dims shape = from.shape, strides = from.strides;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    shape[d] = from.shape[static_cast<std::size_t>(dims[d])];
    strides[d] = from.strides[static_cast<std::size_t>(dims[d])];
  }
  return program.add_view(at.inputs[0], make_spec(from.dtype, shape, strides, from.alignment));
}

/// A transposed input is read where it was before, with each head's elements still neighbours.
int without_transpose(Rewriter& program, int slot, bool is_turned, Steps& steps) {
  const std::size_t transpose = program.maker(slot);
  if (!program.is(transpose, OpId::transpose) || program.reads(slot) != 1) return slot;
  const int view = seen_through(program, transpose);
  const Dims& strides = program.spec(view).strides;
  if (strides[strides.size() - (is_turned ? 2 : 1)] != 1) return slot;
  steps.push_back(transpose);
  return view;
}

/// The first element of each row of a constant.
std::vector<std::int64_t> rows_of(const TensorSpec& spec) {
  std::vector<std::int64_t> rows = {0};
  for (std::size_t d = 0; d + 1 < spec.shape.size(); ++d) {
    std::vector<std::int64_t> inner;
    for (const std::int64_t row : rows) {
      for (std::int64_t i = 0; i < spec.shape[d]; ++i) inner.push_back(row + i * spec.strides[d]);
    }
    rows = std::move(inner);
  }
  return rows;
}

/// A constant whose rows of -infinity are NaN: itself where it has none.
int known_mask(Rewriter& program, int mask) {
  const TensorSpec from = program.spec(mask);
  const std::int64_t length = from.shape.empty() ? 1 : from.shape[from.shape.size() - 1];
  const std::int64_t stride = from.shape.empty() ? 1 : from.strides[from.shape.size() - 1];
  if (element_count(from) == 0) return mask;
  const LoadElement load = loader_of(from.dtype);
  const void* data = program.constant(mask).as<const void>();
  const std::vector<std::int64_t> rows = rows_of(from);
  const auto is_masked = [&](std::int64_t row) {
    for (std::int64_t i = 0; i < length; ++i) {
      if (load(data, row + i * stride) != -std::numeric_limits<double>::infinity()) return false;
    }
    return true;
  };
  if (std::none_of(rows.begin(), rows.end(), is_masked)) return mask;
  const Tensor made = Tensor::empty(from.dtype, from.shape);
  const auto store = storer_of(from.dtype);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool masked = is_masked(rows[r]);
    for (std::int64_t i = 0; i < length; ++i) {
      store(made.data(), static_cast<std::int64_t>(r) * length + i,
            masked ? std::numeric_limits<double>::quiet_NaN() : load(data, rows[r] + i * stride));
    }
  }
  return program.add_constant(made.as_read_only());
}

/// mask + (most - most) with the most of each row, which is NaN where that is -infinity and else the mask.
std::vector<Step> calls_on_mask(Rewriter& program, int mask) {
  const TensorSpec spec = make_spec(program.spec(mask).dtype, program.shape(mask));
  Dims rows = spec.shape;
  rows[rows.size() - 1] = 1;
  const int most = program.add_memory(make_spec(spec.dtype, rows)), zero = program.add_memory(program.spec(most));
  Step reduce{.op = OpId::reduce_max, .attributes = Attributes(OpId::reduce_max), .inputs = {mask}, .outputs = {most}};
  const std::int64_t last[] = {-1};
  reduce.attributes.set_list("dim", last).set("keepdim", true);
  return {reduce,
          {.op = OpId::sub, .attributes = Attributes(OpId::sub), .inputs = {most, most}, .outputs = {zero}},
          {.op = OpId::add,
           .attributes = Attributes(OpId::add),
           .inputs = {mask, zero},
           .outputs = {program.add_memory(spec)}}};
}

using Masks = std::unordered_map<int, std::vector<Step>>;  // what is called on each, for all that read it

bool find_one_attention(Rewriter& program, std::size_t root, Masks& masks) {
  const std::size_t softmax = program.maker(program.step(root).inputs[0]);
  if (!program.is(softmax, OpId::softmax) || program.shape(program.step(root).outputs[0]).size() != 4) return false;
  const std::int64_t dim = program.step(softmax).attributes.integer("dim");
  if (dim != -1 && dim != 3) return false;
  AttentionParts parts{.v = program.step(root).inputs[1], .steps = {root, softmax}};
  if (!find_masked_scores(program, program.step(softmax).inputs[0], parts)) return false;
  for (const int slot : {parts.q, parts.keys, parts.v}) {
    if (program.shape(slot).size() != 4) return false;
  }
  parts.q = without_transpose(program, parts.q, false, parts.steps);
  parts.v = without_transpose(program, parts.v, false, parts.steps);
  parts.keys = without_transpose(program, parts.keys, true, parts.steps);
  if (program.spec(parts.keys).strides[2] != 1 || parts.scale == 0) return false;  // the heads' elements far apart
  Step with{.op = OpId::attention, .attributes = Attributes(OpId::attention)};
  with.attributes.set_real("scale", parts.scale);
  with.inputs = {parts.q, swapped(program, parts.keys, 2, 3), parts.v};
  with.outputs = program.step(root).outputs;
  if (parts.mask < 0) return program.replace(parts.steps, parts.product, with);
  if (program.is_constant(parts.mask)) parts.mask = known_mask(program, parts.mask);
  with.inputs.push_back(parts.mask);
  const TensorSpec mask = program.spec(parts.mask);
  if (program.is_constant(parts.mask) || element_count(mask) == 0) {
    return program.replace(parts.steps, parts.product, with);
  }
  if (mask.shape.empty()) return false;
  const auto [calls, is_new] = masks.try_emplace(parts.mask);
  if (is_new) calls->second = calls_on_mask(program, parts.mask);
  const auto can_run = [&](const Step& call) { return program.is_right(call); };
  if (!std::all_of(calls->second.begin(), calls->second.end(), can_run)) return false;
  if (!program.replace(parts.steps, parts.product, with)) return false;
  program.put_between(parts.mask, calls->second, root);
  return true;
}

/// [batch, heads, length, size] turned to [batch, length, heads, size] after it: written there at once.
void join_transpose_after(Rewriter& program, std::size_t transpose) {
  const Step at = program.step(transpose);
  const std::size_t attention = program.maker(at.inputs[0]);
  if (!program.is(attention, OpId::attention) || at.attributes.list("dims") != std::vector<std::int64_t>{0, 2, 1, 3}) {
    return;
  }
  Step with = program.step(attention);
  with.outputs = {swapped(program, at.outputs[0], 1, 2)};
  const Steps steps = {attention, transpose};
  program.replace(steps, attention, with);
}

}  // namespace

void find_attention(Rewriter& program) {
  Masks masks;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (is_product(program, i)) find_one_attention(program, i, masks);
  }
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.is(i, OpId::transpose)) join_transpose_after(program, i);
  }
}

}  // namespace xpuruntime::native

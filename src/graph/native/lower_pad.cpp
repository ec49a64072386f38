#include <algorithm>
#include <numeric>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"

namespace xpuruntime::native {
namespace {

struct Padding {
  std::vector<std::int64_t> before, after;  // of each dim
  std::string_view mode;                    // of the op
  int value = -1;                           // a slot; -1: zeros
};

/// The op takes four dims, the last: those before them are the last where what follows is one.
int pad_all(Builder& builder, int slot, const Padding& padding) {
  constexpr std::size_t most = max_rank / 2;
  std::size_t end = padding.before.size();
  while (end > 0) {
    const bool is_cut = end < padding.before.size();
    const std::size_t begin = end - std::min(end, most - (is_cut ? 1 : 0));
    std::vector<std::int64_t> pads(is_cut ? 2 : 0, 0);
    for (std::size_t d = end; d-- > begin;) pads.insert(pads.end(), {padding.before[d], padding.after[d]});
    const Dims shape = builder.shape(slot);
    if (std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad != 0; })) {
      Dims split(std::span(shape.begin(), end + (is_cut ? 1 : 0))), result = shape;
      for (std::size_t d = end + 1; is_cut && d < shape.size(); ++d) split[end] *= shape[d];
      for (std::size_t d = begin; d < end; ++d) result[d] += padding.before[d] + padding.after[d];
      Attributes attributes(OpId::pad);
      attributes.set_list("pads", pads).set_choice("mode", padding.mode);
      const int whole = is_cut ? builder.reshaped(slot, split) : slot;
      const bool has_value = padding.value >= 0 && padding.mode == "constant";
      const int made = has_value ? builder.call(OpId::pad, {whole, padding.value}, &attributes)
                                 : builder.call(OpId::pad, {whole}, &attributes);
      slot = is_cut ? builder.reshaped(made, result) : made;
    }
    end = begin;
  }
  return slot;
}

std::string_view mode_of(const NodeCall& call) {
  const std::string mode = call.text("mode", "constant");
  if (mode == "constant") return "constant";
  if (mode == "edge") return "replicate";
  if (mode == "reflect") return "reflect";
  if (mode != "wrap") call.lacks("mode " + mode);
  return "wrap";
}

/// Pads and axes are inputs, or attributes before opset 11.
Padding padding_of(const NodeCall& call) {
  const std::size_t rank = call.shape(0).size();
  const auto pads = call.values_or_list(1, call.opset < 2 ? "paddings" : "pads").value_or(std::vector<std::int64_t>{});
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  if (call.has(3)) axes = call.values(3);
  if (pads.size() != 2 * axes.size()) call.wrong("pads of another length than twice the axes");
  Padding padding = {std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0), mode_of(call)};
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t dim = call.axis(axes[i], rank);
    padding.before[dim] = pads[i];
    padding.after[dim] = pads[i + axes.size()];
    for (const std::int64_t pad : {padding.before[dim], padding.after[dim]}) {
      if (pad < -most || pad > most) call.refuse("pads beyond 40 bits");
    }
  }
  return padding;
}

/// What is cut off goes first: mirrored is what is left. More than there is may be cut off what the other side adds.
int cut_off(const NodeCall& call, Padding& padding) {
  int slot = call[0];
  for (std::size_t d = 0; d < padding.before.size(); ++d) {
    std::int64_t &before = padding.before[d], &after = padding.after[d];
    if (before >= 0 && after >= 0) continue;
    const std::int64_t extent = call.builder.shape(slot)[d], result = extent + before + after;
    if (result < 0) {
      call.wrong("pads " + std::to_string(before) + " and " + std::to_string(after) + " that cut more off dim " +
                 std::to_string(d) + " than its extent " + std::to_string(extent));
    }
    std::int64_t begin = std::max<std::int64_t>(-before, 0), end = extent + std::min<std::int64_t>(after, 0);
    before = std::max<std::int64_t>(before, 0);
    after = std::max<std::int64_t>(after, 0);
    if (begin >= end) {  // nothing of it is left
      begin = end = before = 0;
      after = result;
    }
    slot = Calls{call.builder}.slice(slot, static_cast<std::int64_t>(d), begin, end);
  }
  return slot;
}

/// On devices that have no kernel of the op: joined with what is around it.
int padded_by_parts(const NodeCall& call, int slot, const Padding& padding) {
  double value = 0;
  if (padding.value >= 0) {
    if (call.has(2)) call.need_constant(2);
    const Tensor& tensor = call.builder.constant_of(padding.value);
    value = loader_of(tensor.dtype())(tensor.as<const void>(), 0);
  }
  for (std::size_t d = 0; d < padding.before.size(); ++d) {
    if (padding.before[d] == 0 && padding.after[d] == 0) continue;
    slot = Calls{call.builder}.padded(slot, d, padding.before[d], padding.after[d], value);
  }
  return slot;
}

int padded_by(const NodeCall& call, int slot, const Padding& padding) {
  const bool is_open = padding.value >= 0 && !call.builder.is_constant(padding.value);
  const bool needs_op = padding.mode != "constant" || (is_open && call.builder.may_call(OpId::pad));
  return needs_op || call.builder.has_kernel(OpId::pad) ? pad_all(call.builder, slot, padding)
                                                        : padded_by_parts(call, slot, padding);
}

Slots pad(const NodeCall& call) {
  Padding padding = padding_of(call);
  Builder& builder = call.builder;
  if (call.has(2)) {
    if (element_count(builder.spec(call[2])) != 1) call.wrong("a value that is not one number");
    padding.value = call[2];
  } else if (call.real("value", 0) != 0) {
    padding.value = Calls{builder}.number(call.real("value", 0), call[0]);
  }
  const int kept = cut_off(call, padding);
  return {padded_by(call, kept, padding)};
}

/// Cut off or filled up with zeros on both sides alike, one more at the end.
Slots center_crop_pad(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::vector<std::int64_t> sizes = call.values(1);
  std::vector<std::int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  axes = call.list("axes").value_or(axes);
  if (axes.size() != sizes.size()) call.wrong("another number of sizes than axes");
  Padding padding = {std::vector<std::int64_t>(shape.size(), 0), std::vector<std::int64_t>(shape.size(), 0),
                     "constant"};
  constexpr std::int64_t most = std::int64_t{1} << 40;
  int kept = call[0];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = call.axis(axes[i], shape.size());
    const std::int64_t size = sizes[i], extent = call.builder.shape(kept)[axis];
    if (size < 0 || size > most) call.refuse("a size of " + std::to_string(size));
    const std::int64_t before = std::abs(size - extent) / 2;
    if (size < extent) {
      kept = Calls{call.builder}.slice(kept, static_cast<std::int64_t>(axis), before, before + size);
    } else {
      padding.before[axis] = before;
      padding.after[axis] = size - extent - before;
    }
  }
  return {padded_by(call, kept, padding)};
}

constexpr Operator pad_rows[] = {{"Pad", pad}, {"CenterCropPad", center_crop_pad}};

}  // namespace

std::span<const Operator> pad_operators() { return pad_rows; }

}  // namespace xpuruntime::native

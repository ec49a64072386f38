#include <limits>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

namespace xpuruntime::native {
namespace {

/// [batch, length, heads * size] as [batch, heads, length, size].
int heads_of(const NodeCall& call, int slot, std::int64_t count) {
  const Dims flat = call.builder.shape(slot);
  if (count < 1 || flat[2] % count != 0) call.refuse("a number of heads that does not divide the width");
  const std::int64_t turned[] = {0, 2, 1, 3};
  return Calls{call.builder}.permuted(call.builder.reshaped(slot, {flat[0], flat[1], count, flat[2] / count}), turned);
}

void refuse_what_is_missing(const NodeCall& call) {
  if (call.real("softcap", 0) != 0) call.lacks("a soft cap on the scores");
  if (call.integer("softmax_precision", 0) != 0) call.lacks("a softmax at a named precision");
  if (call.integer("left_window_size", -1) >= 0 || call.integer("right_window_size", -1) >= 0) call.lacks("a window");
  if (call.has(6)) call.lacks("lengths of sequences that are not padded");
  if (call.results() > 3) call.lacks("the scores as a result");
}

/// Keys that are too few in the mask take no part.
int widened_mask(const NodeCall& call, int mask, std::int64_t keys) {
  const Builder& builder = call.builder;
  if (builder.shape(mask).empty()) call.refuse("a mask without dims");
  const std::int64_t given = builder.shape(mask).back();
  if (given >= keys) return mask;
  if (builder.spec(mask).dtype == DataType::boolean) call.lacks("a boolean mask for fewer keys than there are");
  return Calls{call.builder}.padded(mask, builder.shape(mask).size() - 1, 0, keys - given,
                                    -std::numeric_limits<double>::infinity());
}

Slots attention(const NodeCall& call) {
  refuse_what_is_missing(call);
  Builder& builder = call.builder;
  const Calls calls{builder};
  int q = call[0], k = call[1], v = call[2];
  const bool is_flat = builder.shape(q).size() == 3;
  if (is_flat) {
    q = heads_of(call, q, call.integer("q_num_heads", 0));
    k = heads_of(call, k, call.integer("kv_num_heads", 0));
    v = heads_of(call, v, call.integer("kv_num_heads", 0));
  }
  if (call.has(4)) {
    const int keys[] = {call[4], k}, values[] = {call[5], v};
    k = calls.concat(keys, 2);
    v = calls.concat(values, 2);
  }
  Attributes attributes(OpId::attention);
  attributes.set("causal", call.integer("is_causal", 0) != 0);
  if (call.has(4) && call.integer("is_causal", 0) != 0) call.lacks("causality together with a cache");
  if (call.attribute("scale") != nullptr) attributes.set_real("scale", call.real("scale", 1));
  std::vector<int> inputs = {q, k, v};
  if (call.has(3)) inputs.push_back(widened_mask(call, call[3], builder.shape(k)[2]));
  int result = builder.call(OpId::attention, inputs, &attributes);
  if (is_flat) {
    const std::int64_t turned[] = {0, 2, 1, 3};
    result = calls.permuted(result, turned);
    const Dims shape = builder.shape(result);
    result = builder.reshaped(result, {shape[0], shape[1], shape[2] * shape[3]});
  }
  return {result, k, v};
}

/// Where each token's angles are: at the positions given, or a row of the tables for each.
struct Angles {
  int positions, cosines, sines;
};

Angles angles_of(const NodeCall& call, std::int64_t batch, std::int64_t tokens) {
  Builder& builder = call.builder;
  if (call.has(3)) return {call[3], call[1], call[2]};
  const Dims table = call.shape(1);
  if (table.size() != 3 || table[0] != batch || table[1] != tokens) call.refuse("tables " + to_string(table));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch * tokens));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const Dims flat = {batch * tokens, table[2]};
  return {builder.reshaped(builder.integers(rows), {batch, tokens}), builder.reshaped(call[1], flat),
          builder.reshaped(call[2], flat)};
}

/// [batch, heads, tokens, size], or [batch, tokens, heads * size].
Slots rotate(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = call.shape(0);
  const std::int64_t heads = call.integer("num_heads", 0), turned[] = {0, 2, 1, 3};
  const bool is_flat = shape.size() == 3;
  if (!is_flat && shape.size() != 4) call.refuse("an input with " + std::to_string(shape.size()) + " dims");
  if (is_flat && (heads < 1 || shape[2] % heads != 0)) call.refuse("a number of heads that does not divide the width");
  const int x = is_flat ? builder.reshaped(call[0], {shape[0], shape[1], heads, shape[2] / heads})
                        : calls.permuted(call[0], turned);
  const Dims tokens = builder.shape(x);
  const std::int64_t rotated = call.integer("rotary_embedding_dim", 0);
  const auto [positions, cosines, sines] = angles_of(call, tokens[0], tokens[1]);
  if (builder.shape(cosines).back() * 2 != (rotated == 0 ? tokens[3] : rotated)) call.refuse("tables of other pairs");
  Attributes attributes(OpId::rope);
  attributes.set("interleaved", call.integer("interleaved", 0) != 0);
  const int result = builder.call(OpId::rope, {x, positions, cosines, sines}, &attributes);
  return {is_flat ? builder.reshaped(result, shape) : calls.permuted(result, turned)};
}

constexpr Operator attention_rows[] = {{"Attention", attention}, {"RotaryEmbedding", rotate}};

}  // namespace

std::span<const Operator> attention_operators() { return attention_rows; }

}  // namespace xpuruntime::native

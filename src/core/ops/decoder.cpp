#include <limits>

#include "core/ops/schema.h"

// What a decoder's layer does between its products: positions go into queries and keys, and those go into the cache.

namespace xpuruntime::op_rows {
namespace {

/// The dims before the heads and their elements.
Dims tokens_of(const Dims& shape) { return Dims(std::span(shape.begin(), shape.size() - 2)); }

Specs infer_rope(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  for (const std::size_t i : {0, 2, 3}) call.need_floating(i);
  call.need_index(1);
  const Dims& shape = call.shape(0);
  if (shape.size() < 2) call.refuse("input 0 has no heads; reshape it to [..., heads, head_size]");
  const Dims tokens = tokens_of(shape);
  if (call.broadcast(call.shape(1), tokens) != tokens) {
    call.refuse("the positions " + to_string(call.shape(1)) + " are more than the tokens " + to_string(tokens) +
                "; give one position per token");
  }
  call.need_rank(2, 2, "[positions, pairs]");
  call.need_shape(3, call.shape(2), "table of sines");
  if (call.shape(2)[1] > shape.back() / 2) {
    call.refuse("the tables have " + std::to_string(call.shape(2)[1]) +
                " columns, one per pair of elements; give at most " + std::to_string(shape.back() / 2) +
                ", half a head");
  }
  return {make_spec(call[0].dtype, shape)};
}

bool is_paged(Inputs inputs) { return inputs.size() == 6; }

/// The most tokens of one sequence.
std::int64_t capacity(Inputs inputs) {
  std::int64_t slots = inputs[0].shape[is_paged(inputs) ? 1 : 2];
  if (is_paged(inputs) && __builtin_mul_overflow(slots, inputs[5].shape[1], &slots)) {
    slots = std::numeric_limits<std::int64_t>::max();
  }
  return slots;
}

void check_cache(const ForwardCall& call, std::size_t cache, std::string_view what) {
  const Dims &first = call.shape(0), &added = call.shape(2 + cache);
  if (is_floating(call[cache].dtype) != is_floating(call[2 + cache].dtype)) {
    call.refuse("the " + std::string(what) + " and what is added to it are not both floating; cast one of them");
  }
  call.need_shape(cache,
                  is_paged(call.inputs()) ? Dims{first[0], first[1], added[1], added[3]}
                                          : Dims{added[0], added[1], first[2], added[3]},
                  what);
}

Specs infer_kv_append(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const bool paged = is_paged(inputs);
  for (const std::size_t i : {0, 1}) {
    call.need_rank(i, 4, paged ? "[pages, page_size, heads, head_size]" : "[batch, heads, max_length, head_size]");
    call.need_rank(2 + i, 4, "[batch, heads, tokens, head_size]");
  }
  const Dims& key = call.shape(2);
  call.need_shape(3, {key[0], key[1], key[2], call.shape(3)[3]}, "value");
  call.need_index(4);
  call.need_shape(4, {key[0]}, "list of lengths");
  if (paged) {
    call.need_index(5);
    call.need_rank(5, 2, "[batch, pages of a sequence]");
    call.need_shape(5, {key[0], call.shape(5)[1]}, "page table");
  }
  check_cache(call, 0, "cache of keys");
  check_cache(call, 1, "cache of values");
  if (key[2] > capacity(inputs)) {
    call.refuse(std::to_string(key[2]) + " tokens are added, and a sequence has room for " +
                std::to_string(capacity(inputs)) + "; give a larger cache");
  }
  return {make_spec(call[0].dtype, call.shape(0)), make_spec(call[1].dtype, call.shape(1))};
}

std::int64_t positions_in_table(const Problem& forward) { return forward.inputs[2].shape[0]; }
std::int64_t pages(const Problem& forward) { return forward.inputs[0].shape[0]; }
std::int64_t lengths_with_room(const Problem& forward) {
  return capacity(forward.inputs) - forward.inputs[2].shape[2] + 1;
}

Sizes rope_tokens(const Problem& forward) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tokens_of(forward.inputs[0].shape)) count *= extent;
  return {count};
}
Sizes head_size(const Problem& forward) { return {forward.inputs[0].shape.back()}; }

constexpr InputSpec rope_inputs[] = {{.name = "input", .gradient = false, .in_place = 0b1},
                                     {.name = "positions",
                                      .values = InputValues::index,
                                      .gradient = false,
                                      .follows_precision = false,
                                      .bound = positions_in_table},
                                     {.name = "cos", .gradient = false, .follows_precision = false},
                                     {.name = "sin", .gradient = false, .follows_precision = false}};
constexpr AttributeSpec rope_attributes[] = {boolean("interleaved")};
constexpr SizeSpec rope_sizes[] = {size("tokens", rope_tokens, "tokens of all sequences", varies),
                                   size("head_size", head_size, "elements of a head")};

constexpr InputSpec kv_append_inputs[] = {
    {.name = "key_cache", .gradient = false, .follows_precision = false, .in_place = 0b01, .partly = true},
    {.name = "value_cache", .gradient = false, .follows_precision = false, .in_place = 0b10, .partly = true},
    {.name = "key", .gradient = false, .follows_precision = false},
    {.name = "value", .gradient = false, .follows_precision = false},
    {.name = "lengths",
     .values = InputValues::index,
     .gradient = false,
     .follows_precision = false,
     .bound = lengths_with_room},
    {.name = "page_table",
     .optional = true,
     .values = InputValues::place,
     .gradient = false,
     .follows_precision = false,
     .bound = pages}};
constexpr SizeSpec kv_append_sizes[] = {size("batch", extent<2, 0>, "sequences", varies),
                                        size("tokens", extent<2, 2>, "tokens added to each", varies)};

constexpr OpInfo rows[] = {
    {.id = Id::rope,
     .name = "rope",
     .aliases = "rotary_embedding",
     .category = Kind::elementwise,
     .summary = "Rotates pairs of a head's elements, i and i + pairs or neighbours where interleaved, by the angles of "
                "its token's position, and copies elements past the pairs.",
     .inputs = rope_inputs,
     .attributes = rope_attributes,
     .infer = infer_rope,
     .sizes = rope_sizes,
     .sample = "T[64,8,64], i64[64], T[64,32], T[64,32]",
     .rounding = Rounding::rotation},
    {.id = Id::kv_append,
     .name = "kv_append",
     .category = Kind::movement,
     .summary =
         "Writes new keys and values after the `lengths` tokens of each sequence, in pages where there is a page "
         "table: into the caches where they are `out`, else into copies of them.",
     .inputs = kv_append_inputs,
     .infer = infer_kv_append,
     .outputs = 2,
     .sizes = kv_append_sizes,
     .sample = "T[4,8,64,32], T[4,8,64,32], T[4,8,1,32], T[4,8,1,32], i64[4]",
     .rounding = Rounding::exact},
};

}  // namespace

std::span<const OpInfo> decoder() { return rows; }

}  // namespace xpuruntime::op_rows

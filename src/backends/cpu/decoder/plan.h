#pragma once

#include <memory>

#include "backends/cpu/base/block.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// A plan of two inputs, made by `make`, that runs on the halves of one where the problem has one.
std::unique_ptr<const Plan> prepare_on_halves(const Problem& problem,
                                              std::unique_ptr<const Plan> (*make)(const Problem& two));

/// One token: its heads are rows, those of the tables the ones of its position.
struct RopeToken {
  BlockOperand in = {}, out = {}, cos = {}, sin = {};
  std::int64_t heads = 0;
  std::int64_t size = 0;  // of a head
  std::int64_t pairs = 0;
  bool interleaved = false;
};

void rotate_token(const RopeToken& token);

/// The first `count` dims of a tensor, to go over them alone.
TensorSpec first_dims(const TensorSpec& spec, std::size_t count);

/// Stores the elements of one tensor in another of its shape.
using MoveElements = void (*)(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int threads);

/// kv_append: `copy` moves a cache that is not written in place, `move_head` one head of one token.
std::unique_ptr<const Plan> prepare_append(const Problem& problem, MoveElements copy, MoveElements move_head,
                                           int threads);

}  // namespace xpuruntime::cpu

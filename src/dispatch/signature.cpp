#include "dispatch/signature.h"

#include <algorithm>
#include <vector>

namespace xpuruntime::signature {
namespace {

// In `any` layout a rank up to four takes four words, a higher one eight.
std::size_t words_for(const Dims& dims) { return dims.size() > 4 ? 8 : 4; }

void append(std::vector<std::uint64_t>& words, const Dims& dims, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) words.push_back(static_cast<std::uint64_t>(dims.data()[i]));
}

bool dims_match(const Dims& dims, const std::uint64_t*& words) {
  Pair different = {};
  const std::size_t count = words_for(dims);
  for (std::size_t i = 0; i < count; i += 2) different |= difference(dims.data() + i, words + i);
  words += count;
  return is_zero(different);
}

// Equal meta words mean equal rank and contiguity: both walks stay in step.
bool tensor_matches(const Tensor* tensor, const std::uint64_t*& words) {
  if (tensor == nullptr || tensor->meta() != *words++ || !dims_match(tensor->shape(), words)) return false;
  return tensor->contiguous() || dims_match(tensor->strides(), words);
}

}  // namespace

bool has_tensors(const Call& call) {
  const auto there = [](const Tensor* tensor) { return tensor != nullptr; };
  return std::all_of(call.inputs.begin(), call.inputs.end(), there) &&
         std::all_of(call.outputs.begin(), call.outputs.end(), there);
}

std::uint64_t hash(const Call& call, std::uint64_t stamp) {
  const Head head = head_of(call);
  std::uint64_t sum = head.what * 0x9e3779b97f4a7c15ULL + head.counts * 0xc2b2ae3d27d4eb4fULL + stamp;
  std::uint64_t factor = 0x165667b19e3779f9ULL;
  // Each word times an odd number of its own: the products do not wait for each other.
  const auto add = [&](std::uint64_t word) {
    sum += word * factor;
    factor = factor * 5 + 2;
  };
  if (call.attributes != nullptr) {
    for (const std::int64_t word : call.attributes->words()) add(static_cast<std::uint64_t>(word));
  }
  for (const Tensor* tensor : call.inputs) add(tensor->hash());
  for (const Tensor* tensor : call.outputs) add(tensor->hash());
  return (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL;
}

Words::Words(const Call& call, std::uint64_t stamp) : Words() {
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) {
      const std::size_t rank = tensor->shape().size();
      const Layout own = !tensor->contiguous() || rank > 4 ? Layout::any
                         : rank > 2                        ? Layout::contiguous
                                                           : Layout::matrices;
      layout_ = std::max(layout_, own);
    }
  }
  const Head head = head_of(call);
  std::vector<std::uint64_t> words = {head.what, head.counts, stamp};
  if (call.attributes != nullptr) {
    const std::span<const std::int64_t> attributes = call.attributes->words();
    for (const std::int64_t word : attributes) words.push_back(static_cast<std::uint64_t>(word));
    if (attributes.size() % 2 != 0) words.push_back(0);
  }
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) {
      words.push_back(tensor->meta());
      const std::size_t count = layout_ == Layout::matrices     ? 2
                                : layout_ == Layout::contiguous ? 4
                                                                : words_for(tensor->shape());
      append(words, tensor->shape(), count);
      if (!tensor->contiguous()) append(words, tensor->strides(), count);
    }
  }
  if (words.size() > near_count) far_ = std::make_unique<std::uint64_t[]>(words.size());
  std::copy(words.begin(), words.end(), far_ == nullptr ? near_.data() : far_.get());
}

bool Words::match_any_layout(const Call& call, const std::uint64_t* words) {
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) {
      if (!tensor_matches(tensor, words)) return false;
    }
  }
  return true;
}

}  // namespace xpuruntime::signature

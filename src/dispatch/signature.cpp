#include "dispatch/signature.h"

namespace xpuruntime::signature {
namespace {

void append(std::vector<std::uint64_t>& words, const Dims& dims) {
  const std::size_t count = dims.size() > 4 ? 8 : 4;
  for (std::size_t i = 0; i < count; ++i) words.push_back(static_cast<std::uint64_t>(dims.data()[i]));
}

void append(std::vector<std::uint64_t>& words, const Tensor& tensor) {
  words.push_back(tensor.meta());
  append(words, tensor.shape());
  if (!tensor.contiguous()) append(words, tensor.strides());
}

bool dims_match(const Dims& dims, const std::uint64_t*& words) {
  std::uint64_t different = difference(dims.data(), words);
  words += 4;
  if (dims.size() > 4) {
    different |= difference(dims.data() + 4, words);
    words += 4;
  }
  return different == 0;
}

// Equal meta words mean equal rank and contiguity: both walks stay in step.
bool tensor_matches(const Tensor& tensor, const std::uint64_t*& words) {
  if (tensor.meta() != *words++ || !dims_match(tensor.shape(), words)) return false;
  return tensor.contiguous() || dims_match(tensor.strides(), words);
}

}  // namespace

Words::Words(const Call& call, std::uint64_t stamp) : words_{head_word(call), stamp} {
  if (call.attributes != nullptr) {
    for (const std::int64_t word : call.attributes->words()) words_.push_back(static_cast<std::uint64_t>(word));
  }
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) {
      append(words_, *tensor);
      simple_ = simple_ && is_simple(*tensor);
    }
  }
}

bool Words::match_any_layout(const Call& call, const std::uint64_t* words) {
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) {
      if (!tensor_matches(*tensor, words)) return false;
    }
  }
  return true;
}

}  // namespace xpuruntime::signature

#include "dispatch/cast_frames.h"

namespace xpuruntime {
namespace {

// What one thread keeps between calls is at most the product of these. Casting a larger block takes so long that the
// pool's lock does not count.
constexpr std::size_t frames_kept = 2;
constexpr std::size_t blocks_kept = 8;
constexpr std::size_t block_bytes_kept = std::size_t{1} << 20;

}  // namespace

void CastFrame::start_call(const Call& call, std::size_t temporaries) {
  inputs.assign(call.inputs.begin(), call.inputs.end());
  outputs.assign(call.outputs.begin(), call.outputs.end());
  if (temporaries_.size() < temporaries) temporaries_.resize(temporaries);
}

const Tensor& CastFrame::temporary(std::size_t index, WorkspacePool& pool, const TensorSpec& spec, Device device,
                                   Stream stream) {
  Temporary& own = temporaries_[index];
  // A block that a stream used is free for that stream alone: there the next kernel runs after the last one. A graph's
  // stays the graph's.
  if (own.pool == &pool && own.stream == stream && own.leased.lease.size() >= bytes_for(spec) &&
      own.leased.lease.capture() == pool.capture_id(stream)) {
    own.leased.tensor = Tensor::on(own.leased.lease.data(), spec, device);
  } else {
    own = {};  // first, so that the pool can lend its block again
    own = {lease_tensor(pool, spec, device, stream), &pool, stream};
  }
  return own.leased.tensor;
}

void CastFrame::end_call(bool keep_memory) noexcept {
  inputs.clear();
  outputs.clear();
  kept.clear();
  for (std::size_t i = 0; i < temporaries_.size(); ++i) {
    const bool stays = keep_memory && i < blocks_kept && temporaries_[i].leased.lease.size() <= block_bytes_kept;
    if (!stays) temporaries_[i] = {};
  }
}

CastFrame& CastFrames::enter() {
  if (running_ == frames_.size()) frames_.push_back(std::make_unique<CastFrame>());
  return *frames_[running_++];
}

void CastFrames::leave(bool keep_memory) noexcept {
  --running_;
  frames_[running_]->end_call(keep_memory && running_ < frames_kept);
}

void CastFrames::release_idle() noexcept {
  for (std::size_t i = running_; i < frames_.size(); ++i) frames_[i]->end_call(false);
}

}  // namespace xpuruntime

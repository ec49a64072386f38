#include "backends/cuda/faults.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/check.h"

namespace xpuruntime::cuda {
namespace {

constexpr std::size_t most_words = 16384;
constexpr std::size_t most_left = 64;

}  // namespace

class Faults::Word final : public ValueFault {
 public:
  Word(std::shared_ptr<Faults> faults, std::size_t slot) : faults_(std::move(faults)), slot_(slot) {}
  ~Word() override { faults_->release(slot_); }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;

  // With unified addresses the host's is the device's.
  void* word() const override { return const_cast<std::uint32_t*>(&faults_->words_[slot_]); }

 private:
  std::shared_ptr<Faults> faults_;
  std::size_t slot_;
};

Faults::~Faults() {
  if (words_ != nullptr) cudaFreeHost(const_cast<std::uint32_t*>(words_));
}

void Faults::reserve() {
  if (words_ != nullptr) return;
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, most_words * sizeof(std::uint32_t), cudaHostAllocPortable | cudaHostAllocMapped),
        "make_value_fault", "no host memory that devices can write");
  words_ = static_cast<volatile std::uint32_t*>(memory);
  std::fill_n(words_, most_words, 0u);
}

std::unique_ptr<ValueFault> Faults::make(const std::shared_ptr<Faults>& shared, int index, std::string message) {
  std::size_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    reserve();
    const auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.index < 0; });
    slot = static_cast<std::size_t>(free - slots_.begin());
    if (slot == most_words) {
      fail(ErrorCode::not_supported, "make_value_fault",
           "there are " + std::to_string(most_words) + " plans that check values already; let some go");
    }
    if (free == slots_.end()) slots_.emplace_back();
    slots_[slot] = {index, std::move(message)};
    words_[slot] = 0;
  }
  return std::make_unique<Word>(shared, slot);
}

void Faults::release(std::size_t slot) {
  const std::lock_guard lock(mutex_);
  if (words_[slot] != 0 && left_.size() < most_left) left_.push_back(std::move(slots_[slot]));
  slots_[slot] = {};
}

Status Faults::take(int index) {
  const std::lock_guard lock(mutex_);
  std::string found;
  const auto tell = [&](const Slot& slot) { found += (found.empty() ? "" : "; and ") + slot.message; };
  for (const Slot& slot : left_) {
    if (slot.index == index) tell(slot);
  }
  std::erase_if(left_, [&](const Slot& slot) { return slot.index == index; });
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].index != index || words_[i] == 0) continue;
    words_[i] = 0;
    tell(slots_[i]);
  }
  return found.empty() ? Status() : Status(ErrorCode::invalid_argument, found);
}

}  // namespace xpuruntime::cuda

#include "tune/store_snapshot.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tune/checksum.h"
#include "tune/entry.h"

namespace xpuruntime {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

std::size_t FrozenEntries::slot_of(std::string_view problem) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = Checksum().add(problem).value() & mask;
  while (slots_[slot] != 0 && entries_[slots_[slot] - 1].problem != problem) slot = (slot + 1) & mask;
  return slot;
}

bool FrozenEntries::better(std::size_t environment, std::int64_t measured_at, const Stored& old) const {
  const auto rank = [this](std::size_t of, std::int64_t at) { return std::tuple(stale_[of].empty(), at, of); };
  return rank(environment, measured_at) > rank(old.environment, old.measured_at);
}

std::string_view FrozenEntries::keep(std::string_view text) {
  if (text.size() > free_) {
    free_ = std::max(block_bytes, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(free_));
  }
  // Blocks are filled from the end: what is left is then all that must be remembered.
  free_ -= text.size();
  char* const at = blocks_.back().get() + free_;
  std::copy(text.begin(), text.end(), at);
  return {at, text.size()};
}

void FrozenEntries::grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(entries_[i].problem)] = static_cast<std::uint32_t>(i + 1);
  }
}

void FrozenEntries::add(std::size_t environment, std::string_view problem, std::int64_t measured_at,
                        std::string_view body) {
  const std::size_t slot = slot_of(problem);
  if (slots_[slot] != 0) {
    Stored& old = entries_[slots_[slot] - 1];
    if (better(environment, measured_at, old)) old = {old.problem, keep(body), measured_at, environment};
    return;
  }
  entries_.push_back({keep(problem), keep(body), measured_at, environment});
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() * 2 > slots_.size()) grow();
}

std::optional<StoreSnapshot::Entry> FrozenEntries::find(std::string_view problem) const {
  const std::uint32_t index = slots_[slot_of(problem)];
  if (index == 0) return std::nullopt;
  const Stored& stored = entries_[index - 1];
  ProblemEntry parsed = entry_from_json(problem, stored.body);
  Entry entry = {std::move(parsed.measurements), std::move(parsed.choice), std::move(parsed.quarantine),
                 stale_[stored.environment]};
  if (entry.stale.empty()) return entry;
  entry.quarantine.clear();
  if (entry.measurements.empty() && !entry.choice) return std::nullopt;
  return entry;
}

}  // namespace xpuruntime

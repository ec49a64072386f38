#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// Entries as their store wrote them, found by the problem's text; what an entry says is read when somebody asks.
class FrozenEntries final : public StoreSnapshot {
 public:
  /// `stale` has the reason of each environment, empty for the one here.
  explicit FrozenEntries(std::vector<std::string> stale) : stale_(std::move(stale)) {}

  /// Only before others see it. Of two entries for a problem the one from here stays, else the one measured later,
  /// else that of the later environment.
  void add(std::size_t environment, std::string_view problem, std::int64_t measured_at, std::string_view body);

  std::optional<Entry> find(std::string_view problem) const override;
  std::size_t size() const override { return entries_.size(); }

 private:
  struct Stored {
    std::string_view problem = {};  // with the body, in a block
    std::string_view body = {};
    std::int64_t measured_at = 0;
    std::size_t environment = 0;
  };

  /// Where the problem stands, or the free slot where it would.
  std::size_t slot_of(std::string_view problem) const;
  bool better(std::size_t environment, std::int64_t measured_at, const Stored& old) const;
  std::string_view keep(std::string_view text);
  void grow();

  std::vector<std::string> stale_;
  std::vector<Stored> entries_ = {};
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64);  // 0 is free, else 1 + an index; a power of two
  std::vector<std::unique_ptr<char[]>> blocks_ = {};
  std::size_t free_ = 0;  // bytes left in the last block
};

}  // namespace xpuruntime

#include "dispatch/thread_state.h"

#include <algorithm>

namespace xpuruntime {

TableEntry& ThreadState::insert(std::uint64_t hash, std::unique_ptr<TableEntry> entry) {
  Set& set = sets[set_of(hash)];
  // The one unused for longest goes. A running call may still use it, so it is only put aside here.
  if (set.entries[ways - 1] != nullptr) buried.emplace_back(set.entries[ways - 1]);
  for (std::size_t way = ways - 1; way > 0; --way) {
    set.entries[way] = set.entries[way - 1];
    set.tags[way] = set.tags[way - 1];
  }
  set.entries[0] = entry.release();
  set.tags[0] = tag_of(hash);
  return *set.entries[0];
}

void ThreadState::drop_table() {
  for (Set& set : sets) {
    for (TableEntry*& entry : set.entries) {
      delete entry;
      entry = nullptr;
    }
  }
  buried.clear();
}

}  // namespace xpuruntime

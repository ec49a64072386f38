#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch/cast_cache.h"
#include "dispatch/cast_frames.h"
#include "dispatch/log_ring.h"
#include "dispatch/prepared.h"
#include "dispatch/signature_table.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"

namespace xpuruntime {

/// The outputs that follow from a call's inputs, for callers that allocate them with every call.
struct KnownOutputs {
  void empty() { *this = {}; }

  signature::Words signature = {};  // of the call without outputs
  std::vector<TensorSpec> specs = {};
};

/// What one thread keeps for one dispatcher: its decision table, its scope and its log. Only that thread touches the
/// table.
struct alignas(128) ThreadState {  // on cache lines of its own: its thread writes to it with every call
  // Twice the 4,096 problems that a program may have in rotation without a miss.
  static constexpr std::size_t entries_at_most = 8192;
  // What others want of this thread.
  static constexpr std::uint8_t asks_if_idle = 1;  // only this thread says no
  static constexpr std::uint8_t has_retired = 2;

  explicit ThreadState(std::uint64_t thread_number) : thread(thread_number) { start.next = &start; }

  /// Programs repeat themselves: what came after the last call before is tried first, without a hash.
  XRT_ALWAYS_INLINE TableEntry* find_next(const Call& call, std::uint64_t stamp) {
    TableEntry* entry = last->next;
    if (!entry->signature.match(call, stamp)) return nullptr;
    return last = entry;
  }
  /// Programs that say where they are: not even what comes before has to be the same.
  XRT_ALWAYS_INLINE TableEntry* find_at(const CallSite& site, const Call& call, std::uint64_t stamp) {
    if (site.table_ != table_id || !site.entry_->signature.match(call, stamp)) return nullptr;
    return last = site.entry_;
  }
  void note(CallSite& site, TableEntry& entry) const {
    site.entry_ = &entry;
    site.table_ = table_id;
  }
  TableEntry* find(const Call& call, std::uint64_t stamp);
  TableEntry& insert(const Call& call, std::uint64_t stamp, std::shared_ptr<Prepared> prepared);
  void drop_table();

  /// After a change of its scopes.
  void take_scope();

  /// Whether casts, and the memory for them, are kept from call to call.
  bool keeps_casts() const { return !scopes.empty() && scopes.back().second->autocast.on(); }
  void release_casts() noexcept;

  /// Another thread's question, see ThreadRegistry::release_idle: empties the table of a thread that was asked before
  /// and has not called since. What `decide` returned last stays.
  void release_if_idle();
  /// Any thread's word: from its next call on, this thread decides anew what this kernel runs.
  void retire(const Kernel* kernel);
  /// This thread's answer to both: it calls.
  void answer();

  TableEntry* last = &start;                 // the entry of the last call
  TableEntry start = {};                     // comes before the first call
  std::uint64_t table_id = next_table_id();  // anew when the table is emptied
  // Entries are reused, never freed: a `next` that points at an evicted one finds an entry that says what it is.
  SignatureTable<TableEntry> table{entries_at_most};
  std::uint64_t misses = 0;             // calls that were not in the table
  std::atomic<int> depth = 0;           // calls of this thread that are running: a kernel may dispatch
  std::atomic<std::uint8_t> asked = 0;  // in one word, as warm calls look at it
  std::uint32_t scope_id = 0;           // of the innermost scope; 0: the dispatcher's base scope
  std::uint32_t unlocked = ~0u;         // all ones: no scope here says anything of locks
  std::vector<std::pair<std::uint64_t, ScopePtr>> scopes;  // with their tokens, innermost last
  CastCache kept_casts;
  CastFrames cast_frames;
  SignatureTable<KnownOutputs> known_outputs{entries_at_most};
  std::shared_ptr<LogRing> ring;
  std::uint64_t thread;
  Mutex release_mutex;  // held by the thread that empties the table, unless it is this one

 private:
  static std::uint64_t next_table_id();
  void drop_entries();
  void drop_entries_of(const std::vector<const Kernel*>& kernels);

  std::vector<const Kernel*> retired_;                 // of the registry; guarded by release_mutex
  std::shared_ptr<const DecisionRecord> last_record_;  // of a table that another thread emptied
};

/// A call of this thread is running: no other thread touches its table, and no entry is freed under it.
class TableUse {
 public:
  XRT_ALWAYS_INLINE explicit TableUse(ThreadState& state)
      : depth_(state.depth), outer_(depth_.load(std::memory_order_relaxed)) {
    depth_.store(outer_ + 1, std::memory_order_relaxed);
    // Keeps the compiler from swapping the two; release_idle keeps the processor from it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state.asked.load(std::memory_order_relaxed)) [[unlikely]]
      state.answer();
  }
  ~TableUse() { depth_.store(outer_, std::memory_order_release); }
  TableUse(const TableUse&) = delete;
  TableUse& operator=(const TableUse&) = delete;

 private:
  std::atomic<int>& depth_;
  const int outer_;
};

}  // namespace xpuruntime

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/select/decision.h"
#include "xpuruntime/tune/environment.h"

namespace xpuruntime {

/// One decision on record: which kernel ran a problem, by which plan, where, and what came out.
struct LockEntry {
  /// Its text as the kernel gets it: after the casts, with the limits in force. A text with ranges stands for all its
  /// problems, and has no `outputs`.
  std::string problem = {};
  std::string kernel = {};
  std::string plan = {};  // the plan's token; of a range that of every size, or "varies" where they differ
  std::uint64_t workspace_bytes = 0;
  std::string environment = {};  // id of one of the lock's
  std::string outputs = {};      // SHA-256 of the outputs on the inputs that the seed gives; empty: not recorded
  std::uint64_t seed = 0;        // has a meaning only with outputs
  /// Of a third-party kernel: the version of its code, or "unversioned". Empty for kernels of the library.
  std::string kernel_version = {};

  /// Of a range: not every size has the same plan, so none is held to it.
  bool plans_vary() const;

  bool operator==(const LockEntry&) const = default;
};

/// Which engine ran a model, and as what. Of `native` the lock has the calls too, of others nothing more is known.
struct LockedEngine {
  std::string model = {};  // 32 digits of a hash of all but the values of large constants
  std::string engine = {};
  std::string version = {};
  std::string target = {};  // type of device
  std::string precision = {};
  std::int64_t optimize_level = 0;
  std::string environment = {};  // id of one of the lock's

  bool operator==(const LockedEngine&) const = default;
};

/// The plan of such an entry.
inline constexpr std::string_view varying_plans = "varies";

/// Decisions to be made again exactly: `kernels.lock`. A value that is versioned as a file; docs/locks.md.
class KernelLock {
 public:
  /// Records a decision. One without a kernel is an error, and so is another choice for a problem that is there; the
  /// same again changes nothing.
  LockEntry& add(const Decision& decision, const Environment& environment);
  /// Records an entry as it is, by the same rules.
  LockEntry& add(const LockEntry& entry, const Environment& environment);

  /// Records which engine runs a model; another for a model that is there is an error.
  LockedEngine& add(const LockedEngine& engine, const Environment& environment);
  /// Records all that another lock has, by the same rules.
  void add(const KernelLock& other);

  /// The entry of just this text.
  const LockEntry* find(std::string_view problem) const;
  /// The entry of a range, whatever its sizes are called.
  const LockEntry* find(const ProblemRange& range) const;
  /// The entry that decides a problem: its own, or else that of a range that holds it, the first in the order of the
  /// file, or else one of these that differs in `deterministic` alone. The latter holds where the kernel makes the same
  /// plan either way, which who uses it checks; one of a range whose plans vary does not.
  const LockEntry* find_for(const Problem& problem) const;
  /// For error texts: that nothing decides this problem, which entry is nearest, what differs, and what to do.
  std::string why_missing(const Problem& problem) const;
  /// By problem, in the order of the file.
  const std::map<std::string, LockEntry, std::less<>>& entries() const& { return entries_; }
  const std::map<std::string, LockEntry, std::less<>>& entries() const&& = delete;
  const Environment& environment_of(const LockEntry& entry) const;
  /// By model; empty: the lock is of kernels alone.
  const std::map<std::string, LockedEngine, std::less<>>& engines() const& { return engines_; }
  const std::map<std::string, LockedEngine, std::less<>>& engines() const&& = delete;
  const Environment& environment_of(const LockedEngine& engine) const;
  /// What an entry is worth in another environment, where its kernel is of this version. What its kernel does not
  /// depend on is not compared: docs/locks.md#what-an-entry-depends-on.
  EnvironmentMatch match(const LockEntry& entry, const Environment& here, std::string_view kernel_version) const;

  bool operator==(const KernelLock&) const = default;

  /// One decision a line, sorted by problem, each with a checksum of its own: it merges and diffs well.
  std::string to_json() const;
  /// A checksum that does not fit, unknown fields, wrong types, a duplicate or unreadable problem, and what the file's
  /// version does not have are errors that name the entry.
  static KernelLock from_json(std::string_view json);
  static KernelLock load(const std::string& path);
  /// Writes to a temporary name, syncs, renames: the file is the old one or the new one.
  void save(const std::string& path) const;

 private:
  std::map<std::string, LockEntry, std::less<>> entries_;
  std::map<std::string, LockedEngine, std::less<>> engines_;  // by model
  std::map<std::string, Environment> environments_;           // by id
  std::map<std::string, ProblemRange> ranges_;                // of the entries that have one, by their problem
};

/// The lock of the file that XPURUNTIME_LOCK names; null where it is not set or empty. A file that cannot be read or is
/// no lock is an error that names the variable.
std::shared_ptr<const KernelLock> lock_from_environment();

/// How a lock is obeyed. strict: an entry that was made in another environment is an error. revalidate: one made on
/// the same device with other software is checked first, and used if it still holds.
enum class LockMode : std::uint8_t { strict, revalidate };

/// A lock in force.
struct LockUse {
  std::shared_ptr<const KernelLock> lock = {};
  LockMode mode = LockMode::strict;

  bool operator==(const LockUse&) const = default;
};

/// One thing that two locks do not have in common.
struct LockDifference {
  std::string problem = {};  // or "model " and its digits
  /// "engine", "version", "target", "precision", "optimize_level" of a model; "kernel", "kernel_version", "plan",
  /// "workspace_bytes", "outputs"; "environment.openblas" and the like, of what the kernel depends on; "limits": the
  /// same problem under other limits; "entry": one lacks it
  std::string field = {};
  std::string before = {};
  std::string after = {};

  bool operator==(const LockDifference&) const = default;
};

/// Sorted by problem, that of the first lock where limits differ; empty: nothing differs. Hashes are compared where
/// both have one of the same seed.
std::vector<LockDifference> diff(const KernelLock& before, const KernelLock& after);

}  // namespace xpuruntime

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dispatch/decision_record.h"
#include "dispatch/signature.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

class DecisionRecord;
class Plan;
struct Prepared;

/// A signature and what to run for it: one row of a thread's decision table, or a cast that belongs to a decision.
struct alignas(64) TableEntry {
  void fill(std::shared_ptr<Prepared> made);
  /// Matches nothing from now on and lets its plan go.
  void empty();

  // What a warm call reads lies together, the first words of the signature too.
  TableEntry* next = nullptr;  // the entry that the call after this one's hit last time
  const Plan* plan = nullptr;
  const DecisionRecord* record = nullptr;
  bool asynchronous = false;
  bool plain = false;  // it needs neither a stream nor a workspace
  bool casts = false;
  bool sets_device = false;
  signature::Words signature = {};
  std::shared_ptr<Prepared> prepared = {};
};
static_assert(sizeof(TableEntry) == 192);

/// A plan in the plan cache, with what it takes to run it and to let it go.
struct CachedPlan {
  std::shared_ptr<const Kernel> kernel = {};  // keeps the kernel's address taken while it serves as a key
  std::unique_ptr<const Plan> plan = {};
  Device device = {};
  DeviceDriver* driver = nullptr;
  WorkspacePool* pool = nullptr;
  std::unique_ptr<std::atomic<bool>> queued = {};  // work of this plan may still be on a stream
};

/// A problem with its hash, held by all keys and records that name it: copying and hashing it costs more than choosing.
class SharedProblem {
 public:
  explicit SharedProblem(Problem problem)
      : problem_(std::make_shared<const Problem>(std::move(problem))), hash_(hash_of(*problem_)) {}

  const Problem& operator*() const { return *problem_; }
  const Problem* operator->() const { return problem_.get(); }
  std::uint64_t hash() const { return hash_; }

  friend bool operator==(const SharedProblem& a, const SharedProblem& b) {
    return a.problem_ == b.problem_ || (a.hash_ == b.hash_ && *a.problem_ == *b.problem_);
  }

 private:
  std::shared_ptr<const Problem> problem_;
  std::uint64_t hash_;
};

struct PlanKey {
  SharedProblem problem;
  const Kernel* kernel = nullptr;           // of the registry
  std::string token = {};                   // of the plan that was asked for; empty: the kernel chose
  std::vector<const Kernel*> copiers = {};  // of the copies that its plan makes

  bool operator==(const PlanKey&) const = default;
};

/// A problem as it was asked for, and the precision that the call itself demands.
struct Asked {
  SharedProblem problem;
  std::optional<DataType> precision = {};
};

/// What was decided for a problem in a scope, ready to run. Shared by all threads' tables.
struct Prepared {
  Asked asked;  // before any casts; the decision's problem is after them
  std::shared_ptr<DecisionRecord> record;
  std::shared_ptr<CachedPlan> plan;
  std::vector<TableEntry> casts = {};  // one for each of the decision's
};

struct DecisionKey {
  SharedProblem problem;
  std::uint64_t stamp = 0;
  std::optional<DataType> precision = {};

  bool operator==(const DecisionKey&) const = default;
};

}  // namespace xpuruntime

template <>
struct std::hash<xpuruntime::SharedProblem> {
  std::size_t operator()(const xpuruntime::SharedProblem& problem) const noexcept { return problem.hash(); }
};

template <>
struct std::hash<xpuruntime::PlanKey> {
  std::size_t operator()(const xpuruntime::PlanKey& key) const noexcept {
    return key.problem.hash() ^ std::hash<const void*>()(key.kernel);
  }
};

template <>
struct std::hash<xpuruntime::DecisionKey> {
  std::size_t operator()(const xpuruntime::DecisionKey& key) const noexcept {
    const std::uint64_t precision = key.precision ? static_cast<std::uint64_t>(*key.precision) + 1 : 0;
    return key.problem.hash() ^ (key.stamp ^ precision << 58) * 0x9e3779b97f4a7c15ULL;
  }
};

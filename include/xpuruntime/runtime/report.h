#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/graph/measure_engines.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {

/// A whole model in a report.
struct ReportModel {
  std::string name = {};
  SessionRecord record = {};             // which engine runs it, why, and what was passed over
  std::vector<EngineTime> engines = {};  // those that were measured, and why others were not
  std::vector<SessionStep> steps = {};   // by native; nothing where it does not take the model
  std::vector<CallTime> calls = {};      // their times
  std::uint64_t memory_bytes = 0;        // between inputs and outputs
};

/// Of a session: where native runs it, with its nodes, and the times of so many runs with these inputs.
ReportModel report_model(const Session& session, std::span<const Tensor> inputs, std::int64_t runs = 20);

/// What a report is about: the decisions of the lock, then `problems` as they would be decided here and now. Where that
/// is nothing at all, the problems of `against`; and where there is none either, sample_problems().
struct ReportOptions {
  std::string title = {};  // empty: made from what is shown
  std::vector<Problem> problems = {};
  /// Shown by the least and the largest problem of each part that has one kernel.
  std::vector<ProblemRange> ranges = {};
  std::vector<ReportModel> models = {};  // `problems` should have those of their calls
  std::shared_ptr<const KernelLock> lock = {};
  std::string lock_name = {};  // what the page calls it: its file
  /// The state before: what changed since then is shown.
  std::shared_ptr<const KernelLock> against = {};
  std::string against_name = {};
  /// Times of the alternatives, by the environment that each decision was made in.
  std::shared_ptr<const MeasurementStore> store = {};
  bool list_store = false;  // show all that the store holds, also what no other source names
};

/// The problems of a transformer block and of a CNN block: what `xrt demo` runs.
std::vector<Problem> sample_problems();

/// The user's own store, to read; null where there is none.
std::shared_ptr<const MeasurementStore> open_default_store();

/// The data of a report as one JSON document; docs/interfaces.md has its keys. Decides what is to be decided under the
/// policy in force on this thread; runs nothing.
std::string report_json(Runtime& runtime, const ReportOptions& options);

/// One HTML page that shows such a document. It is whole in itself: nothing is loaded from anywhere.
std::string report_page(std::string_view json);

/// Writes a page to a temporary name, syncs, renames: the file is the old one or the new one.
void save_report(const std::string& path, std::string_view page);

}  // namespace xpuruntime

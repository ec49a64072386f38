#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fields.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// What one environment knows about one problem: what a store keeps together. Lists are sorted by kernel and plan.
struct ProblemEntry {
  std::optional<TunedChoice> choice = {};
  std::vector<Measurement> measurements = {};
  std::vector<QuarantineEntry> quarantine = {};

  bool operator==(const ProblemEntry&) const = default;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return (choice ? 1 : 0) + measurements.size() + quarantine.size(); }
  /// The latest time in it.
  std::int64_t measured_at() const;

  /// Replaces what stands under the same keys.
  void put(const ProblemEntry& later);
  /// Takes what is newer by its time; of equal times the same one whichever side is merged into the other. Returns how
  /// many changed.
  std::size_t merge(const ProblemEntry& other);
  /// Removes what the filter means, of a problem whose op and environment it holds for. Returns how many went.
  std::size_t remove(const StoreFilter& filter);
  /// Keeps what the filter means, alone.
  void keep(const StoreFilter& filter);
};

using ProblemEntries = std::map<std::string, ProblemEntry, std::less<>>;

/// By problem. What cannot be a measurement (no name, times that are no times) is an error; bytes that are no text in
/// what a kernel said are replaced.
ProblemEntries by_problem(const TuneRecord& record, std::string_view function);
void append(TuneRecord& record, const ProblemEntry& entry);

/// Whether a problem's text is one of this op, by its canonical name.
bool is_of_op(std::string_view problem, std::string_view op);

// ---- as JSON: in a row of the store, and with its problem as a line of the exchange format ----

std::string to_json_line(const ProblemEntry& entry);
std::string to_json_line(const std::string& problem, const ProblemEntry& entry);
/// Reads the first of these.
ProblemEntry entry_from_json(std::string_view problem, std::string_view line);
/// Reads one line of the exchange format into `record`.
void add_entry(TuneRecord& record, const JsonValue& element);

template <>
struct FieldsOf<Environment> {
  static constexpr FieldRow<Environment> rows[] = {
      required_field<&Environment::device>("device"),
      required_field<&Environment::traits>("traits"),
      required_field<&Environment::versions>("versions"),
  };
};

}  // namespace xpuruntime

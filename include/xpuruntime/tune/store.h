#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xpuruntime/tune/environment.h"
#include "xpuruntime/tune/measurement.h"

namespace xpuruntime {

/// The part of a store that holds on one machine, frozen: what is put into the store later does not show here.
class StoreSnapshot {
 public:
  /// All that is known about one problem here.
  struct Entry {
    std::vector<Measurement> measurements = {};
    std::optional<TunedChoice> choice = {};
    std::vector<QuarantineEntry> quarantine = {};
    /// Where the store only has a choice of another environment of this device: why it must be measured again.
    std::string stale = {};
  };

  virtual ~StoreSnapshot() = default;
  /// By the problem's text; nothing if the store knows nothing about it here.
  virtual std::optional<Entry> find(std::string_view problem) const = 0;
  virtual std::size_t size() const = 0;  // problems
};

/// One row of a store, with where it was made.
struct StoreRow {
  Environment environment = {};
  TuneRecord record = {};
};

/// What a store holds, all of it or a part.
using StoreContents = std::vector<StoreRow>;

/// Which rows are meant; a field that is not set means all.
struct StoreFilter {
  std::optional<std::string> op = {};              // canonical name
  std::optional<std::string> kernel = {};          // name
  std::optional<std::string> environment_id = {};  // Environment::id
  std::optional<std::int64_t> older_than = {};     // seconds since 1970
};

/// Where measurements are kept. Narrow on purpose: a server for a fleet is another implementation. Every function is
/// safe from many threads and many processes at once; what throws has changed nothing.
class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;

  /// All of the record or nothing. What stands there under the same key (problem, kernel, plan, environment) is
  /// replaced by a newer one; rows of other environments are never touched.
  virtual void put(const Environment& environment, const TuneRecord& record) = 0;
  virtual std::shared_ptr<const StoreSnapshot> freeze(const Environment& here) const = 0;
  virtual StoreContents read(const StoreFilter& filter = {}) const = 0;
  /// Takes in what another store exported, keeping the newer where both have a key. Returns how many entries changed.
  virtual std::size_t merge(const StoreContents& contents) = 0;
  /// Removes what the filter means; at least one field must be set. Returns how many entries went.
  virtual std::size_t prune(const StoreFilter& filter) = 0;
  virtual std::string path() const = 0;
  virtual bool read_only() const = 0;
};

enum class StoreMode : std::uint8_t { read_write, read_only };

/// Opens or, to write, makes the file and its folder. A file that is no store, is damaged, or is of a newer version is
/// an error that says so; it is left as it is.
std::unique_ptr<MeasurementStore> open_store(const std::string& path, StoreMode mode = StoreMode::read_write);

/// XPURUNTIME_STORE, else xpuruntime/store.sqlite in the user's cache folder ($XDG_CACHE_HOME or ~/.cache).
std::string default_store_path();

/// The exchange format: one JSON document, one entry a line, sorted. docs/interfaces.md.
std::string to_json(const StoreContents& contents);
StoreContents store_contents_from_json(std::string_view json);

}  // namespace xpuruntime

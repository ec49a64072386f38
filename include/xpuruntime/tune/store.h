#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
    /// Not empty: the store only knows this problem from another environment of this device. The times and the choice
    /// are those; the text says why they must be measured again before they are used. What was quarantined there is
    /// not told: other software deserves another try.
    std::string stale = {};
  };

  virtual ~StoreSnapshot() = default;
  /// By the problem's text; nothing if the store knows nothing about it here. Safe from many threads.
  virtual std::optional<Entry> find(std::string_view problem) const = 0;
  virtual std::size_t size() const = 0;  // problems
};

/// What a store holds of one environment, sorted by problem, kernel and plan.
struct StoreRow {
  Environment environment = {};
  TuneRecord record = {};

  bool operator==(const StoreRow&) const = default;
};

/// What a store holds, all of it or a part; each environment once, sorted by its JSON.
using StoreContents = std::vector<StoreRow>;

/// Measurements, choices and quarantine entries together.
std::size_t entry_count(const StoreContents& contents);

/// Which entries are meant: those that every field holds for. A field that is not set holds for all.
struct StoreFilter {
  std::optional<std::string> op = {};              // canonical name
  std::optional<std::string> kernel = {};          // name; of a choice, the one that was chosen
  std::optional<std::string> environment_id = {};  // Environment::id
  std::optional<std::int64_t> older_than = {};     // seconds since 1970
};

/// Where measurements are kept. Narrow on purpose: a server for a fleet is another implementation. Every function is
/// safe from many threads and many processes at once; what throws has changed nothing.
class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;

  /// All of the record or nothing. It replaces what stands there under the same key, whatever the clocks said: what
  /// comes later is newer. Keys: problem, kernel, plan and environment of a measurement; problem and environment of a
  /// choice; problem, kernel and environment in the quarantine. Entries of other environments are never touched.
  virtual void put(const Environment& environment, const TuneRecord& record) = 0;
  virtual std::shared_ptr<const StoreSnapshot> freeze(const Environment& here) const = 0;
  virtual StoreContents read(const StoreFilter& filter = {}) const = 0;
  /// Takes in what another store exported, all of it or nothing. Where both have a key the later `measured_at` stays,
  /// and of equal ones always the same, whichever store is merged into the other. Returns how many entries changed.
  virtual std::size_t merge(const StoreContents& contents) = 0;
  /// Removes what the filter means; at least one field must be set. Returns how many entries went.
  virtual std::size_t prune(const StoreFilter& filter) = 0;
  /// Reads all there is. Any damage is an error that says where; freeze and read look at what they read alone.
  virtual void check() const = 0;
  virtual std::string path() const = 0;
  virtual bool read_only() const = 0;
};

enum class StoreMode : std::uint8_t { read_write, read_only };

/// Opens or, to write, makes the file and its folder. To read, one that is missing is an error, and one that is blank
/// (no bytes, or an SQLite file without tables) holds nothing yet. All who open a file share one connection of the
/// process: nothing but this may open or close it meanwhile, or its locks are lost. A file that is no store, is
/// damaged, is of a newer version, or that others than you and root could change is an error that says so; it is left
/// as it is. So is the name of a file that SQLite keeps beside a store (`-wal`, `-shm`, `-journal`).
std::unique_ptr<MeasurementStore> open_store(const std::string& path, StoreMode mode = StoreMode::read_write);

/// XPURUNTIME_STORE, else xpuruntime/store.sqlite in the user's cache folder ($XDG_CACHE_HOME or ~/.cache). An error
/// where none of them says a place.
std::string default_store_path();

/// The exchange format: one JSON document, one entry a line, sorted. docs/interfaces.md.
std::string to_json(const StoreContents& contents);
StoreContents store_contents_from_json(std::string_view json);

}  // namespace xpuruntime

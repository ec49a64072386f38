#include <algorithm>

#include "core/environment_variable.h"
#include "core/json_fields.h"
#include "core/sha256.h"
#include "tune/entry.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {
namespace {

// Version 2 has kernel_version, version 3 entries for ranges, version 4 engines of models. A lock without these is
// written as version 1, which older libraries read.
constexpr int latest_version = 4;

int version_of(const LockEntry& entry) { return has_ranges(entry.problem) ? 3 : entry.kernel_version.empty() ? 1 : 2; }

int version_of(const KernelLock& lock) {
  int version = lock.engines().empty() ? 1 : 4;
  for (const auto& [problem, entry] : lock.entries()) version = std::max(version, version_of(entry));
  return version;
}

constexpr int lock_depth = 4;  // the lock, its environments, one environment, its traits
constexpr std::size_t most_lock_bytes = std::size_t{256} << 20;
// Each entry is compared with its environment: one without end would cost as much for each.
constexpr std::size_t most_environment_bytes = std::size_t{64} << 10;

/// What is being read: entries name environments.
struct Document {
  int version = 1;
  std::map<std::string, Environment> environments = {};
  KernelLock lock = {};
};

template <class Entry>
std::string checksum_of(const Entry& entry);

void check_problem(const LockEntry& entry, const JsonValue& from) {
  try {
    const bool ranged = has_ranges(entry.problem);
    const std::string canonical =
        ranged ? to_string(parse_problem_range(entry.problem)) : to_string(parse_problem(entry.problem));
    if (canonical == entry.problem) return;
  } catch (const Error& error) {
    from.refuse(std::string("names a problem that cannot be read: ") + error.what());
  }
  from.refuse("has a problem that is not in its canonical form; record the lock again");
}

[[noreturn]] void refuse_damaged(const std::string& what, const char* sum, const JsonSource& source) {
  source.refuse(ErrorCode::corrupt_data, what + " does not fit its " + sum +
                                             ": it was damaged or edited by hand; take the file from version control, "
                                             "or record the lock again");
}

void read_version(Document& document, const JsonValue& from) {
  check_version(from, latest_version);
  document.version = from.json.get<int>();
}

void read_environments(Document& document, const JsonValue& from) {
  check_object(from);
  for (const auto& [id, json] : from.json.items()) {
    const JsonValue value = from.field(id, json);
    auto environment = value.as<Environment>();
    if (environment.to_json().size() > most_environment_bytes) {
      value.refuse("is larger than any environment may be, which is 64 KiB; record the lock again");
    }
    if (environment.id() != id) refuse_damaged("the environment " + shown(id), "id", from.source);
    document.environments.emplace(id, std::move(environment));
  }
}

void read_check(LockEntry& entry, const JsonValue& from) {
  if (entry.outputs.empty()) entry.seed = 0;
  if (from.as<std::string>() == checksum_of(entry)) return;
  refuse_damaged("the entry of " + shown(entry.problem), "checksum", from.source);
}

void read_engine_check(LockedEngine& engine, const JsonValue& from) {
  if (from.as<std::string>() == checksum_of(engine)) return;
  refuse_damaged("the engine of model " + shown(engine.model), "checksum", from.source);
}

void read_engines(Document& document, const JsonValue& from) {
  if (document.version < 4)
    from.refuse("is of locks from version 4 on; set its version to that, or record the lock again");
  if (!from.json.is_array()) from.refuse("must be a list");
  for (std::size_t i = 0; i < from.json.size(); ++i) {
    const JsonValue element = from.element(i);
    const auto engine = element.as<LockedEngine>();
    const auto environment = document.environments.find(engine.environment);
    if (environment == document.environments.end()) {
      element.refuse("names the environment " + shown(engine.environment) + ", which the lock does not hold");
    }
    if (document.lock.engines().contains(engine.model)) element.refuse("has a duplicate model; remove one");
    document.lock.add(engine, environment->second);
  }
}

void read_decisions(Document& document, const JsonValue& from) {
  if (!from.json.is_array()) from.refuse("must be a list");
  for (std::size_t i = 0; i < from.json.size(); ++i) {
    const JsonValue element = from.element(i);
    const auto entry = element.as<LockEntry>();
    check_problem(entry, element);
    if (const int needed = version_of(entry); needed > document.version) {
      element.refuse(std::string(needed == 3 ? "is of a range" : "has a kernel_version") +
                     ", which locks have from version " + std::to_string(needed) + " on, and this one says version " +
                     std::to_string(document.version) + "; set its version to that, or record the lock again");
    }
    const auto environment = document.environments.find(entry.environment);
    if (environment == document.environments.end()) {
      element.refuse("names the environment " + shown(entry.environment) + ", which the lock does not hold");
    }
    if (document.lock.find(entry.problem) != nullptr) element.refuse("has a duplicate problem; remove one");
    document.lock.add(entry, environment->second);
  }
}

}  // namespace

template <>
struct FieldsOf<LockEntry> {
  static constexpr FieldRow<LockEntry> rows[] = {
      required_field<&LockEntry::problem>("problem"),
      required_field<&LockEntry::kernel>("kernel"),
      required_field<&LockEntry::plan>("plan"),
      field<&LockEntry::workspace_bytes>("workspace_bytes"),
      required_field<&LockEntry::environment>("environment"),
      text_or_nothing<&LockEntry::kernel_version>("kernel_version"),
      text_or_nothing<&LockEntry::outputs>("outputs"),
      {"seed", field<&LockEntry::seed>("seed").read,
       [](const LockEntry& entry) { return entry.outputs.empty() ? left_out() : Json(entry.seed); }},
      {"check", read_check, nullptr, Presence::required},  // last: it is that of all the others
  };
};

template <>
struct FieldsOf<LockedEngine> {
  static constexpr FieldRow<LockedEngine> rows[] = {
      required_field<&LockedEngine::model>("model"),
      required_field<&LockedEngine::engine>("engine"),
      required_field<&LockedEngine::version>("version"),
      required_field<&LockedEngine::target>("target"),
      required_field<&LockedEngine::precision>("precision"),
      required_field<&LockedEngine::optimize_level>("optimize_level"),
      required_field<&LockedEngine::environment>("environment"),
      {"check", read_engine_check, nullptr, Presence::required},  // last: it is that of all the others
  };
};

template <>
struct FieldsOf<Document> {
  static constexpr FieldRow<Document> rows[] = {
      {"version", read_version, nullptr, Presence::required},
      {"environments", read_environments, nullptr, Presence::required},
      {"engines", read_engines, nullptr},
      {"decisions", read_decisions, nullptr, Presence::required},
  };
};

namespace {

/// Over the entry's canonical text: a flipped bit in a file is told from a choice. A name that is no UTF-8 is no name
/// of a kernel either: it reads back as another, and fails closed.
template <class Entry>
std::string checksum_of(const Entry& entry) {
  return Sha256().add(dump_json(written(entry))).finish().substr(0, 16);
}

JsonSource source_of(std::string_view function, const std::string& prefix) {
  return {function, prefix, "lock", lock_depth, {}, "record the lock again"};
}

}  // namespace

std::string KernelLock::to_json() const {
  const auto line_of = [](const auto& entry) {
    Json json = written(entry);
    json["check"] = checksum_of(entry);
    return dump_json(json);
  };
  std::string text = "{\n\"version\": " + std::to_string(version_of(*this)) + ",\n\"environments\": {";
  const char* separator = "\n";
  for (const auto& [id, environment] : environments_) {
    text += separator + dump_json(Json(id)) + ": " + environment.to_json();
    separator = ",\n";
  }
  text += "\n},\n";
  separator = "\"engines\": [\n";
  for (const auto& [model, engine] : engines_) {
    text += separator + line_of(engine);
    separator = ",\n";
  }
  text += std::string(engines_.empty() ? "" : "\n],\n") + "\"decisions\": [";
  separator = "\n";
  for (const auto& [problem, entry] : entries_) {
    text += separator + line_of(entry);
    separator = ",\n";
  }
  return text + "\n]\n}\n";
}

KernelLock KernelLock::from_json(std::string_view json) {
  return read_document<Document>(json, source_of("KernelLock::from_json", "lock text: ")).lock;
}

KernelLock KernelLock::load(const std::string& path) {
  const JsonSource source = source_of("KernelLock::load", "lock file '" + path + "': ");
  return read_document<Document>(read_text_file(path, source, most_lock_bytes), source).lock;
}

std::shared_ptr<const KernelLock> lock_from_environment() {
  constexpr const char* variable = "XPURUNTIME_LOCK";
  const char* const path = environment_variable(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  try {
    return std::make_shared<const KernelLock>(KernelLock::load(path));
  } catch (const Error& error) {
    fail(error.code(), "lock_from_environment", std::string(variable) + ": " + std::string(error.message()));
  }
}

void KernelLock::save(const std::string& path) const {
  write_file_atomically(path, to_json(), {"KernelLock::save", "lock file '" + path + "': ", "lock"});
}

}  // namespace xpuruntime

#include <algorithm>

#include "core/environment_variable.h"
#include "core/json_text.h"
#include "core/sha256.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {
namespace {

// Version 2 has kernel_version, version 3 entries for ranges. A lock without these is written as version 1, which older
// libraries read.
constexpr int latest_version = 3;

int version_of(const std::map<std::string, LockEntry, std::less<>>& entries) {
  int version = 1;
  for (const auto& [problem, entry] : entries) {
    version = std::max({version, entry.kernel_version.empty() ? 1 : 2, has_ranges(problem) ? 3 : 1});
  }
  return version;
}

constexpr int lock_depth = 4;  // the lock, its environments, one environment, its traits
constexpr std::size_t most_bytes = std::size_t{256} << 20;

constexpr std::string_view field_names[] = {"version", "environments", "decisions"};

Json entry_to_json(const LockEntry& entry) {
  Json json = {{"problem", entry.problem},
               {"kernel", entry.kernel},
               {"plan", entry.plan},
               {"workspace_bytes", entry.workspace_bytes},
               {"environment", entry.environment}};
  if (!entry.kernel_version.empty()) json["kernel_version"] = entry.kernel_version;
  if (!entry.outputs.empty()) {
    json["outputs"] = entry.outputs;
    json["seed"] = entry.seed;
  }
  return json;
}

/// On one line. A name that is no UTF-8 is no name of a kernel either: it reads back as another, and fails closed.
/// Over the entry's canonical text: a flipped bit in a file is told from a choice.
std::string checksum_of(const LockEntry& entry) {
  return Sha256().add(dump_json(entry_to_json(entry))).finish().substr(0, 16);
}

std::string read_text(const Json& object, std::string_view name, const std::string& place, const JsonSource& source) {
  const auto found = object.find(name);
  if (found == object.end()) source.refuse_field(place, "lacks \"" + std::string(name) + "\"; record the lock anew");
  if (!found->is_string()) source.refuse_field(place + "." + std::string(name), "must be a text; put it in quotes");
  return found->get<std::string>();
}

std::uint64_t read_count(const Json& value, const std::string& place, const JsonSource& source) {
  if (!value.is_number_unsigned()) source.refuse_field(place, "must be a whole number, 0 or more");
  return value.get<std::uint64_t>();
}

void check_problem(const LockEntry& entry, const std::string& place, const JsonSource& source) {
  try {
    const bool ranged = has_ranges(entry.problem);
    const std::string canonical =
        ranged ? to_string(parse_problem_range(entry.problem)) : to_string(parse_problem(entry.problem));
    if (canonical == entry.problem) return;
  } catch (const Error& error) {
    source.refuse_field(place, std::string("names a problem that cannot be read: ") + error.what());
  }
  source.refuse_field(place, "has a problem that is not in its canonical form; record the lock anew");
}

LockEntry read_entry(const Json& json, const std::string& place, const JsonSource& source) {
  constexpr std::string_view known[] = {"problem", "kernel", "plan", "workspace_bytes", "environment", "kernel_version",
                                        "outputs", "seed",   "check"};
  if (!json.is_object()) source.refuse_field(place, "must be an object");
  for (const auto& [name, value] : json.items()) {
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      source.refuse_unknown(place + "." + name, known);
    }
  }
  LockEntry entry;
  entry.problem = read_text(json, "problem", place, source);
  entry.kernel = read_text(json, "kernel", place, source);
  entry.plan = read_text(json, "plan", place, source);
  entry.environment = read_text(json, "environment", place, source);
  if (json.contains("workspace_bytes")) {
    entry.workspace_bytes = read_count(json["workspace_bytes"], place + ".workspace_bytes", source);
  }
  if (json.contains("kernel_version")) entry.kernel_version = read_text(json, "kernel_version", place, source);
  if (json.contains("outputs")) {
    entry.outputs = read_text(json, "outputs", place, source);
    entry.seed = json.contains("seed") ? read_count(json["seed"], place + ".seed", source) : 0;
  }
  if (read_text(json, "check", place, source) != checksum_of(entry)) {
    source.refuse(ErrorCode::corrupt_data, "the entry of " + shown(entry.problem) +
                                               " does not fit its checksum: it was damaged or edited by hand; take the "
                                               "file from version control, or record the lock anew");
  }
  check_problem(entry, place, source);
  return entry;
}

std::map<std::string, Environment> read_environments(const Json& json, const JsonSource& source) {
  if (!json.is_object()) source.refuse_field("environments", "must be an object");
  std::map<std::string, Environment> out;
  for (const auto& [id, value] : json.items()) {
    const std::string place = "environments." + id;
    Environment environment;
    try {
      environment = Environment::from_json(dump_json(value));
    } catch (const Error& error) {
      source.refuse_field(place, std::string("is wrong: ") + error.what());
    }
    if (environment.id() != id) {
      source.refuse(ErrorCode::corrupt_data, "the environment " + shown(id) +
                                                 " does not fit its id: it was damaged or edited by hand; take the "
                                                 "file from version control, or record the lock anew");
    }
    out.emplace(id, std::move(environment));
  }
  return out;
}

KernelLock parse_lock(std::string_view text, const JsonSource& source) {
  const Json json = parse_json(text, source);
  if (!json.is_object()) source.refuse(ErrorCode::corrupt_data, "a lock is a JSON object; check that it is one");
  for (const auto& [name, value] : json.items()) {
    if (std::find(std::begin(field_names), std::end(field_names), name) == std::end(field_names)) {
      source.refuse_unknown(name, field_names);
    }
  }
  for (const std::string_view name : field_names) {
    if (!json.contains(name)) {
      source.refuse(ErrorCode::corrupt_data, "field '" + std::string(name) + "' is missing; check that it is a lock");
    }
  }
  if (json["version"] != 1 && json["version"] != 2 && json["version"] != latest_version) {
    source.refuse_field("version", "must be 1, 2 or 3, the versions there are; record the lock anew with this library");
  }
  if (!json["decisions"].is_array()) source.refuse_field("decisions", "must be a list");
  const auto environments = read_environments(json["environments"], source);
  KernelLock lock;
  std::size_t index = 0;
  for (const Json& element : json["decisions"]) {
    const std::string place = "decisions[" + std::to_string(index++) + "]";
    const LockEntry entry = read_entry(element, place, source);
    const auto environment = environments.find(entry.environment);
    if (environment == environments.end()) {
      source.refuse_field(place,
                          "names the environment " + shown(entry.environment) + ", which the lock does not hold");
    }
    if (lock.find(entry.problem) != nullptr) source.refuse_field(place, "has a problem that stands twice; remove one");
    lock.add(entry, environment->second);
  }
  return lock;
}

}  // namespace

std::string KernelLock::to_json() const {
  std::string text = "{\n\"version\": " + std::to_string(version_of(entries_)) + ",\n\"environments\": {";
  const char* separator = "\n";
  for (const auto& [id, environment] : environments_) {
    text += separator + dump_json(Json(id)) + ": " + environment.to_json();
    separator = ",\n";
  }
  text += "\n},\n\"decisions\": [";
  separator = "\n";
  for (const auto& [problem, entry] : entries_) {
    Json json = entry_to_json(entry);
    json["check"] = checksum_of(entry);
    text += separator + dump_json(json);
    separator = ",\n";
  }
  return text + "\n]\n}\n";
}

KernelLock KernelLock::from_json(std::string_view json) {
  return parse_lock(json, {"KernelLock::from_json", "lock text: ", "lock", lock_depth});
}

KernelLock KernelLock::load(const std::string& path) {
  const JsonSource source = {"KernelLock::load", "lock file '" + path + "': ", "lock", lock_depth};
  return parse_lock(read_text_file(path, source, most_bytes), source);
}

std::shared_ptr<const KernelLock> lock_from_environment() {
  constexpr const char* variable = "XPURUNTIME_LOCK";
  const char* const path = environment_variable(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  try {
    return std::make_shared<const KernelLock>(KernelLock::load(path));
  } catch (const Error& error) {
    std::string_view text = error.what();
    if (const auto end = text.find("] "); end != text.npos) text.remove_prefix(end + 2);
    fail(error.code(), "lock_from_environment", std::string(variable) + ": " + std::string(text));
  }
}

void KernelLock::save(const std::string& path) const {
  write_file_atomically(path, to_json(), {"KernelLock::save", "lock file '" + path + "': ", "lock"});
}

}  // namespace xpuruntime

#include "xpuruntime/tune/environment.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "core/environment_variable.h"
#include "tune/checksum.h"
#include "tune/entry.h"

namespace xpuruntime {
namespace {

using Texts = std::map<std::string, std::string>;

void add(Texts& texts, const char* name, std::uint64_t value) {
  if (value != 0) texts[name] = std::to_string(value);
}

/// In one order, whichever the driver told them in.
std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : std::set<std::string>(words.begin(), words.end())) {
    text += (text.empty() ? "" : " ") + word;
  }
  return as_utf8(text);
}

/// The CPU's kernels obey these where neither problem nor policy says a number of threads.
std::string threads_variable() {
  for (const char* name : {"XPURUNTIME_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* const value = environment_variable(name);
    if (value != nullptr && *value != '\0') return as_utf8(value);
  }
  return {};
}

void add_cpu(Texts& traits, const DeviceProfile& profile) {
  if (!profile.cpu_features.empty()) traits["cpu_features"] = joined(profile.cpu_features);
  if (const std::string threads = threads_variable(); !threads.empty()) traits["threads"] = threads;
}

// No memory that is shared with the host: what a driver calls its size there follows what happens to be free.
void add_gpu(Texts& traits, const DeviceProfile& profile) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  if (!profile.integrated) add(traits, "memory_mib", profile.global_memory_bytes / mib);
  add(traits, "local_memory_bytes", profile.local_memory_bytes);
  if (profile.compute_capability_major != 0) {
    traits["compute_capability"] =
        std::to_string(profile.compute_capability_major) + "." + std::to_string(profile.compute_capability_minor);
  }
}

Texts traits_of(const DeviceProfile& profile) {
  Texts traits;
  add(traits, "cores", static_cast<std::uint64_t>(std::max(profile.compute_units, 0)));
  add(traits, "l1_bytes", profile.l1_bytes);
  add(traits, "l2_bytes", profile.l2_bytes);
  add(traits, "l3_bytes", profile.l3_bytes);
  if (profile.type == DeviceType::cpu) {
    add_cpu(traits, profile);
  } else {
    add_gpu(traits, profile);
  }
  return traits;
}

Texts versions_of(const DeviceProfile& profile) {
  Texts versions;
  for (const auto& [name, version] : profile.library_versions) versions[as_utf8(name)] = as_utf8(version);
  if (!profile.driver_version.empty()) versions["driver"] = as_utf8(profile.driver_version);
  versions["xpuruntime"] = XRT_VERSION;
  return versions;
}

// Features of a CPU are many words, of which a few differ: those are what a reader wants to see.
std::string words_without(const std::string& text, const std::string& other) {
  const auto words_of = [](std::string_view all) {
    std::vector<std::string_view> words;
    for (; !all.empty(); all.remove_prefix(std::min(all.size(), words.back().size() + 1))) {
      words.push_back(all.substr(0, all.find(' ')));
    }
    return words;
  };
  const auto others = words_of(other);
  const std::set<std::string_view> known(others.begin(), others.end());
  std::string rest;
  for (const std::string_view word : words_of(text)) {
    if (!known.contains(word)) rest += (rest.empty() ? "" : " ") + std::string(word);
  }
  return rest;
}

EnvironmentDifference difference(const std::string& name, const std::string& there, const std::string& here) {
  if (name != "cpu_features") return {name, there, here};
  return {name, words_without(there, here), words_without(here, there)};
}

/// What differs, by name; a name that one side lacks differs too.
void add_differences(const Texts& there, const Texts& here, std::vector<EnvironmentDifference>& found) {
  Texts all = there;
  all.insert(here.begin(), here.end());
  const auto text_in = [](const Texts& texts, const std::string& name) {
    const auto at = texts.find(name);
    return at == texts.end() ? std::string() : at->second;
  };
  for (const auto& [name, unused] : all) {
    const std::string a = text_in(there, name), b = text_in(here, name);
    if (there.contains(name) != here.contains(name) || a != b) found.push_back(difference(name, a, b));
  }
}

/// Where only one side was told a number of threads, the other one's is that of its cores.
void fill_threads(Texts& there, Texts& here) {
  if (there.contains("threads") == here.contains("threads")) return;
  Texts& silent = there.contains("threads") ? here : there;
  if (const auto cores = silent.find("cores"); cores != silent.end()) silent["threads"] = cores->second;
}

std::string sentence(const EnvironmentDifference& difference) {
  const char* only = difference.field == "cpu_features" ? "only " : "";
  const auto said = [](const std::string& text) { return text.empty() ? "none" : text; };
  return difference.field + " " + said(difference.there) + " " + only + "there, " + said(difference.here) + " " + only +
         "here";
}

}  // namespace

std::string Environment::to_json() const { return dump_json(written(*this)); }

Environment Environment::from_json(std::string_view json) {
  const JsonSource source = {"Environment::from_json", "environment text: ", "environment", 2, json};
  // Each entry of a lock is compared with its environment: one without end would cost as much for each.
  constexpr std::size_t most_bytes = std::size_t{64} << 10;
  if (json.size() > most_bytes) {
    source.refuse(ErrorCode::corrupt_data, "larger than any environment may be, which is 64 KiB; record it again");
  }
  return read_document<Environment>(json, source);
}

std::string Environment::id() const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(Checksum().add(std::string_view(to_json())).value()));
  return digits;
}

Environment environment_of(const DeviceProfile& profile) {
  const std::string name = profile.name.empty() ? "unnamed" : profile.name;
  const std::string vendor = profile.vendor.empty() ? "unknown" : profile.vendor;
  return {as_utf8(std::string(to_string(profile.type)) + " " + vendor + " " + name), traits_of(profile),
          versions_of(profile)};
}

std::string_view to_string(EntryVerdict verdict) {
  switch (verdict) {
    case EntryVerdict::same:
      return "same";
    case EntryVerdict::revalidate:
      return "revalidate";
    case EntryVerdict::refuse:
      return "refuse";
  }
  return "unknown";
}

std::vector<EnvironmentDifference> environment_differences(const Environment& there, const Environment& here) {
  if (there.device != here.device) return {difference("device", there.device, here.device)};
  std::vector<EnvironmentDifference> found;
  Texts before = there.traits, now = here.traits;
  fill_threads(before, now);
  add_differences(before, now, found);
  add_differences(there.versions, here.versions, found);
  return found;
}

EnvironmentMatch compare_environments(const Environment& there, const Environment& here) {
  EnvironmentMatch match;
  if (there == here) return match;
  for (const EnvironmentDifference& difference : environment_differences(there, here)) {
    // Cores, features and caches are what a container, a hypervisor or a setting makes of one device; these are not.
    if (difference.field == "device" || difference.field == "compute_capability") {
      return {EntryVerdict::refuse, sentence(difference)};
    }
    match.verdict = EntryVerdict::revalidate;
    match.reason += (match.reason.empty() ? "" : "; ") + sentence(difference);
  }
  return match;
}

}  // namespace xpuruntime

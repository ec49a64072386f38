#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "core/names.h"
#include "device/cpu_probe.h"

namespace xpuruntime {
namespace {

struct Implementer {
  unsigned id = 0;
  std::string_view vendor = {};
};
constexpr Implementer implementers[] = {
    {0x41, "arm"},    {0x42, "broadcom"}, {0x43, "cavium"},    {0x46, "fujitsu"}, {0x48, "hisilicon"},
    {0x4e, "nvidia"}, {0x50, "apm"},      {0x51, "qualcomm"},  {0x53, "samsung"}, {0x56, "marvell"},
    {0x61, "apple"},  {0x69, "intel"},    {0x6d, "microsoft"}, {0x70, "phytium"}, {0xc0, "ampere"},
};

struct Core {
  unsigned implementer = 0;
  unsigned part = 0;
  std::string_view name = {};
};
constexpr Core cores[] = {
    {0x41, 0xd03, "Cortex-A53"},
    {0x41, 0xd05, "Cortex-A55"},
    {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd09, "Cortex-A73"},
    {0x41, 0xd0a, "Cortex-A75"},
    {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse-N1"},
    {0x41, 0xd0d, "Cortex-A77"},
    {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd41, "Cortex-A78"},
    {0x41, 0xd44, "Cortex-X1"},
    {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"},
    {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse-N2"},
    {0x41, 0xd4a, "Neoverse-E1"},
    {0x41, 0xd4d, "Cortex-A715"},
    {0x41, 0xd4e, "Cortex-X3"},
    {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd80, "Cortex-A520"},
    {0x41, 0xd81, "Cortex-A720"},
    {0x41, 0xd82, "Cortex-X4"},
    {0x41, 0xd84, "Neoverse-V3"},
    {0x41, 0xd8e, "Neoverse-N3"},
    {0x43, 0x0af, "ThunderX2"},
    {0x46, 0x001, "A64FX"},
    {0x48, 0xd01, "TSV110"},
    {0x4e, 0x004, "Carmel"},
    {0x61, 0x022, "Apple M1 (Icestorm)"},
    {0x61, 0x023, "Apple M1 (Firestorm)"},
    {0x61, 0x024, "Apple M1 Pro (Icestorm)"},
    {0x61, 0x025, "Apple M1 Pro (Firestorm)"},
    {0x61, 0x028, "Apple M1 Max (Icestorm)"},
    {0x61, 0x029, "Apple M1 Max (Firestorm)"},
    {0x61, 0x032, "Apple M2 (Blizzard)"},
    {0x61, 0x033, "Apple M2 (Avalanche)"},
    {0x6d, 0xd49, "Azure Cobalt 100"},
    {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Cuts the text up to the next separator off its front.
std::string_view cut(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

/// A number like 0x41 or 8; -1 for anything else.
long parse_number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  return error == std::errc{} && end == text.data() + text.size() ? static_cast<long>(value) : -1;
}

std::string x86_vendor(std::string_view id) {
  if (id == "GenuineIntel") return "intel";
  if (id == "AuthenticAMD") return "amd";
  if (id == "HygonGenuine") return "hygon";
  if (id == "CentaurHauls" || id == "Shanghai") return "zhaoxin";
  return lowered(id);
}

/// Of the hundred and more flags of x86, those that a kernel may ask for.
bool is_arithmetic(std::string_view flag) {
  constexpr std::string_view others[] = {"ssse3", "fma", "f16c", "popcnt", "bmi1", "bmi2", "gfni"};
  return flag.starts_with("sse") || flag.starts_with("avx") || flag.starts_with("amx_") ||
         std::find(std::begin(others), std::end(others), flag) != std::end(others);
}

std::vector<std::string> parse_flags(std::string_view flags, bool x86) {
  std::vector<std::string> out;
  while (!flags.empty()) {
    std::string_view flag = trimmed(cut(flags, ' '));
    if (x86 && flag == "pni") flag = "sse3";
    if (flag.empty() || (x86 && !is_arithmetic(flag))) continue;
    if (!x86 && flag == "asimd") out.emplace_back("neon");
    out.emplace_back(flag);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Collects the lines of all processors.
class Reader {
 public:
  void line(std::string_view text) {
    const std::string_view key = trimmed(cut(text, ':'));
    const std::string_view value = trimmed(text);
    if (key == "vendor_id" && info_.vendor.empty()) info_.vendor = x86_vendor(value);
    if (key == "model name" && info_.name.empty()) info_.name = value;
    if (key == "CPU implementer" && implementer_ < 0) implementer_ = parse_number(value);
    if (key == "CPU part" && part_ < 0) part_ = parse_number(value);
    if (key == "flags") add_flags(value, true);
    if (key == "Features") add_flags(value, false);
  }

  CpuInfo done() && {
    if (implementer_ >= 0 && info_.vendor.empty()) info_.vendor = arm_vendor(static_cast<unsigned>(implementer_));
    if (implementer_ >= 0 && part_ >= 0 && info_.name.empty()) {
      info_.name = arm_core_name(static_cast<unsigned>(implementer_), static_cast<unsigned>(part_));
    }
    return std::move(info_);
  }

 private:
  // A thread may move to any processor, so only what all of them have counts. Mostly they are alike.
  void add_flags(std::string_view flags, bool x86) {
    if (has_flags_ && flags == last_flags_) return;
    std::vector<std::string> found = parse_flags(flags, x86);
    if (has_flags_) {
      std::erase_if(found, [this](const std::string& flag) {
        return !std::binary_search(info_.features.begin(), info_.features.end(), flag);
      });
    }
    info_.features = std::move(found);
    last_flags_ = flags;
    has_flags_ = true;
  }

  CpuInfo info_;
  long implementer_ = -1;
  long part_ = -1;
  bool has_flags_ = false;
  std::string_view last_flags_;
};

}  // namespace

CpuInfo parse_cpuinfo(std::string_view text) {
  Reader reader;
  while (!text.empty()) reader.line(cut(text, '\n'));
  return std::move(reader).done();
}

std::string arm_vendor(unsigned implementer) {
  for (const Implementer& known : implementers) {
    if (known.id == implementer) return std::string(known.vendor);
  }
  return "unknown";
}

std::string arm_core_name(unsigned implementer, unsigned part) {
  for (const Core& core : cores) {
    if (core.implementer == implementer && core.part == part) return std::string(core.name);
  }
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "aarch64 core 0x%02x/0x%03x", implementer, part);
  return text.data();
}

void set_arithmetic(DeviceProfile& profile) {
  const auto any = [&](std::initializer_list<std::string_view> features) {
    return std::any_of(features.begin(), features.end(),
                       [&](auto feature) { return profile.has_cpu_feature(feature); });
  };
  profile.fp64 = true;
  profile.fp16 = any({"avx512_fp16", "asimdhp"});
  profile.bf16 = any({"avx512_bf16", "amx_bf16", "bf16"});
  profile.int8 = any({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"});
  profile.fp8 = any({"f8fma", "amx_fp8"});
  profile.tensor_cores = any({"amx_tile", "sme"});
}

std::uint64_t parse_cache_size(std::string_view text) {
  text = trimmed(text.substr(0, text.find('\n')));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  // No cache reaches 2^40 bytes: such a text is garbage, and shifting it might overflow.
  if (shift < 0 || number >= std::uint64_t{1} << (40 - shift)) return 0;
  return number << shift;
}

}  // namespace xpuruntime

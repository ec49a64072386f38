#pragma once

#include <random>
#include <string>

#include "xpuruntime/select/policy.h"

namespace xpuruntime::testing {

inline PolicyRule rule_of(const std::string& when, const std::string& op = "conv2d") {
  return KernelPolicy::from_json(R"({"rules": [{"op": ")" + op + R"(", "use": "reference", "when": )" + when + "}]}")
      .rules.at(0);
}

/// Random conditions over few small values, so that they overlap often.
class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}

  PolicyRule rule() {
    std::string when;
    for (const char* key : {"m", "batch", "dtype", "deterministic", "device.compute_capability", "device.name",
                            "inputs.0.shape", "device.cpu_features", "inputs.0.shape.-1"}) {
      if (below(4) != 0) continue;
      when += (when.empty() ? "" : ", ") + std::string("\"") + key + "\": " + tests(key);
    }
    return rule_of("{" + when + "}", "matmul");
  }

  Problem problem() {
    static const char* const dtypes[] = {"f32", "bf16", "f16"};
    const std::string d = dtypes[below(3)];
    const std::string batch = below(2) ? std::to_string(below(4)) + "," : "";
    std::string text = "matmul(" + d + "[" + batch + number() + ",2], " + d + "[2,3])";
    return parse_problem(text + (below(2) ? " deterministic" : ""));
  }

  DeviceProfile profile() {
    DeviceProfile profile;
    profile.compute_capability_major = 7 + below(4);
    profile.name = text();
    for (const char* feature : {"a", "b", "c"}) {
      if (below(2)) profile.cpu_features.emplace_back(feature);
    }
    return profile;
  }

 private:
  int below(int bound) { return std::uniform_int_distribution(0, bound - 1)(random_); }
  std::string number() { return std::to_string(below(6)); }
  std::string text() {
    std::string out;
    for (int i = below(3); i >= 0; --i) out += static_cast<char>('x' + below(2));
    return out;
  }

  std::string value(const std::string& key) {
    static const char* const dtypes[] = {"\"f32\"", "\"bf16\"", "\"f16\""};
    if (key == "dtype") return dtypes[below(3)];
    if (key == "deterministic") return below(2) ? "true" : "false";
    if (key == "device.name") return "\"" + text() + "\"";
    if (key == "device.compute_capability") return std::to_string(7 + below(4));
    if (key == "inputs.0.shape") return below(2) ? number() : "[" + number() + ", 2]";
    return number();
  }

  std::string list(const std::string& key) {
    std::string out = value(key);
    for (int i = below(3); i > 0; --i) out += ", " + value(key);
    return "[" + out + "]";
  }

  std::string tests(const std::string& key) {
    if (key == "device.cpu_features") return below(2) ? R"({"contains": "a"})" : R"({"contains": ["a", "b"]})";
    const bool number_key = key == "m" || key == "batch" || key == "inputs.0.shape.-1";
    std::string out;
    const auto add = [&](const std::string& name, const std::string& operand) {
      out += (out.empty() ? "" : ", ") + std::string("\"") + name + "\": " + operand;
    };
    do {
      out.clear();
      if (key != "deterministic" && below(4) == 0) add("in", list(key));
      if (key != "deterministic" && below(4) == 0) add("not_in", list(key));
      if (below(5) == 0) add("==", value(key));
      if (below(4) == 0) add("!=", value(key));
      if (number_key || key == "device.compute_capability" || key == "inputs.0.shape") {
        for (const char* order : {"<", "<=", ">", ">="}) {
          if (below(4) == 0) add(order, key == "inputs.0.shape" ? number() : value(key));
        }
      }
      if ((number_key || key == "inputs.0.shape") && below(4) == 0) add("multiple_of", std::to_string(1 + below(4)));
      if (key == "device.name" && below(3) == 0) add("contains", value(key));
      if (key == "inputs.0.shape" && below(4) == 0) add("contains", number());
    } while (out.empty());
    return "{" + out + "}";
  }

  std::mt19937 random_;
};

}  // namespace xpuruntime::testing

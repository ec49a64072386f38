#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::testing {

/// A kernel that answers whatever a test wants and never runs.
class MadeUpKernel : public Kernel {
 public:
  explicit MadeUpKernel(std::string name) : name_(std::move(name)) {}

  std::function<Verdict()> verdict = [] { return Verdict::yes(); };
  std::uint64_t workspace = 0;
  bool same_bits = true;
  Directions ways = Directions::both;
  std::string code = {};  // as of the library
  OpId made_for = OpId::matmul;
  DeviceType type = DeviceType::cpu;

  OpId op() const override { return made_for; }
  std::string_view name() const override { return name_; }
  DeviceType device_type() const override { return type; }
  Directions directions() const override { return ways; }
  Verdict accepts(const Problem&, const DeviceProfile&) const override { return verdict(); }
  std::uint64_t workspace_bytes(const Problem&, const DeviceProfile&) const override { return workspace; }
  bool deterministic() const override { return same_bits; }
  std::string_view version() const override { return code; }
  std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view) const override {
    return nullptr;
  }

 private:
  std::string name_;
};

inline std::vector<std::shared_ptr<const Kernel>> kernels_named(std::initializer_list<const char*> names) {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const char* name : names) kernels.push_back(std::make_shared<MadeUpKernel>(name));
  return kernels;
}

}  // namespace xpuruntime::testing

// What precision costs: a lookup in the registry, and a warm decision under autocast, against PyTorch's dispatch of an
// op that does nothing through its autocast.

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "peers.h"
#include "timing.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

using Block = std::function<void(std::uint64_t)>;

constexpr int many_rules = 900;

/// An op with one kernel, which does nothing.
OpId nothing_op() {
  static const OpId op = [] {
    OpInfo info = op_info(OpId::matmul);
    info.name = "bench_nothing";
    info.aliases = {};
    return register_op(info);
  }();
  return op;
}

/// Ops of a program's own, for a registry with a rule for each.
std::vector<OpId> many_ops() {
  std::vector<OpId> ops;
  for (int i = 0; i < many_rules; ++i) {
    OpInfo info = op_info(OpId::add);
    const std::string name = "bench_op_" + std::to_string(i);
    info.name = name;
    info.aliases = {};
    ops.push_back(register_op(info));
  }
  return ops;
}

/// Lookups of four ops in turn, so that the branches of one are not learnt by heart.
Block lookup_block(const AmpRegistry& registry) {
  return [&registry](std::uint64_t calls) {
    constexpr OpId ops[] = {OpId::matmul, OpId::softmax, OpId::attention, OpId::add};
    for (std::uint64_t i = 0; i < calls; ++i) {
      DataType input = DataType::float32;
      asm volatile("" : "+r"(input));
      keep(registry.get_forward_dtype(ops[i % 4], input));
    }
  };
}

/// A product with its tensors.
struct Product {
  explicit Product(DataType dtype)
      : a(Tensor::empty(dtype, {128, 768})),
        b(Tensor::empty(dtype, {768, 768})),
        out(Tensor::empty(dtype, {128, 768})) {}
  Call call() const { return {nothing_op(), inputs, outputs}; }

  Tensor a, b, out;
  std::array<const Tensor*, 2> inputs = {&a, &b};
  std::array<const Tensor*, 1> outputs = {&out};
};

Block decide_block(Runtime& runtime, const Product& product, bool autocast) {
  return [&runtime, &product, autocast](std::uint64_t calls) {
    const ScopedAutocast scope(runtime.dispatcher(), runtime.amp(), autocast);
    const Call call = product.call();
    for (std::uint64_t i = 0; i < calls; ++i) keep(runtime.dispatcher().decide(call));
  };
}

Block scope_block(Runtime& runtime) {
  return [&runtime](std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      const ScopedAutocast scope(runtime.dispatcher(), runtime.amp());
      keep(scope);
    }
  };
}

/// Lookups while another thread changes rules without a pause.
double lookup_beside_a_writer(AmpRegistry& registry) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      registry.register_blacklist(OpId::gelu);
      registry.unregister(OpId::gelu);
    }
  });
  const double ns = ns_per_call(lookup_block(registry));
  stop = true;
  writer.join();
  return ns;
}

int run() {
  Runtime runtime({false, false, {}});
  runtime.registry().register_kernel(make_kernel(FunctionKernel{
      nothing_op(), "nothing", DeviceType::cpu, {}, [](const Problem&, const RunArguments&) { return Status(); }}));
  AmpRegistry many;
  for (const OpId op : many_ops()) many.register_blacklist(op);
  const Product low(DataType::bfloat16), wide(DataType::float32);
  std::string why;
  const auto torch = open_torch(why);
  std::vector<Block> blocks = {lookup_block(runtime.amp()),       lookup_block(many),
                               decide_block(runtime, low, false), decide_block(runtime, low, true),
                               decide_block(runtime, wide, true), scope_block(runtime)};
  if (torch) blocks.insert(blocks.end(), {torch->plain, torch->autocast});
  const std::vector<double> ns = ns_per_call_in_turn(blocks);
  const double beside = lookup_beside_a_writer(runtime.amp());

  const double peer = torch ? ns[7] : 0;
  Table table({"what", "ns", "of torch autocast", "bound"});
  const auto add = [&](const std::string& what, double time, const std::string& bound) {
    table.add({what, number(time, 2), peer > 0 ? number(time / peer, 3) : "-", bound});
  };
  add("lookup, " + std::to_string(runtime.amp().get_all_rules().size()) + " rules", ns[0], "<= 0.05 of torch autocast");
  add("lookup, " + std::to_string(many.get_all_rules().size()) + " rules", ns[1],
      number(ns[1] / ns[0], 2) + " of the row above: flat");
  add("lookup while a writer changes rules", beside, "never waits");
  add("warm decision without autocast", ns[2], "");
  add("warm decision under autocast, nothing to cast", ns[3],
      number(ns[3] / ns[2], 2) + " of the row above, <= 1.2; <= 0.167 of torch autocast");
  add("warm decision under autocast, three casts", ns[4], number(ns[4] / ns[2], 2) + " of the one without, <= 1.2");
  add("entering and leaving an autocast scope", ns[5], "");
  if (torch) {
    add("PyTorch " + torch->version + ", op that does nothing", ns[6], "");
    add("  through autocast", ns[7], "");
  }
  std::printf("\n");
  table.print();
  if (!torch) std::printf("PyTorch: not measured: %s\n", why.c_str());
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main() { return xpuruntime::bench::guarded("precision_bench", xpuruntime::bench::run); }

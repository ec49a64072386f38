// What a decision costs, warm and cold, against PyTorch's dispatch of an op that does nothing.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocations.h"
#include "peers.h"
#include "timing.h"
#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/cache/op_dispatcher.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime::bench {
namespace {

constexpr int candidates = 8;

/// A matrix product with no kernels but those of this benchmark.
OpId product_op() {
  static const OpId op = [] {
    OpInfo info = op_info(OpId::matmul);
    info.name = "bench_product";
    info.aliases = {};
    return register_op(info);
  }();
  return op;
}

constexpr std::int64_t depth = 64;      // of all products in rotation
constexpr std::int64_t most_rows = 64;  // 64 numbers of rows and 64 of columns: 4096 problems
constexpr std::int64_t most_columns = 64;

/// The tensors of all products of one dtype: one for a number of rows, one for a number of columns, as activations of
/// several lengths meet the weights of several layers. The kernels here do nothing with them, so they share memory.
struct Operands {
  explicit Operands(DataType dtype)
      : a(Tensor::empty(dtype, {most_rows, depth})),
        b(Tensor::empty(dtype, {depth, most_columns})),
        out(Tensor::empty(dtype, {most_rows, most_columns})) {
    for (std::int64_t m = 1; m <= most_rows; ++m) rows.push_back(part_of(a, {m, depth}));
    for (std::int64_t n = 1; n <= most_columns; ++n) columns.push_back(part_of(b, {depth, n}));
  }

  static Tensor part_of(const Tensor& memory, const Dims& shape) {
    return Tensor::view(memory.data(), memory.dtype(), shape);
  }

  Tensor a, b, out;
  std::vector<Tensor> rows, columns;
};

/// A product of one shape, with its output.
struct Product {
  Product(const Operands& operands, std::int64_t m, std::int64_t n)
      : out(Operands::part_of(operands.out, {m, n})),
        inputs{&operands.rows[static_cast<std::size_t>(m - 1)], &operands.columns[static_cast<std::size_t>(n - 1)]} {}

  Call call() const {
    static const Attributes attributes(product_op());
    return {product_op(), inputs, outputs, &attributes};
  }

  Tensor out;
  std::array<const Tensor*, 2> inputs;
  std::array<const Tensor*, 1> outputs = {&out};
};

/// Products of ever new shapes on the same memory.
class FreshProducts {
 public:
  Call call(std::int64_t k) {
    a_ = Tensor::view(memory_.data(), DataType::bfloat16, {1, k});
    b_ = Tensor::view(memory_.data(), DataType::bfloat16, {k, 1});
    return {product_op(), inputs_, outputs_, &attributes_};
  }

 private:
  Tensor memory_ = Tensor::empty(DataType::bfloat16, {1});
  Tensor a_, b_;
  Tensor out_ = Tensor::empty(DataType::bfloat16, {1, 1});
  Attributes attributes_{product_op()};
  std::array<const Tensor*, 2> inputs_ = {&a_, &b_};
  std::array<const Tensor*, 1> outputs_ = {&out_};
};

/// A runtime with eight kernels that do nothing, a policy, a user rule and a precision hook: all that may be asked is
/// asked.
class Bench {
 public:
  Bench() : runtime_({false, false, {}}) {
    KernelRegistry& registry = runtime_.registry();
    for (int i = 0; i < candidates; ++i) {
      const std::string name = "nothing_" + std::to_string(i);
      const bool last = i == candidates - 1;
      registry.register_kernel(make_kernel(FunctionKernel{
          product_op(), name, DeviceType::cpu,
          [last](const Problem&, const DeviceProfile&) { return last ? Verdict::yes() : Verdict::no("not this one"); },
          [](const Problem&, const RunArguments&) { return Status(); }}));
    }
    registry.get_or_create_selector({})->register_rule(
        product_op(), [](const Problem& problem, const DeviceProfile&) { return problem.inputs[0].shape[0] > 0; },
        "nothing_7", 1, "bench rule");
    KernelPolicy policy;
    policy.set("add", "reference");
    policy.workspace_limit_bytes = 1 << 30;
    runtime_.dispatcher().set_policy(policy);
    runtime_.dispatcher().set_precision_hook([](const Problem&) { return std::optional(DataType::bfloat16); });
    for (std::int64_t i = 0; i < most_rows * most_columns; ++i) {
      products_.push_back(std::make_unique<Product>(operands_, 1 + i % most_rows, 1 + i / most_rows));
    }
  }

  std::function<void(std::uint64_t)> lookup_block() {
    using Function = void (*)();
    auto table = std::make_shared<OpDispatcher<Function>>();
    table->register_all([] {});
    return [table](std::uint64_t calls) {
      for (std::uint64_t i = 0; i < calls; ++i) {
        DeviceType type = DeviceType::cpu;
        asm volatile("" : "+r"(type));
        keep(table->lookup(type));
      }
    };
  }

  std::function<void(std::uint64_t)> lru_block() {
    auto cache = std::make_shared<LRUCache<std::uint64_t, int>>(128);
    for (std::uint64_t key = 0; key < 64; ++key) cache->put(key, 1);
    return [cache](std::uint64_t calls) {
      for (std::uint64_t i = 0; i < calls; ++i) keep(cache->get(i % 64));
    };
  }

  std::function<void(std::uint64_t)> decide_block(std::size_t problems) {
    auto rotation = std::make_shared<std::vector<Call>>();
    for (std::size_t i = 0; i < problems; ++i) rotation->push_back(products_[i]->call());
    return [this, rotation](std::uint64_t calls) {
      Dispatcher& dispatcher = runtime_.dispatcher();
      for (std::uint64_t i = 0, at = 0; i < calls; ++i) {
        keep(dispatcher.decide((*rotation)[at]));
        if (++at == rotation->size()) at = 0;  // a division would cost as much as half a decision
      }
    };
  }

  /// The share of repeated decisions that this thread's table does not have.
  double misses(std::size_t problems) {
    constexpr std::size_t rounds = 10;
    const auto block = decide_block(problems);
    block(problems);
    const std::uint64_t before = runtime_.dispatcher().table_misses();
    block(rounds * problems);
    return static_cast<double>(runtime_.dispatcher().table_misses() - before) / static_cast<double>(rounds * problems);
  }

  std::function<void(std::uint64_t)> dispatch_block(bool logged) {
    return [this, logged](std::uint64_t calls) {
      const Call call = products_[0]->call();
      runtime_.dispatcher().enable_logging(logged ? 4096 : 0);
      for (std::uint64_t i = 0; i < calls; ++i) runtime_.dispatcher().dispatch(call);
    };
  }

  /// Of float32 tensors, which are cast on the way in and out.
  std::function<void(std::uint64_t)> autocast_block() {
    return [this](std::uint64_t calls) {
      const ScopedAutocast scope(runtime_.dispatcher(), runtime_.amp());
      const Call call = wide_.call();
      for (std::uint64_t i = 0; i < calls; ++i) runtime_.dispatcher().dispatch(call);
    };
  }

  /// What a warm call under autocast allocates, and how often it asks the device's pool for memory.
  std::string autocast_costs() {
    constexpr int calls = 1000;
    const ScopedAutocast scope(runtime_.dispatcher(), runtime_.amp());
    const WorkspacePool& pool = runtime_.devices().workspace({});
    for (int i = 0; i < 3; ++i) runtime_.dispatcher().dispatch(wide_.call());
    const long allocated = allocations();
    const std::uint64_t leased = pool.stats().acquired;
    for (int i = 0; i < calls; ++i) runtime_.dispatcher().dispatch(wide_.call());
    const auto per_call = [](auto count) { return number(static_cast<double>(count) / calls, 2); };
    return per_call(allocations() - allocated) + " allocations, " + per_call(pool.stats().acquired - leased) +
           " leases a call: 0";
  }

  double cold(bool with_plan_cached) {
    std::int64_t fresh = 1;
    return ns_per_call(
        [&](std::uint64_t calls) {
          for (std::uint64_t i = 0; i < calls; ++i) {
            if (with_plan_cached) {
              runtime_.registry().invalidate();  // the plan is known, the decision is not
              keep(runtime_.dispatcher().decide(products_[0]->call()));
            } else {
              keep(runtime_.dispatcher().decide(fresh_.call(++fresh)));
            }
          }
        },
        7);
  }

  Runtime& runtime() { return runtime_; }

 private:
  Runtime runtime_;
  Operands operands_{DataType::bfloat16}, wide_operands_{DataType::float32};
  Product wide_{wide_operands_, 8, 16};
  std::vector<std::unique_ptr<Product>> products_;
  FreshProducts fresh_;
};

/// Arithmetic in four chains at once, on registers: how two threads of this machine scale with nothing in common. Two
/// that share one core do not reach 2.
std::function<void(std::uint64_t)> arithmetic_block() {
  return [](std::uint64_t calls) {
    std::uint64_t a = 1, b = 2, c = 3, d = 4;
    for (std::uint64_t i = 0; i < calls; ++i) {
      for (int step = 0; step < 8; ++step) {
        a = (a ^ a >> 7) + i, b = (b ^ b >> 9) + i, c = (c ^ c >> 11) + i, d = (d ^ d >> 13) + i;
      }
      keep(a + b + c + d);
    }
  };
}

struct Row {
  std::string what;
  double ns;
  std::string bound;
};

constexpr Device gpu{DeviceType::nvidia, 0};

void need(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

/// Nanoseconds of the host for one of each launch, round by round: batches in turn, each short enough for the device's
/// queue, so that a slow spell hits all alike.
using LaunchTimes = std::vector<std::vector<double>>;
LaunchTimes time_launches(DeviceDriver& driver, const std::vector<std::function<void()>>& launches) {
  constexpr int rounds = 200, batch = 100;
  LaunchTimes times(launches.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int call = 0; call < batch; ++call) launches[i]();
      const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
      times[i].push_back(spent.count() / batch);
      need(driver.synchronize(gpu.index, {}));
    }
  }
  return times;
}

double least(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

/// How much longer one takes than another in the same round: the median.
double added(const std::vector<double>& longer, const std::vector<double>& shorter) {
  std::vector<double> differences(longer.size());
  std::transform(longer.begin(), longer.end(), shorter.begin(), differences.begin(), std::minus<>());
  std::nth_element(differences.begin(), differences.begin() + differences.size() / 2, differences.end());
  return differences[differences.size() / 2];
}

/// A small product on a GPU by one kernel, where there is one: its plan alone, and through a warm dispatch, beside the
/// smallest kernel there is, which writes four bytes. A library's is held against its plan, ours against that kernel.
void add_launches(std::vector<Row>& rows, std::string_view name, bool of_library) {
  Runtime& runtime = Runtime::global();
  DeviceDriver& driver = runtime.devices().driver(gpu);
  const Tensor a = runtime.devices().allocate(DataType::bfloat16, {1, 64}, gpu);
  const Tensor b = runtime.devices().allocate(DataType::bfloat16, {64, 64}, gpu);
  const Tensor out = runtime.devices().allocate(DataType::bfloat16, {1, 64}, gpu);
  const Tensor small = runtime.devices().allocate(DataType::float32, {1}, gpu);
  const float value = 1;
  const std::array<const Tensor*, 2> inputs = {&a, &b};
  const std::array<const Tensor*, 1> outputs = {&out};
  const Call call{OpId::matmul, inputs, outputs};
  KernelPolicy policy;
  policy.set("matmul", name);
  runtime.dispatcher().set_policy(policy);
  const Problem problem = runtime.dispatcher().decide(call).problem;
  for (const auto& kernel : runtime.registry().kernels(OpId::matmul, gpu.type)) {
    if (kernel->name() != name) continue;
    const auto plan = kernel->prepare(problem, {gpu, runtime.devices().profile(gpu), driver});
    const auto lease = runtime.devices().workspace(gpu).acquire(plan->workspace_bytes().value_or(0), {});
    const RunArguments arguments{inputs, outputs, lease.data(), {}};
    const auto dispatch = [&] { runtime.dispatcher().dispatch(call); };
    const LaunchTimes times =
        time_launches(driver, {[&] { need(driver.write_value(gpu.index, small.data(), &value, sizeof value, {})); },
                               [&] { need(plan->run(arguments)); }, dispatch});
    const long before = allocations();
    dispatch();
    const std::string allocated = number(static_cast<double>(allocations() - before), 0);
    rows.push_back({"CUDA, the smallest kernel", least(times[0]), ""});
    rows.push_back({"  a product by " + std::string(name), least(times[1]), ""});
    const std::string more = of_library ? "adds " + number(added(times[2], times[1])) + " to its plan, <= 150 ns; "
                                        : "adds " + number(added(times[2], times[0])) + " to the smallest, <= 300 ns; ";
    rows.push_back({"  through a warm dispatch", least(times[2]), more + allocated + " allocations: 0"});
  }
  runtime.dispatcher().set_policy({});
}

/// `torch`: what PyTorch's plain and autocast dispatch took; 0 where it was not measured.
void print(const std::vector<Row>& rows, double torch, double torch_autocast) {
  const auto ratio = [](double ns, double peer) { return peer > 0 ? number(ns / peer, 3) : "-"; };
  Table table({"what", "ns", "of torch", "of torch autocast", "bound"});
  for (const Row& row : rows) {
    table.add({row.what, number(row.ns), ratio(row.ns, torch), ratio(row.ns, torch_autocast), row.bound});
  }
  std::printf("\n");
  table.print();
}

int run() {
  Bench bench;
  std::string why;
  const auto torch = open_torch(why);
  std::vector<std::function<void(std::uint64_t)>> blocks = {
      bench.lookup_block(),        bench.lru_block(),          bench.decide_block(1),
      bench.decide_block(64),      bench.decide_block(2048),   bench.decide_block(4096),
      bench.dispatch_block(false), bench.dispatch_block(true), bench.autocast_block()};
  const std::size_t ours_end = blocks.size();
  // Before anything is timed: how long a block must be is measured on warm decisions.
  std::map<std::size_t, double> misses;
  for (const std::size_t problems : {64, 2048, 4096}) misses[problems] = bench.misses(problems);
  if (torch) blocks.insert(blocks.end(), {torch->plain, torch->autocast, torch->inference});
  const std::vector<double> ns = ns_per_call_in_turn(blocks);
  bench.runtime().dispatcher().disable_logging();
  const Scaling ours = two_threads([&] { return bench.decide_block(64); });
  const Scaling nothing_shared = two_threads([] { return arithmetic_block(); });
  const auto rotation = [&](std::size_t problems, double time) {
    return number(100 * misses[problems], 2) + " % misses, < 1; " + number(time / ns[2], 2) + " of 1 problem, <= 2";
  };

  std::vector<Row> rows = {
      {"OpDispatcher::lookup", ns[0], ""},
      {"LRUCache hit", ns[1], ""},
      {"warm decision, 1 problem, 1 thread", ns[2], "<= 0.2 of torch, goal 0.125"},
      {"warm decision, 64 problems, 1 thread", ns[3], "<= 0.2 of torch; " + rotation(64, ns[3])},
      {"warm decision, 2048 problems, 1 thread", ns[4], rotation(2048, ns[4])},
      {"warm decision, 4096 problems, 1 thread", ns[5], rotation(4096, ns[5])},
      {"  64 problems, 2 threads, per thread", ours.ns_both, "together " + number(ours.together(), 2) + "x, >= 1.9x"},
      {"  arithmetic that shares nothing, 2 threads", nothing_shared.ns_both,
       "together " + number(nothing_shared.together(), 2) + "x: what these cores give"},
      {"warm dispatch of a kernel that does nothing", ns[6], ""},
      {"  the same with logging", ns[7], "adds " + number(ns[7] - ns[6]) + ", <= 60 ns"},
      {"  the same under autocast, with its three casts", ns[8], bench.autocast_costs()},
      {"cold decision, 8 candidates, plan known", bench.cold(true), "<= 10000 ns"},
      {"cold decision, 8 candidates, new problem", bench.cold(false), "<= 10000 ns"},
  };
  if (Runtime::global().devices().has(gpu)) {
    add_launches(rows, "skinny", false);
    add_launches(rows, "cublasLt", true);
  }
  if (torch) {
    rows.push_back({"PyTorch " + torch->version + ", op that does nothing", ns[ours_end], ""});
    rows.push_back({"  through autocast", ns[ours_end + 1], ""});
    rows.push_back({"  in inference mode", ns[ours_end + 2], ""});
  }
  print(rows, torch ? ns[ours_end] : 0, torch ? ns[ours_end + 1] : 0);
  if (!torch) std::printf("PyTorch: not measured: %s\n", why.c_str());
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main() { return xpuruntime::bench::guarded("dispatch_bench", xpuruntime::bench::run); }

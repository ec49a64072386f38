#include "graph/onnx/node_order.h"

#include <map>
#include <queue>
#include <set>
#include <string_view>

#include "core/printable.h"
#include "graph/onnx/names.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

// Trees rather than hash tables throughout: a file can choose names whose hashes collide.

class NodeOrder {
 public:
  NodeOrder(const ModelGraph& graph, const std::vector<NodeReads>& reads) : graph_(graph), reads_(reads) {
    for (const ModelValue& input : graph.inputs) maker_.emplace(input.name, no_node);
    for (const auto& [name, tensor] : graph.constants) maker_.emplace(name, no_node);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) maker_.emplace(output, i);
    }
  }

  /// The places of the nodes in an order that is right.
  std::vector<std::size_t> sorted() {
    count_makers();
    // The first node that can run, so that as few as possible leave their place.
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready.push(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t node = ready.top();
      ready.pop();
      order.push_back(node);
      for (const std::size_t user : users_[node]) {
        if (--waits_[user] == 0) ready.push(user);
      }
    }
    if (order.size() < waits_.size()) refuse_cycle();
    return order;
  }

  bool is_sorted() const {
    bool sorted = true;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      each_maker(i, [&](std::size_t maker) { sorted &= maker < i; });
    }
    return sorted;
  }

  std::vector<std::string> outer_names() const {
    std::set<std::string_view> names;
    const auto add = [&](const std::string& name) {
      if (!name.empty() && !maker_.contains(name)) names.insert(name);
    };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) each_read(i, add);
    for (const ModelValue& output : graph_.outputs) add(output.name);
    return {names.begin(), names.end()};
  }

 private:
  static constexpr std::size_t no_node = SIZE_MAX;

  template <class Use>
  void each_read(std::size_t node, Use use) const {
    for (const std::string& name : graph_.nodes[node].inputs) use(name);
    for (const std::string& name : reads_[node]) use(name);
  }

  template <class Use>
  void each_maker(std::size_t node, Use use) const {
    each_read(node, [&](const std::string& name) {
      const auto found = name.empty() ? maker_.end() : maker_.find(name);
      if (found != maker_.end() && found->second != no_node) use(found->second);
    });
  }

  void count_makers() {
    waits_.resize(graph_.nodes.size());
    users_.resize(graph_.nodes.size());
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      each_maker(i, [&](std::size_t maker) {
        ++waits_[i];
        users_[maker].push_back(i);
      });
    }
  }

  /// Every node that still waits has a maker that does: going back from maker to maker ends in a cycle.
  [[noreturn]] void refuse_cycle() const {
    std::size_t node = 0;
    while (waits_[node] == 0) ++node;
    std::vector<bool> seen(waits_.size());
    while (!seen[node]) {
      seen[node] = true;
      std::size_t before = node;
      each_maker(node, [&](std::size_t maker) {
        if (waits_[maker] != 0) before = maker;
      });
      node = before;
    }
    fail(ErrorCode::corrupt_data, reader,
         node_text(graph_.nodes[node]) +
             " is on a cycle: it reads what is made from its own output; export the "
             "model again");
  }

  const ModelGraph& graph_;
  const std::vector<NodeReads>& reads_;
  std::map<std::string_view, std::size_t> maker_ = {};
  std::vector<std::size_t> waits_ = {};  // for how many inputs
  std::vector<std::vector<std::size_t>> users_ = {};
};

}  // namespace

std::vector<std::string> order_nodes(ModelGraph& graph, std::vector<NodeReads> reads) {
  NodeOrder order(graph, reads);
  std::vector<std::string> outer_names = order.outer_names();
  if (order.is_sorted()) return outer_names;
  std::vector<ModelNode> nodes;
  nodes.reserve(graph.nodes.size());
  for (const std::size_t node : order.sorted()) nodes.push_back(std::move(graph.nodes[node]));
  graph.nodes = std::move(nodes);
  return outer_names;
}

}  // namespace xpuruntime::onnx

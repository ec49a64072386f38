#include "backends/cpu/onednn/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <map>

#include "backends/cpu/base/thread_pool.h"
#include "core/fork_guard.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/device_manager.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::size_t most_arguments = 6;
constexpr std::uint64_t line = 64;

/// Memory objects for one call of a piece. Making them costs more than a small product, so they are kept and only told
/// new addresses.
class Arguments {
 public:
  explicit Arguments(const Piece& piece) {
    for (const auto& [id, description] : piece.arguments) {
      memories_.push_back(dnnl::memory(description, onednn_engine(), DNNL_MEMORY_NONE));
      list_[memories_.size() - 1] = {id, memories_.back().get()};
    }
  }
  std::size_t size() const { return memories_.size(); }
  const dnnl_exec_arg_t* list() const { return list_.data(); }
  void point(std::size_t argument, void* address) const {
    dnnl::dnnl_memory_set_data_handle(list_[argument].memory, address);
  }

 private:
  std::vector<dnnl::memory> memories_;
  std::array<dnnl_exec_arg_t, most_arguments> list_ = {};
};

/// A made primitive with as many sets of memory objects as one call's tasks need. Calls of one plan that overlap may
/// find none free; they make their own.
class Callable {
 public:
  Callable(const Piece& piece, int threads) : piece_(piece), primitive_(piece.description.get()) {
    sets_ = std::vector<Set>(static_cast<std::size_t>(threads));
    for (Set& set : sets_) set.arguments = std::make_unique<Arguments>(piece);
  }

  template <class Point>
  dnnl_status_t call(dnnl_stream_t stream, const Point& point) const {
    for (Set& set : sets_) {
      if (set.taken.exchange(true, std::memory_order_acquire)) continue;
      const dnnl_status_t status = call(stream, *set.arguments, point);
      set.taken.store(false, std::memory_order_release);
      return status;
    }
    return call(stream, Arguments(piece_), point);
  }

 private:
  struct alignas(line) Set {
    std::atomic<bool> taken = false;
    std::unique_ptr<const Arguments> arguments = {};
  };

  template <class Point>
  dnnl_status_t call(dnnl_stream_t stream, const Arguments& arguments, const Point& point) const {
    for (std::size_t i = 0; i < arguments.size(); ++i) arguments.point(i, point(i));
    return dnnl::dnnl_primitive_execute(primitive_.get(), stream, static_cast<int>(arguments.size()), arguments.list());
  }

  Piece piece_;
  dnnl::primitive primitive_;
  mutable std::vector<Set> sets_;
};

void* address_of(const Place& place, const RunArguments& arguments) {
  switch (place.base) {
    case Place::Base::input:
      return static_cast<std::byte*>(arguments.inputs[place.tensor]->as<void>()) + place.bytes;
    case Place::Base::output:
      return arguments.outputs[place.tensor]->as<std::byte>() + place.bytes;
    case Place::Base::workspace:
    case Place::Base::held:
      break;
  }
  return static_cast<std::byte*>(arguments.workspace) + place.bytes;
}

/// A program whose changes of layout of constants are made already.
class HeldProgram {
 public:
  HeldProgram(const Program& program, std::span<const Tensor* const> constants)
      : program_(program), constants_(constants) {
    std::vector<std::vector<Step>> tasks;
    for (const std::vector<Step>& task : program.tasks) tasks.push_back(without_conversions(task));
    program_.tasks = std::move(tasks);
    if (bytes_ == 0) return;
    close_gaps();
    memory_ = Tensor::empty(DataType::uint8, {bytes_});
    for (const Made& made : made_) convert(made);
  }

  bool holds_something() const { return bytes_ != 0; }
  Program& program() { return program_; }
  const Tensor& memory() const { return memory_; }

 private:
  struct Made {
    std::size_t piece = 0;
    Place from = {};
    Place held = {};
  };

  bool is_conversion(const Step& step) const {
    const auto& arguments = program_.pieces[step.piece].arguments;
    if (arguments[0].first != DNNL_ARG_FROM || arguments[1].first != DNNL_ARG_TO) return false;
    const Place &from = step.places[0], &to = step.places[1];
    return from.base == Place::Base::input && to.base == Place::Base::workspace && from.tensor < constants_.size() &&
           constants_[from.tensor] != nullptr;
  }

  std::vector<Step> without_conversions(const std::vector<Step>& task) {
    std::vector<std::pair<Place, Place>> moved;
    std::vector<Step> steps;
    for (Step step : task) {
      if (is_conversion(step)) {
        moved.emplace_back(step.places[1], place_for(step));
        continue;
      }
      for (Place& place : step.places) {
        for (const auto& [from, to] : moved) {
          if (place == from) place = to;
        }
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

  /// What the conversions wrote to takes no workspace any more.
  void close_gaps() {
    std::map<std::int64_t, std::uint64_t> sizes;  // by place
    const auto each_place = [&](const auto& visit) {
      for (std::vector<Step>& task : program_.tasks) {
        for (Step& step : task) {
          for (std::size_t i = 0; i < step.places.size(); ++i) {
            if (step.places[i].base == Place::Base::workspace) {
              visit(step.places[i], program_.pieces[step.piece].arguments[i].second.get_size());
            }
          }
        }
      }
    };
    each_place([&](const Place& place, std::uint64_t size) {
      std::uint64_t& most = sizes[place.bytes];
      most = std::max(most, size);
    });
    program_.workspace_bytes = 0;
    std::map<std::int64_t, std::int64_t> moved;
    for (const auto& [place, size] : sizes) {
      moved[place] = static_cast<std::int64_t>(program_.workspace_bytes);
      program_.workspace_bytes += (size + line - 1) / line * line;
    }
    each_place([&](Place& place, std::uint64_t) { place.bytes = moved[place.bytes]; });
  }

  /// Tasks that need the same share it.
  Place place_for(const Step& step) {
    const auto known = std::find_if(made_.begin(), made_.end(), [&](const Made& made) {
      return made.from == step.places[0] && same_layouts(made.piece, step.piece);
    });
    if (known != made_.end()) return known->held;
    const Place held = {Place::Base::held, 0, bytes_};
    const std::uint64_t bytes = program_.pieces[step.piece].arguments[1].second.get_size();
    bytes_ += static_cast<std::int64_t>((bytes + line - 1) / line * line);
    made_.push_back({step.piece, step.places[0], held});
    return held;
  }

  bool same_layouts(std::size_t one, std::size_t other) const {
    const auto &a = program_.pieces[one].arguments, &b = program_.pieces[other].arguments;
    return a[0].second == b[0].second && a[1].second == b[1].second;
  }

  void convert(const Made& made) const {
    const Piece& piece = program_.pieces[made.piece];
    const auto& arguments = piece.arguments;
    const std::uint64_t scratch = arguments.size() > 2 ? arguments[2].second.get_size() : 0;
    const Tensor room = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(scratch)});
    void* const places[] = {static_cast<std::byte*>(constants_[made.from.tensor]->as<void>()) + made.from.bytes,
                            memory_.as<std::byte>() + made.held.bytes, room.data()};
    const dnnl::stream stream(onednn_engine());
    const dnnl_status_t status = Callable(piece, 1).call(stream.get(), [&](std::size_t i) { return places[i]; });
    if (status != dnnl_success) fail(ErrorCode::device_error, "onednn", "a constant could not be converted");
  }

  Program program_;
  std::span<const Tensor* const> constants_;
  std::vector<Made> made_ = {};
  std::int64_t bytes_ = 0;
  Tensor memory_ = {};
};

class ProgramPlan final : public Plan {
 public:
  explicit ProgramPlan(std::shared_ptr<const Program> program, std::function<Program()> make_held = {},
                       Tensor held = {})
      : program_(std::move(program)), make_held_(std::move(make_held)), held_(std::move(held)) {
    for (const Piece& piece : program_->pieces) {
      callables_.push_back(std::make_unique<const Callable>(piece, program_->threads));
    }
  }

  Status run(const RunArguments& arguments) const override {
    std::atomic<dnnl_status_t> failure = dnnl_success;
    parallel_tasks(static_cast<std::int64_t>(program_->tasks.size()), program_->threads, [&](std::int64_t task) {
      const dnnl_status_t status = run_task(arguments, task);
      if (status != dnnl_success) failure.store(status, std::memory_order_relaxed);
    });
    if (const dnnl_status_t status = failure.load(); status != dnnl_success) {
      return {ErrorCode::device_error, "oneDNN ended with status " + std::to_string(status) + "; use another kernel"};
    }
    return {};
  }

  std::string token() const override { return program_->token; }

  std::unique_ptr<const Plan> with_constants(std::span<const Tensor* const> constants) const override {
    const ForkHold hold;
    const bool has_own = make_held_ && constants[1] != nullptr;
    HeldProgram held(has_own ? make_held_() : *program_, constants);
    const bool fits = held.program().workspace_bytes <= program_->workspace_bytes || !has_own;
    if (!held.holds_something() || !fits) return nullptr;
    return std::make_unique<ProgramPlan>(std::make_shared<const Program>(std::move(held.program())),
                                         std::function<Program()>(), held.memory());
  }

 private:
  dnnl_status_t run_task(const RunArguments& arguments, std::int64_t task) const {
    for (const Step& step : program_->tasks[static_cast<std::size_t>(task)]) {
      const dnnl_status_t status = callables_[step.piece]->call(stream_.get(), [&](std::size_t i) -> void* {
        const Place& place = step.places[i];
        return place.base == Place::Base::held ? held_.as<std::byte>() + place.bytes : address_of(place, arguments);
      });
      if (status != dnnl_success) return status;
    }
    if (program_->finish) program_->finish(arguments, task);
    return dnnl_success;
  }

  std::shared_ptr<const Program> program_;
  std::function<Program()> make_held_;
  Tensor held_;
  std::vector<std::unique_ptr<const Callable>> callables_;
  dnnl::stream stream_ = dnnl::stream(onednn_engine());
};

/// The programs asked for last, newest first.
class Recent {
 public:
  std::shared_ptr<const Program> find(const Problem& problem) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.first == problem; });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return found->second;
  }
  void keep(const Problem& problem, std::shared_ptr<const Program> program) {
    const std::lock_guard lock(mutex_);
    entries_.emplace_front(problem, std::move(program));
    if (entries_.size() > 16) entries_.pop_back();
  }

 private:
  Mutex mutex_;
  std::list<std::pair<Problem, std::shared_ptr<const Program>>> entries_;
};

// Never destroyed, like the engine: descriptions may not outlive oneDNN's own static objects.
Recent& recent() {
  static Recent& instance = *new Recent;
  return instance;
}

}  // namespace

const dnnl::engine& onednn_engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr onednn_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::size_t ProgramBuilder::piece(const dnnl::primitive_desc_base& description,
                                  std::vector<std::pair<int, dnnl::memory::desc>> arguments) {
  const dnnl::memory::desc scratch = description.scratchpad_desc();
  if (scratch.get_size() > 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratch);
  program_.pieces.push_back({description, std::move(arguments)});
  return program_.pieces.size() - 1;
}

Place ProgramBuilder::workspace(std::uint64_t bytes) {
  const Place place = {Place::Base::workspace, 0, static_cast<std::int64_t>(program_.workspace_bytes)};
  program_.workspace_bytes += (bytes + line - 1) / line * line;
  return place;
}

Conversion ProgramBuilder::conversion(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                      const dnnl::memory::desc& buffer) {
  if (from == to) return {};
  const dnnl::reorder::primitive_desc reorder(onednn_engine(), from, onednn_engine(), to, onednn_attributes());
  return {piece(reorder, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}), buffer.get_size()};
}

Place ProgramBuilder::converted(const Conversion& conversion, const Place& from) {
  if (conversion.bytes == 0) return from;
  const Place to = workspace(conversion.bytes);
  step(conversion.piece, {from, to});
  return to;
}

void ProgramBuilder::begin_task() {
  program_.tasks.emplace_back();
  scratch_bytes_ = 0;
}

void ProgramBuilder::step(std::size_t piece, std::vector<Place> places) {
  const auto& arguments = program_.pieces[piece].arguments;
  if (arguments.size() > places.size()) {
    const std::uint64_t bytes = arguments.back().second.get_size();
    if (bytes > scratch_bytes_) scratch_ = workspace(bytes);
    scratch_bytes_ = std::max(scratch_bytes_, bytes);
    places.push_back(scratch_);
  }
  program_.tasks.back().push_back({piece, std::move(places)});
}

namespace {

// The last few are kept, as the question for the workspace comes before the preparation.
std::shared_ptr<const Program> program_for(const Problem& problem, MakeProgram make) try {
  if (auto found = recent().find(problem)) return found;
  if (const std::string& why = why_no_onednn(); !why.empty()) fail(ErrorCode::not_supported, "onednn", why);
  const ForkHold hold;
  auto program = std::make_shared<const Program>(make(problem));
  recent().keep(problem, program);
  return program;
} catch (const dnnl::error& error) {
  fail(ErrorCode::not_supported, "onednn", std::string(error.what()) + "; use another kernel");
}

}  // namespace

std::uint64_t program_workspace(const Problem& problem, const DeviceProfile& profile, MakeProgram make) {
  static const auto& here = *new std::vector<std::string>(probe_cpu().cpu_features);
  if (profile.cpu_features != here) {
    fail(ErrorCode::not_supported, "onednn", "its workspace is known only on the machine itself; ask there");
  }
  return program_for(problem, make)->workspace_bytes;
}

std::unique_ptr<const Plan> prepare_program(const Problem& problem, MakeProgram make, MakeProgram make_held) {
  const ForkHold hold;  // oneDNN keeps primitives in a cache of its own
  std::function<Program()> held;
  if (make_held != nullptr) held = [problem, make_held] { return make_held(problem); };
  return std::make_unique<ProgramPlan>(program_for(problem, make), std::move(held));
}

}  // namespace xpuruntime::cpu

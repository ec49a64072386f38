#include <gtest/gtest.h>

#include <random>

#include "graph/program/program.h"

namespace xpuruntime::native {
namespace {

int add_slot(Program& program, Slot::Kind kind, std::int64_t elements, int base = -1) {
  program.slots.push_back({.kind = kind, .spec = make_spec(DataType::float32, {elements}), .base = base});
  return static_cast<int>(program.slots.size() - 1);
}

/// Steps that read some of what was made before, sometimes by a view, and make one or two tensors.
Program random_program(std::mt19937& random) {
  Program program;
  std::vector<int> made = {add_slot(program, Slot::Kind::input, 7)};
  const int steps = 1 + static_cast<int>(random() % 30);
  for (int i = 0; i < steps; ++i) {
    Step step;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      const int from = made[random() % made.size()];
      if (random() % 4 == 0) {
        const auto elements = program.slots[static_cast<std::size_t>(from)].spec.shape[0];
        step.inputs.push_back(add_slot(program, Slot::Kind::view, elements, base_of(program, from)));
      } else {
        step.inputs.push_back(from);
      }
    }
    for (std::size_t n = 1 + random() % 2; n > 0; --n) {
      step.outputs.push_back(add_slot(program, Slot::Kind::memory, static_cast<std::int64_t>(random() % 3000)));
    }
    program.steps.push_back(step);
    made.insert(made.end(), step.outputs.begin(), step.outputs.end());
  }
  const int last = program.steps.back().outputs.back();
  program.slots[static_cast<std::size_t>(last)].kind = Slot::Kind::output;
  program.outputs = {last};
  return program;
}

/// Runs the program on numbered bytes: each step writes its own number over its outputs, and finds in its inputs what
/// their makers wrote.
void check_by_running(const Program& program) {
  std::vector<int> memory(program.memory_bytes, -1);
  std::vector<int> maker(program.slots.size(), -1);
  const auto bytes_of = [&](int slot) {
    const Slot& at = program.slots[static_cast<std::size_t>(slot)];
    return std::pair(at.place, at.kind == Slot::Kind::memory ? span_bytes(at.spec) : 0);
  };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    for (const int output : step.outputs) {  // written while the inputs are still read
      const auto [place, size] = bytes_of(output);
      ASSERT_LE(place + size, program.memory_bytes);
      std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(place), size, static_cast<int>(i));
      maker[static_cast<std::size_t>(output)] = static_cast<int>(i);
    }
    for (const int input : step.inputs) {
      const int base = base_of(program, input);
      const auto [place, size] = bytes_of(base);
      for (std::uint64_t at = place; at < place + size; ++at) {
        ASSERT_EQ(memory[at], maker[static_cast<std::size_t>(base)]) << "step " << i << ", slot " << base;
      }
    }
  }
}

TEST(MemoryPlan, NothingIsOverwrittenThatIsStillRead) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    Program program = random_program(random);
    plan_memory(program);
    check_by_running(program);
  }
}

TEST(MemoryPlan, AChainNeedsTwoTensors) {
  Program program;
  int last = add_slot(program, Slot::Kind::input, 256);
  for (int i = 0; i < 20; ++i) {
    const int next = add_slot(program, Slot::Kind::memory, 256);
    program.steps.push_back({.inputs = {last}, .outputs = {next}});
    last = next;
  }
  program.outputs = {last};
  plan_memory(program);
  EXPECT_EQ(program.memory_bytes, 2u * 256 * 4);
}

TEST(MemoryPlan, ALargerTensorTakesTheFreeEndAlong) {
  Program program;
  const int input = add_slot(program, Slot::Kind::input, 1);
  const int small = add_slot(program, Slot::Kind::memory, 16), result = add_slot(program, Slot::Kind::memory, 16);
  const int large = add_slot(program, Slot::Kind::memory, 64);
  program.steps = {{.inputs = {input}, .outputs = {result}},
                   {.inputs = {result}, .outputs = {small}},
                   {.inputs = {result}, .outputs = {large}}};
  program.outputs = {large};
  plan_memory(program);
  EXPECT_EQ(program.memory_bytes, (16u + 64u) * 4);
}

/// x through three activations and a sum with the first's result.
Program chain_of_activations(OpId op, std::int64_t elements) {
  Program program;
  const auto add = [&](OpId of, std::vector<int> inputs, Slot::Kind kind = Slot::Kind::memory) {
    const int made = add_slot(program, kind, elements);
    program.steps.push_back({.op = of, .inputs = std::move(inputs), .outputs = {made}});
    return made;
  };
  const int first = add(op, {add_slot(program, Slot::Kind::input, elements)});
  const int second = add(op, {first});
  const int sum = add(OpId::add, {add(op, {second}), first});
  program.outputs = {add(op, {sum}, Slot::Kind::output)};
  plan_memory(program);
  return program;
}

TEST(MemoryPlan, CallsThatMayWriteOverWhatNothingReadsLater) {
  const std::uint64_t bytes = 8192 * 4;
  EXPECT_EQ(chain_of_activations(OpId::relu, 8192).memory_bytes, 2 * bytes);     // the first's result is still read
  EXPECT_EQ(chain_of_activations(OpId::softmax, 8192).memory_bytes, 3 * bytes);  // its row lets nothing be overwritten
}

TEST(MemoryPlan, NothingIsWrittenOverTheMemoryOfTwoReaders) {
  Program program;
  const int input = add_slot(program, Slot::Kind::input, 8192), made = add_slot(program, Slot::Kind::memory, 8192);
  const int half = add_slot(program, Slot::Kind::view, 8192, made), sum = add_slot(program, Slot::Kind::memory, 8192);
  const int result = add_slot(program, Slot::Kind::output, 8192);
  program.steps = {{.op = OpId::relu, .inputs = {input}, .outputs = {made}},
                   {.op = OpId::add, .inputs = {made, half}, .outputs = {sum}},  // another name of the same bytes
                   {.op = OpId::relu, .inputs = {sum}, .outputs = {result}}};
  program.outputs = {result};
  plan_memory(program);
  EXPECT_NE(program.slots[static_cast<std::size_t>(sum)].place, program.slots[static_cast<std::size_t>(made)].place);
}

TEST(MemoryPlan, TheCpuHasMemoryOfItsOwn) {
  Program program;
  const int input = add_slot(program, Slot::Kind::input, 8192), copied = add_slot(program, Slot::Kind::memory, 8192);
  const int made = add_slot(program, Slot::Kind::memory, 8192), back = add_slot(program, Slot::Kind::memory, 8192);
  const int result = add_slot(program, Slot::Kind::output, 8192);
  for (const int slot : {copied, made}) program.slots[static_cast<std::size_t>(slot)].on_cpu = true;
  program.steps = {{.inputs = {input}, .outputs = {copied}, .is_transfer = true},
                   {.op = OpId::relu, .inputs = {copied}, .outputs = {made}},  // writes over it
                   {.inputs = {made}, .outputs = {back}, .is_transfer = true},
                   {.op = OpId::relu, .inputs = {back}, .outputs = {result}}};
  program.outputs = {result};
  plan_memory(program);
  EXPECT_EQ(program.memory_bytes, 8192u * 4);
  EXPECT_EQ(program.cpu_memory_bytes, 8192u * 4);
}

TEST(DropUnused, KeepsWhatOutputsNeedThroughViews) {
  Program program;
  const int input = add_slot(program, Slot::Kind::input, 4), needed = add_slot(program, Slot::Kind::memory, 4);
  const int view = add_slot(program, Slot::Kind::view, 4, needed), unused = add_slot(program, Slot::Kind::memory, 4);
  const int result = add_slot(program, Slot::Kind::memory, 4);
  program.steps = {{.inputs = {input}, .outputs = {needed}},
                   {.inputs = {needed}, .outputs = {unused}},
                   {.inputs = {view}, .outputs = {result}}};
  program.notes = {{.node = 0, .step = 0, .slot = needed},
                   {.node = 1, .step = 1, .slot = unused},
                   {.node = 2, .kind = StepKind::view, .slot = view},
                   {.node = 3, .step = 2, .slot = result}};
  program.outputs = {result};
  drop_unused(program);
  ASSERT_EQ(program.steps.size(), 2u);
  EXPECT_EQ(program.steps[1].outputs, std::vector<int>{result});
  ASSERT_EQ(program.notes.size(), 3u);
  EXPECT_EQ(program.notes[2].step, 1u);
}

}  // namespace
}  // namespace xpuruntime::native

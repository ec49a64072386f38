#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::bench {

/// Somebody who computes one problem, again and again: a kernel of ours, PyTorch, ONNX Runtime.
class Contender {
 public:
  virtual ~Contender() = default;

  /// Seconds of wall time that `calls` calls took.
  virtual double run(std::uint64_t calls) = 0;

  /// The first output of the last call, contiguous; good until the next one.
  virtual Tensor output() = 0;
};

/// Another library that is installed here.
class Peer {
 public:
  virtual ~Peer() = default;

  virtual std::string version() const = 0;

  /// Nothing where the peer has no such op, with the reason in `why`. The inputs outlive what is made.
  virtual std::unique_ptr<Contender> make(const Problem& problem, std::span<const Tensor> inputs, std::string& why) = 0;

  /// Seconds of processor time it has used outside this process: who waits for silence asks.
  virtual double seconds_used() const { return 0; }
};

// Nothing where the peer is not installed; `why` then says so in one line.
std::unique_ptr<Peer> open_torch_ops(int threads, std::string& why);
std::unique_ptr<Peer> open_ort(int threads, std::string& why);

/// What torch_ops_peer exports, as "make_torch_peer".
using MakeTorchPeer = Peer* (*)(int threads);

}  // namespace xpuruntime::bench

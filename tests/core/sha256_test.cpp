#include "core/sha256.h"

#include <gtest/gtest.h>

#include <vector>

namespace xpuruntime {
namespace {

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 7 + 1) % 256);
  return bytes;
}

struct Known {
  std::size_t bytes;
  const char* digest;  // by Python's hashlib
};

constexpr Known vectors[] = {
    {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"},
    {3, "ce562c676ea7aba9812f54db146b0096011bf3e423edfb0a6f8fb2b02674a801"},
    {55, "16fa57a0a3423a715d594516339f36189d6b5f93754a9714fef202616a9fabfe"},
    {56, "c37b44e5f1b18554b36966f4f8e08bfbf3164c4b6c10374d12d89850892073c5"},
    {63, "bbba992d2c85af960fb2987a1fd05e0aa82a3db3c740dd8982a9e273b75e36a3"},
    {64, "66bd4633ed6f71c4ecfa4763bf7ba1c8ec7612de9aa6c0578a7b675207c71e0b"},
    {65, "9f7dc47107b750a1f3d35db5d9547f24ef40da5b731b9540d4f43710a154f6c9"},
    {119, "a3ed307b730fa77c07531300c6e4a282330011d4d4caf6bb7b63ae05950f4b66"},
    {120, "8e3b15d9fea7472655aa069620b7f8c2e55ee1499f763200a7515fe826e99d20"},
    {128, "e462c130fef8c97e34f7dc3ff3ad2f8b3533ab849af21c10531552a2852387a4"},
    {1000, "095ecb62e30793ab4b954cd6a0586d0cc91f7ea5b1332694d8da780e98676d78"},
};

TEST(Sha256, AgreesWithPythonAtEveryEdgeOfABlock) {
  for (const Known& known : vectors)
    EXPECT_EQ(Sha256().add(bytes_of(known.bytes)).finish(), known.digest) << known.bytes;
}

TEST(Sha256, DoesNotMindHowTheBytesAreCut) {
  for (const Known& known : vectors) {
    for (const std::size_t piece : {1u, 7u, 64u, 100u}) {
      const auto bytes = bytes_of(known.bytes);
      Sha256 hash;
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        hash.add(std::span(bytes).subspan(at, std::min<std::size_t>(piece, bytes.size() - at)));
      }
      EXPECT_EQ(hash.finish(), known.digest) << known.bytes << " in pieces of " << piece;
    }
  }
}

TEST(Sha256, ReadsTextAsItsBytes) {
  EXPECT_EQ(Sha256().add("abc").finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace xpuruntime

// op_words DICTIONARY: prints a dictionary, and behind it the words of the ops' rows, as texts and as JSON write them.

#include <fstream>
#include <iostream>
#include <set>

#include "core/op_table.h"

int main(int count, char** arguments) {
  using namespace xpuruntime;
  if (count != 2) return 2;
  std::cout << std::ifstream(arguments[1]).rdbuf();
  std::set<std::string> words;
  const auto add = [&](std::string_view name, std::string_view mark) {
    words.insert("\"" + std::string(name) + std::string(mark) + "\"");
    words.insert("\"\\\"" + std::string(name) + "\\\"\"");
  };
  for (const OpInfo& info : builtin_ops()) {
    add(info.name, "(");
    for (const AttributeSpec& spec : info.attributes) add(spec.name, "=");
    for (const SizeSpec& spec : info.sizes) add(spec.name, "");
  }
  for (const std::string& word : words) std::cout << word << "\n";
}

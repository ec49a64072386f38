#include "core/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain ~", "plain ~"},
      {"\033[2J\x07", "\\x1b[2J\\x07"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"two\r\nlines\t", "two\\x0d\\x0alines\\x09"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\u009b31m"},  // the one-character form of ESC [
      {"\xe2\x80\xae"
       "evil",
       "\\u202eevil"},                                 // right to left from here
      {"\xe2\x81\xa6\xe2\x80\xa8", "\\u2066\\u2028"},  // an isolate, a line separator
      {"\xf3\xa0\x81\x81", "\\ue0041"},                // an invisible tag
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(printable(text), expected);
}

TEST(Printable, LeavesTextsOfAllLanguagesAlone) {
  for (const char* text : {"Gr\xc3\xbc\xc3\x9f"
                           "e",
                           "\xe4\xb8\x96\xe7\x95\x8c", "\xf0\x9f\x99\x82", "\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesOutBytesThatAreNoUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff", "\\xff"},
      {"\x9b[1m", "\\x9b[1m"},
      {"\xe4\xb8", "\\xe4\\xb8"},                    // cut off
      {"\xc0\x9b", "\\xc0\\x9b"},                    // ESC in two bytes
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // half of a pair
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // past the last character
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(printable(text), expected);
}

TEST(Printable, KeepsLinesWhereTheyAreAskedFor) { EXPECT_EQ(printable_lines("a\n\tb\r\033c"), "a\n\tb\\x0d\\x1bc"); }

TEST(Printable, ShowsTheBeginningOfLongTextsInWholeCharacters) {
  EXPECT_EQ(shown(std::string(160, 'a')), std::string(160, 'a'));
  EXPECT_EQ(shown(std::string(159, 'a') + "\xc3\xbc"
                                          "b"),
            std::string(159, 'a') + "...");
  EXPECT_LT(shown(std::string(1000000, '\033')).size(), 1000u);
}

TEST(Printable, JsonMeansTheSameAfterwards) {
  const nlohmann::json document = {{"a\xc2\x9b", {"\x7f\xe2\x80\xae\xf3\xa0\x81\x81", "\xc3\xbc", "\033"}}};
  const std::string text = printable_json(document.dump(1));
  EXPECT_EQ(nlohmann::json::parse(text), document);
  EXPECT_EQ(printable_lines(text), text);
  EXPECT_NE(text.find("\xc3\xbc"), std::string::npos);
}

TEST(Printable, EveryErrorIs) {
  const Error error(ErrorCode::internal, "f", "what \033[31m\xc2\x9b it was\nand why");
  EXPECT_STREQ(error.what(), "[f] what \\x1b[31m\\u009b it was\nand why");
}

}  // namespace
}  // namespace xpuruntime

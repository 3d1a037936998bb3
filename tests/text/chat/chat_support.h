// Reads the conversations and templates in tests/text/chat, and renders them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/pass.h"
#include "text/chat/chat_template.h"

namespace qkv::test {

inline std::string chat_file(const std::string& name) {
  return read_file(golden("../text/chat/" + name), 1 << 24);
}

inline OrderedJson chat_json(const std::string& name) {
  return parse_ordered_json(chat_file(name), name);
}

// A conversation of the file: messages and other variables.
inline ChatTemplate::Input chat_input(const OrderedJson& conversation) {
  ChatTemplate::Input input{.now = 1'700'049'600};  // 15 November 2023, noon: make_chat_vectors.py has the same day
  for (const auto& [name, value] : conversation.items()) {
    if (name == "messages") {
      input.messages = value;
    } else if (name == "add_generation_prompt") {
      input.add_generation_prompt = value.get<bool>();
    } else {
      input.more[name] = value;
    }
  }
  return input;
}

// templates.txt are small, templates_wild.txt of the kinds that models come with. "=== name" starts a template; the line
// end before the next "===" is not part of it.
inline std::vector<std::pair<std::string, std::string>> chat_templates() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* file : {"templates.txt", "templates_wild.txt"}) {
    const std::string all = "\n" + chat_file(file), mark = "\n=== ";
    for (size_t at = all.find(mark); at != all.npos;) {
      const size_t name = at + mark.size(), source = all.find('\n', name) + 1;
      at = all.find(mark, source - 1);
      out.emplace_back(all.substr(name, source - 1 - name), all.substr(source, at == all.npos ? at : at - source));
    }
  }
  return out;
}

inline std::string render(std::string_view source, const ChatTemplate::Input& input = {}) {
  return ChatTemplate::parse(source, "test.jinja").render(input);
}

}  // namespace qkv::test

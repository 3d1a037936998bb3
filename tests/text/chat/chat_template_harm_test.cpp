// Malicious templates: each must stop at a limit, with an Error that names it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.h"
#include "text/chat/chat_support.h"
#include "text/chat/jinja/interpreter.h"

namespace qkv {
namespace {

std::string times(size_t count, std::string_view text) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

// The message of the Error from rendering; empty if there is none.
std::string complaint(std::string_view source, const ChatTemplate::Input& input) {
  try {
    test::render(source, input);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input) << error.what();
    EXPECT_FALSE(error.hint().empty()) << error.what();
    return error.message();
  }
}

ChatTemplate::Input hello() {
  return {.messages = messages_json({{"user", "你好, hello"}})};
}

struct Harm {
  const char* name;
  std::string source;
  const char* said;
};

void expect_stopped(std::initializer_list<Harm> harms) {
  for (const Harm& harm : harms) {
    SCOPED_TRACE(harm.name);
    const std::string said = complaint(harm.source, hello());
    EXPECT_TRUE(said.starts_with("test.jinja: chat template line ") ||
                said.starts_with("test.jinja: the chat template"))
        << said;
    EXPECT_NE(said.find(harm.said), std::string::npos) << said;
  }
}

constexpr const char* kSteps = "still not done after 1000000 steps";
constexpr const char* kBytes = "but the limit is 4194304";
constexpr const char* kNested = "nested more than 64 levels deep";

TEST(ChatTemplateHarm, GrowthIsLimited) {
  expect_stopped(
      {Harm{"Range", "{{ range(1000000000) }}", "range has more than 100000 numbers"},
       Harm{"RangeFarApart", "{{ range(-9223372036854775807, 9223372036854775807) }}", "more than 100000 numbers"},
       Harm{"Loops", "{% for i in range(9999) %}{% for j in range(9999) %}{% set x = i * j %}{% endfor %}{% endfor %}",
            kSteps},
       Harm{"MacroTree", "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n }}{% endmacro %}{{ f(60) }}", kSteps},
       Harm{"Macro", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "called more than 64 levels deep"},
       Harm{"MacroDefault", "{% macro f(a=f()) %}{% endmacro %}{{ f() }}", "levels deep"},
       Harm{"Output", "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", "more than 4194304 bytes"},
       Harm{"Repeat", "{{ '-' * 10000000000 }}", kBytes},
       Harm{"RepeatFar", "{{ 'ab' * 9223372036854775807 }}", kBytes},
       Harm{"RepeatList", "{{ [1] * 10000000000 }}", kSteps},
       Harm{"Double", "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
            kBytes},
       Harm{"DoubleList", "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
            kSteps},
       Harm{"Concat", "{% set s = 'x' * 4000000 %}{% for i in range(99999) %}{% set t = s ~ i %}{% endfor %}", kSteps},
       Harm{"Indent", "{{ 'a\\nb' | indent(10000000000) }}", kBytes},
       Harm{"IndentLines", "{{ ('a\\n' * 99999) | indent(1000000) }}", kBytes},
       Harm{"TojsonIndent", "{{ [[[[1]]]] | tojson(indent=10000000000) }}", kBytes},
       Harm{"TojsonIndents", "{{ [[[[[[1]]]]]] | tojson(indent=1000000) }}", kBytes},
       Harm{"TojsonTree",
            "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
            "{{ n.s | tojson }}",
            ""},
       Harm{"Join", "{{ (['x' * 99999] * 99999) | join }}", kBytes},
       Harm{"JoinBetween", "{{ range(99999) | join('x' * 99999) }}", kBytes},
       Harm{"Replace", "{{ ('a' * 4000000) | replace('a', 'b' * 4000000) }}", kBytes},
       Harm{"Find", "{% set a = 'a' * 4000000 %}{% for i in range(9999) %}{{ ('a' * 9999 ~ 'b') in a }}{% endfor %}",
            kSteps},
       Harm{"Split", "{% set a = 'a' * 4000000 %}{{ a.split('a') | length }}", kSteps},
       Harm{"SplitRight", "{% set a = 'a' * 4000000 %}{{ a.rsplit('a' * 2000000 ~ 'b') }}", kSteps},
       Harm{"Strip", "{% set a = 'a' * 4000000 %}{{ a.strip('xyz' * 99999 ~ 'a') }}", kSteps},
       Harm{"Lower", "{% set a = 'Σ' * 2000000 %}{{ a | lower }}", kSteps},
       Harm{"Title", "{% set a = 'ab ' * 1000000 %}{{ a | title }}", kSteps},
       Harm{"Index", "{% set a = '你' * 1000000 %}{% for i in range(9999) %}{{ a[-1] }}{% endfor %}", kSteps},
       Harm{"Sort", "{% for i in range(99) %}{% set x = range(99999) | reverse | sort %}{% endfor %}", kSteps},
       Harm{"Unique", "{{ range(99999) | unique | list }}", kSteps},
       Harm{"Format", "{{ '%1000000000d' % 1 }}", "a format is wider than 1000"},
       Harm{"Formats", "{% for i in range(99999) %}{% set x = '%999.999f' % 1e308 %}{% endfor %}", kSteps},
       Harm{"Power", "{{ 7 ** 1000000000000 }}", "does not fit in 64 bits"},
       Harm{"Overflow", "{{ 9223372036854775807 + 1 }}", "does not fit in 64 bits"},
       Harm{"Smallest", "{{ (-9223372036854775807 - 1) // -1 }}", "does not fit in 64 bits"},
       Harm{"Literal", "{{ 9223372036854775808 }}", "cannot be taken"},
       Harm{"DeepValue",
            "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
            "nested more than 128 levels deep"},
       Harm{"Circle", "{% set n = namespace() %}{% set n.n = n %}{{ n }}", "nested more than 128 levels deep"},
       Harm{"DeepEqual",
            "{% set n = namespace(s=[], t=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% set n.t = [n.t] %}"
            "{% endfor %}{{ n.s == n.t }}",
            "nested more than 128 levels deep"},
       Harm{"DeepJson",
            "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = {'a': n.s} %}{% endfor %}{{ n.s | "
            "tojson }}",
            "nested more than 128 levels deep"},
       Harm{"DeepKey",
            "{% set n = namespace(s=(1,)) %}{% for i in range(9999) %}{% set n.s = (n.s,) %}{% endfor %}{{ {n.s: 1} }}",
            "nested more than 128 levels deep"},
       Harm{"KeyOfKeys",
            "{% set n = namespace(s={}) %}{% for i in range(9999) %}{% set n.s = {(n.s,): 1} %}{% endfor %}{{ n.s == "
            "n.s.copy() }}",
            "a dict cannot be a key"},
       Harm{"CallBlock",
            "{% macro f() %}{% call f() %}{% endcall %}{{ caller }}{% endmacro %}{% call f() %}{% endcall %}",
            "called more than 64 levels deep"},
       Harm{"CallerCalls",
            "{% macro f(n) %}{{ caller(n) ~ caller(n) }}{% endmacro %}{% macro g(n) %}{% call(k) f(n) %}{{ g(k) if k "
            "else 'x' }}"
            "{% endcall %}{% endmacro %}{{ g(30) }}",
            "called more than 64 levels deep"},
       Harm{"RecursiveLoop", "{% for x in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}", "levels deep"},
       Harm{"Splat",
            "{% macro f() %}{{ varargs | length }}{% endmacro %}{% for i in range(999) %}{{ f(*range(99999)) }}{% "
            "endfor %}",
            kSteps},
       Harm{"Center", "{{ 'a' | center(10000000000) }}", kBytes},
       Harm{"Zfill", "{{ '1'.zfill(10000000000) }}", kBytes},
       Harm{"Batch", "{{ [1] | batch(10000000000, 0) | list }}", kSteps},
       Harm{"Slices", "{{ [1] | slice(10000000000) | list }}", kSteps},
       Harm{"Source", "{{ 1 }}" + times(1 << 17, " "), "but the limit is 131072"}});
}

TEST(ChatTemplateHarm, NestingIsLimited) {
  expect_stopped({Harm{"Parentheses", "{{ " + times(60000, "(") + "1" + times(60000, ")") + " }}", kNested},
                  Harm{"ParenthesesOpen", "{{ " + times(100000, "("), "not closed"},
                  Harm{"Lists", "{{ " + times(60000, "[") + times(60000, "]") + " }}", kNested},
                  Harm{"Dicts", "{{ " + times(30000, "{1:") + "1" + times(30000, "}") + " }}", kNested},
                  Harm{"Nots", "{{ " + times(30000, "not ") + "1 }}", kNested},
                  Harm{"Signs", "{{ " + times(100000, "-") + "1 }}", kNested},
                  Harm{"Attributes", "{{ a" + times(60000, ".b") + " }}", kNested},
                  Harm{"Items", "{{ a" + times(40000, "[0]") + " }}", kNested},
                  Harm{"Calls", "{{ a" + times(60000, "()") + " }}", kNested},
                  Harm{"Filters", "{{ a" + times(60000, "|e") + " }}", kNested},
                  Harm{"FilterBlocks", times(9000, "{% filter e %}"), kNested},
                  Harm{"Choices", "{{ " + times(10000, "1 if 1 else ") + "1 }}", kNested},
                  Harm{"ChoicesWithoutElse", "{{ 1" + times(20000, " if 1") + " }}", kNested},
                  Harm{"Blocks", times(12000, "{% if 1 %}"), kNested},
                  Harm{"Loops", times(8000, "{% for a in b %}"), kNested},
                  Harm{"Macros", times(8000, "{% macro a() %}"), kNested},
                  Harm{"Targets", "{% for " + times(30000, "(") + "a" + times(30000, ")") + " in b %}", kNested},
                  Harm{"CallBlocks", times(8000, "{% call a() %}"), kNested},
                  Harm{"Generations", times(7000, "{% generation %}"), kNested},
                  Harm{"SetBlocks", times(10000, "{% set a %}"), kNested}});
}

TEST(ChatTemplateHarm, NothingOfTheHostIsReached) {
  expect_stopped({Harm{"Class", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "closed to templates"},
                  Harm{"ClassItem", "{{ ''['__class__'] }}", "closed to templates"},
                  Harm{"ClassJoined", "{{ ()['__cla' ~ 'ss__'] }}", "closed to templates"},
                  Harm{"Globals", "{{ range.__globals__ }}", "closed to templates"},
                  Harm{"Init", "{{ messages.__init__ }}", "closed to templates"},
                  Harm{"Attr", "{{ ''|attr('__class__') }}", "'attr' is closed"},
                  Harm{"AttrUnused", "{% if false %}{{ ''|attr('x') }}{% endif %}", "'attr' is closed"},
                  Harm{"MapAttr", "{{ ['']|map('attr', '__class__')|list }}", "there is no filter 'attr'"},
                  Harm{"MapAttribute", "{{ ['']|map(attribute='__class__')|list }}", "closed to templates"},
                  Harm{"SelectAttribute", "{{ ['']|selectattr('a.__class__')|list }}", "undefined"},
                  Harm{"SortAttribute", "{{ ['']|sort(attribute='__class__') }}", "closed to templates"},
                  Harm{"Format", "{{ '{0.__class__}'.format(1) }}", "format takes only"},
                  Harm{"FormatMap", "{{ '{a}'.format_map({'a': 1}) }}", "'format_map' is undefined"},
                  Harm{"Import", "{% import 'os' as os %}", "'import' is not supported"},
                  Harm{"From", "{% from 'os' import system %}", "'from' is not supported"},
                  Harm{"Include", "{% include '/etc/passwd' %}", "'include' is not supported"},
                  Harm{"Extends", "{% extends 'base' %}", "'extends' is not supported"},
                  Harm{"Self", "{{ self.__init__ }}", "closed to templates"},
                  Harm{"Cycler", "{{ cycler.next }}", "'cycler' is undefined"},
                  Harm{"Lipsum", "{{ lipsum(1) }}", "'lipsum' is undefined"},
                  Harm{"Config", "{{ config.items() }}", "'config' is undefined"},
                  Harm{"Update", "{{ messages[0].update({'role': 'x'}) }}", "would change a dict"},
                  Harm{"Append", "{{ messages.append(1) }}", "would change a list"},
                  Harm{"SetItem", "{% set messages[0] = 1 %}", "expected"},
                  Harm{"SetAttribute", "{% set messages.x = 1 %}", "cannot set"}});
}

TEST(ChatTemplateHarm, LongChainsAreNotDeep) {
  EXPECT_EQ(test::render("{{ 1" + times(60000, "+1") + " }}"), "60001");
  EXPECT_EQ(test::render("{{ 'a'" + times(30000, "~'a'") + " }}").size(), 30001U);
  EXPECT_EQ(test::render("{{ 0" + times(20000, " or 0") + " }}"), "0");
  EXPECT_EQ(test::render("{% if 0 %}" + times(9000, "{% elif 0 %}") + "{% else %}x{% endif %}"), "x");
}

TEST(ChatTemplateHarm, DeepInputIsRefused) {
  OrderedJson deep = 1;
  for (int i = 0; i < 600; ++i) deep = OrderedJson::array({std::move(deep)});
  const std::string said = "nested more than 128 levels deep";
  EXPECT_NE(complaint("{{ x }}", {.messages = OrderedJson::array(), .more = {{"x", deep}}}).find(said),
            std::string::npos);
  EXPECT_NE(complaint("{{ messages }}", {.messages = deep}).find(said), std::string::npos);
  EXPECT_THROW(parse_ordered_json(times(20000, "["), "test"), Error);
  EXPECT_THROW(parse_ordered_json(times(20000, "[") + times(20000, "]"), "test"), Error);
}

TEST(ChatTemplateHarm, TextThatIsNotUtf8IsRefused) {
  EXPECT_NE(complaint("{{ '\xff' }}", hello()).find("not UTF-8"), std::string::npos);
  EXPECT_NE(complaint("{{ messages }}", {.messages = messages_json({{"user", "\xc3"}})}).find("not UTF-8"),
            std::string::npos);
  EXPECT_NE(complaint("{{ messages }}", {.messages = {{{"\xff", 1}}}}).find("not UTF-8"), std::string::npos);
}

// Rendering succeeds or throws an Error; anything else crashes the test program.
void survive(const std::string& source) {
  try {
    test::render(source, hello());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input) << error.what();
  }
}

TEST(ChatTemplateHarm, TemplatesCutAnywhere) {
  for (const auto& [name, source] : test::chat_templates()) {
    for (size_t size = 0; size < source.size(); ++size) survive(source.substr(0, size));
  }
}

TEST(ChatTemplateHarm, RealTemplatesCutAnywhere) {
  QKV_NEED_SHARED(config, "tokenizers/real/qwen3/tokenizer_config.json");
  const Json settings = parse_json(read_file(config, 1 << 28), "tokenizer_config.json");
  const std::string source = settings["chat_template"];
  for (size_t size = 0; size < source.size(); ++size) survive(source.substr(0, size));
}

TEST(ChatTemplateHarm, ChangedTemplatesAreHarmless) {
  const auto templates = test::chat_templates();
  const std::string lines = test::chat_file("expressions.txt");
  const std::vector<std::string> pieces{
      "{{",  "}}",    "{%", "%}", "{#",          "#}", "-", "(", ")", "[",  "]",    "'",     "|",  ".", "if", "for",
      "in ", " not ", "~",  "**", "99999999999", "\\", ":", ",", "=", "你", "\xe4", "macro", "is", "0", "*"};
  EXPECT_TRUE(rc::check([&] {
    std::string source = templates[*rc::gen::inRange<size_t>(0, templates.size())].second;
    if (*rc::gen::arbitrary<bool>()) {
      const size_t begin = *rc::gen::inRange<size_t>(0, lines.size());
      source = lines.substr(begin, *rc::gen::inRange<size_t>(1, 400));
    }
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes && !source.empty(); ++i) {
      const size_t at = *rc::gen::inRange<size_t>(0, source.size());
      const size_t drop = *rc::gen::inRange<size_t>(0, 8);
      source.replace(at, std::min(drop, source.size() - at), *rc::gen::elementOf(pieces));
    }
    survive(source);
  }));
}

}  // namespace
}  // namespace qkv

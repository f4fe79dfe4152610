// Tests which keys a scenario can contain, and what is offered at a position in its text.
#include "gui/models/scenario/scenario_keys.hpp"

#include <QFile>
#include <algorithm>

#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/toml_outline.hpp"
#include "models/text/asked_keys.hpp"
#include "models/text/document.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;
using rehearse::AskedKey;
using rehearse::AskedKeys;
using rehearse::Document;

namespace {

const std::vector<ScenarioKey> kKeys = {
    {"model", false, true, false, {}},
    {"model.preset", true, false, false, {"\"mlp\"", "\"resnet50\""}},
    {"cluster", false, true, false, {}},
    {"cluster.nodes", true, false, false, {}},
    {"cluster.slow", false, true, true, {}},
    {"cluster.slow.factor", true, false, false, {}},
    {"cluster.slow.device", true, false, false, {}},
    {"simulation", false, true, false, {}},
    {"simulation.fold", true, false, false, {"false", "true"}},
};

}  // namespace

TEST_CASE("What readers ask for is collected, absent or not") {
  Document document = Document::parse_text("[a]\nx = 1\n[[a.many]]\ny = 2\n", "t");
  constexpr std::array<std::string_view, 2> kNames = {"one", "two"};
  const auto read = [&] {
    auto section = document.root().section("a");
    section.expect({"x", "never"});
    section.integer("x", 0, 9);
    section.number("share", {}, 0.5);
    section.boolean("on", false);
    section.choice("kind", kNames, 0);
    for (auto& one : section.sections("many")) one.integer("y", 0, 9);
    section.texts("names");
    section.section("more");
  };
  read();  // nothing is recorded
  std::vector<std::pair<std::string, AskedKey::Kind>> found;
  std::vector<std::string> allowed;
  {
    const AskedKeys asked;
    read();
    read();  // each key is recorded once
    for (const AskedKey& key : asked.keys()) {
      found.emplace_back(key.path, key.kind);
      if (key.kind == AskedKey::Kind::choice) allowed = key.allowed;
    }
  }
  using enum AskedKey::Kind;
  CHECK(found == std::vector<std::pair<std::string, AskedKey::Kind>>{{"a", section},
                                                                     {"a.x", integer},
                                                                     {"a.never", expected},
                                                                     {"a.share", number},
                                                                     {"a.on", boolean},
                                                                     {"a.kind", choice},
                                                                     {"a.many", sections},
                                                                     {"a.many[0].y", integer},
                                                                     {"a.names", list},
                                                                     {"a.more", section}});
  CHECK(allowed == std::vector<std::string>{"one", "two"});
}

TEST_CASE("Every key of the shipped scenarios and of the form is known, with the form's choices") {
  const auto keys = scenario_keys();
  const auto find = [&](const QString& path) {
    return std::find_if(keys->begin(), keys->end(), [&](const ScenarioKey& k) { return k.path == path; });
  };
  for (const ScenarioTemplate& one : scenario_templates()) {
    QFile file(one.path);
    REQUIRE(file.open(QIODevice::ReadOnly));
    for (const TomlKey& key : toml_outline(QString::fromUtf8(file.readAll())).keys) {
      QString path = key.path;
      const auto number = path.indexOf('[');
      if (number >= 0) path.remove(number, path.indexOf(']') - number + 1);
      CAPTURE(one.name.toStdString(), path.toStdString());
      CHECK(find(path) != keys->end());
    }
  }
  for (const ScenarioField& field : scenario_fields()) {
    const QString path = field_key(field, "parameter-server");
    CAPTURE(path.toStdString());
    const auto key = find(path);
    REQUIRE(key != keys->end());
    CHECK(key->value);
    const bool flag = field.kind == ScenarioField::Kind::flag;
    for (const QString& choice : field.choices)
      CHECK(key->values.contains(flag ? choice : '"' + choice + '"'));
  }
  CHECK(find("simulation.fold")->values == QStringList{"false", "true"});
  CHECK(find("cluster.slow")->many);
  // A cluster and a model can also be defined in full.
  for (const char* path : {"cluster.file", "cluster.fabric.kind", "cluster.node.devices", "cluster.slow.link",
                           "model.file", "model.huggingface", "model.title"}) {
    CAPTURE(path);
    CHECK(find(path) != keys->end());
  }
  CHECK(find("name") == keys->end());  // a key of a preset's own file
}

TEST_CASE("What is offered at the cursor, which is written |") {
  struct Case {
    const char *what, *text;
    const char* replaced;  // the part of the text to replace; null: nothing is offered
    QStringList choices;
    const char* behind = "";
  };
  const std::vector<Case> cases = {
      {"section", "[cl|", "cl", {"cluster", "model", "simulation"}, "]"},
      {"closed section", "[cl|uster]", "cluster", {"cluster", "model", "simulation"}},
      {"array of tables", "[[|", "", {"cluster.slow"}, "]]"},
      {"key", "[cluster]\nno|", "no", {"nodes"}, " = "},
      {"key that has a value", "[cluster]\nno| = 3", "no", {"nodes"}},
      {"the rest of a word goes", "[cluster]\nno|de", "node", {"nodes"}, " = "},
      {"keys that stand are left out", "[cluster]\nnodes = 1\n|", "", {"[model]", "[simulation]"}},
      {"keys of an array's table", "[[cluster.slow]]\nfactor = 1\n|", "", {"device"}, " = "},
      {"sections before any", "|", "", {"[cluster]", "[model]", "[simulation]"}},
      {"values", "[model]\npreset = |", "", {"\"mlp\"", "\"resnet50\""}},
      {"values within quotes",
       "[model]\npreset = \"re|s\" # a comment",
       "\"res\"",
       {"\"mlp\"", "\"resnet50\""}},
      {"true and false", "[simulation]\nfold = t|", "t", {"false", "true"}},
      {"numbers are not listed", "[cluster]\nnodes = |", nullptr, {}},
      {"comments", "[cluster]\n# no|", nullptr, {}},
      {"behind a value", "[model]\npreset = \"mlp\" # |", nullptr, {}},
      {"unknown section", "[nowhere]\nx|", nullptr, {}},
      {"a # in a string is none", "[model]\npreset = \"a#|", "\"a#", {"\"mlp\"", "\"resnet50\""}},
      {"second line of a text",
       "[model]\npreset = \"mlp\"\n[simulation]\nf|\n[cluster]\n",
       "f",
       {"fold"},
       " = "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    QString text = c.text;
    const int cursor = static_cast<int>(text.indexOf('|'));
    text.remove(cursor, 1);
    const auto found = completion_at(text, cursor, kKeys);
    CHECK(found.has_value() == (c.replaced != nullptr));
    if (!found || !c.replaced) continue;
    CHECK(text.mid(found->begin, found->end - found->begin).toStdString() == c.replaced);
    CHECK(found->choices == c.choices);
    CHECK(found->behind.toStdString() == c.behind);
    CHECK(found->typed == text.mid(found->begin, cursor - found->begin));
  }
}

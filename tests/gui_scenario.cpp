// Tests a scenario's text: keys are found and changed in place, and errors are found where the command finds
// them.
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gui/models/scenario/scenario_check.hpp"
#include "gui/models/scenario/scenario_draft.hpp"
#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/toml_highlight.hpp"
#include "gui/models/scenario/toml_outline.hpp"
#include "models/text/document.hpp"
#include "models/text/toml_value.hpp"
#include "tests/gui_application.hpp"
//
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::gui;
using rehearse::test::kPatienceMs;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = fs::path(REHEARSE_TESTS_DIR).parent_path();

std::string bytes_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

QString text_of(const fs::path& path) {
  return QString::fromStdString(bytes_of(path));
}

std::vector<fs::path> toml_files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Returns the line and column (in characters) of a position in the text.
std::pair<int, int> line_and_column(const QString& text, int place) {
  const auto begin = place == 0 ? 0 : text.lastIndexOf('\n', place - 1) + 1;
  return {static_cast<int>(text.left(place).count('\n')) + 1,
          static_cast<int>(text.mid(begin, place - begin).toUcs4().size()) + 1};
}

// Checks that the outline has every value that the parser finds, at the same position.
void check_places(const TomlValue& value, const QString& path, const QString& text,
                  const TomlOutline& outline, int& found) {
  if (const auto* table = value.get<TomlValue::Table>()) {
    for (const TomlEntry& entry : *table) {
      const QString name = QString::fromStdString(entry.key);
      check_places(entry.value, path.isEmpty() ? name : path + '.' + name, text, outline, found);
    }
    return;
  }
  const auto* array = value.get<TomlValue::Array>();
  if (array && !array->empty() && array->front().get<TomlValue::Table>()) {
    for (std::size_t i = 0; i < array->size(); ++i)
      check_places((*array)[i], path + QString("[%1]").arg(i), text, outline, found);
    return;
  }
  const TomlKey* key = outline.key(path);
  CAPTURE(path.toStdString());
  REQUIRE(key);
  ++found;
  CHECK(line_and_column(text, key->value_begin) == std::pair(value.place.line, value.place.column));
  const std::string written = text.mid(key->value_begin, key->value_end - key->value_begin).toStdString();
  if (written.find('\n') == std::string::npos)
    CHECK(describe(parse_toml_value(written, {})) == describe(value));
}

}  // namespace

TEST_CASE("Keys are found where the parser finds them") {
  int files = 0, found = 0;
  for (const char* folder : {"simulator/scenarios", "topologies/presets", "topologies/presets/devices",
                             "models/presets", "simulator/strategies/presets", "tests/bad_inputs"})
    for (const fs::path& path : toml_files(kRoot / folder)) {
      CAPTURE(path.string());
      const std::string bytes = bytes_of(path);
      TomlValue root;
      try {
        root = parse_toml(bytes, "x");
      } catch (const InputError&) {
        toml_outline(QString::fromStdString(bytes));  // terminates
        continue;
      }
      const QString text = QString::fromStdString(bytes);
      check_places(root, "", text, toml_outline(text), found);
      ++files;
    }
  CHECK(files > 100);
  CHECK(found > 1500);
}

TEST_CASE("Keys of unusual writing") {
  const QString text =
      "top = 1\na.b.c = 'x # y' # z\n[t]\ninline = { one = 1, two = { three = \"}\" } }\n"
      "many = [ # why\n 1, 2,\n]\n\"quoted key\" = \"\"\"\nnot = 1\n\"\"\"\nbroken =\n"
      "[[list]]\nx = 1\n[[list]]\nx = 2\n[list.sub]\ny = 3\n[unclosed\nafter = 7\n";
  const TomlOutline outline = toml_outline(text);
  const std::vector<std::pair<QString, QString>> cases = {{"top", "1"},
                                                          {"a.b.c", "'x # y'"},
                                                          {"t.inline.one", "1"},
                                                          {"t.inline.two.three", "\"}\""},
                                                          {"t.many", "[ # why\n 1, 2,\n]"},
                                                          {"t.quoted key", "\"\"\"\nnot = 1\n\"\"\""},
                                                          {"t.broken", ""},
                                                          {"list[0].x", "1"},
                                                          {"list[1].x", "2"},
                                                          {"list[1].sub.y", "3"}};
  for (const auto& [path, value] : cases) {
    CAPTURE(path.toStdString());
    const TomlKey* key = outline.key(path);
    REQUIRE(key);
    CHECK(text.mid(key->value_begin, key->value_end - key->value_begin) == value);
  }
  CHECK_FALSE(outline.key("t.not"));
  // An array that is still being typed does not swallow the sections after it.
  const TomlOutline typed =
      toml_outline("x = [1, 2\n[model]\npreset = 'a'\n[[b.c]]\ny = [\n[1],\n[true]\n]\n");
  CHECK(typed.key("model.preset"));
  CHECK(typed.key("b.c[0].y"));
  CHECK(typed.tables.size() == 2);
}

TEST_CASE("A key is changed where it stands, and nothing else") {
  struct Case {
    const char *before, *key, *value, *after;
  };
  const std::vector<Case> cases = {
      {"[a]\nx = 1  # why\ny = 2\n", "a.x", "2", "[a]\nx = 2  # why\ny = 2\n"},
      // A comment keeps its column.
      {"[a]\nx = 1      # why\n", "a.x", "1024", "[a]\nx = 1024   # why\n"},
      {"[a]\nx = 1024   # why\n", "a.x", "1", "[a]\nx = 1      # why\n"},
      {"[a]\nx = 1 # why\n", "a.x", "1024", "[a]\nx = 1024 # why\n"},
      {"[a]\nx = \"# no\" # yes\n", "a.x", "\"b\"", "[a]\nx = \"b\"    # yes\n"},
      {"[a]\nx=1", "a.x", "2", "[a]\nx=2"},
      {"[a] # first\nx = 1\n\n# of b\n[b]\ny = 1\n", "a.z", "3",
       "[a] # first\nx = 1\nz = 3\n\n# of b\n[b]\ny = 1\n"},
      {"[a]\nx = 1 # last", "a.z", "3", "[a]\nx = 1 # last\nz = 3\n"},
      {"# of a\n[a]\n\n[b]\ny = 1\n", "a.z", "3", "# of a\n[a]\nz = 3\n\n[b]\ny = 1\n"},
      {"[a]\nx = 1\n", "b.y", "2", "[a]\nx = 1\n\n[b]\ny = 2\n"},
      {"", "b.y", "2", "[b]\ny = 2\n"},
      {"a = { x = 1 }\n", "a.x", "2", "a = { x = 2 }\n"},
      {"a = { x = 1 }\n", "a.y", "2", "a = { x = 1, y = 2 }\n"},
      {"a = {}\n", "a.y", "2", "a = { y = 2 }\n"},
      {"a.x = 1\n", "a.y", "2", "a.x = 1\na.y = 2\n"},
      {"[s]\np.n = 1 # so\n", "s.p.m", "2", "[s]\np.n = 1 # so\np.m = 2\n"},
      {"[a]\nx = 1\n[b]\n", "a.many[0].y", "2", "[a]\nx = 1\n\n[[a.many]]\ny = 2\n[b]\n"},
      {"[[a.many]]\nx = 1\n", "a.many[0].y", "2", "[[a.many]]\nx = 1\ny = 2\n"},
      {"[s]\nx = 1\n[r]\n", "s.p.n", "4", "[s]\nx = 1\n\n[s.p]\nn = 4\n[r]\n"},
      {"[a]\nx = [1,\n 2] # two\ny = 1\n", "a.x", "[3]", "[a]\nx = [3] # two\ny = 1\n"},
      {"[a]\nx = 1\n[broken\n[c]\ny = 1\n", "c.y", "2", "[a]\nx = 1\n[broken\n[c]\ny = 2\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.before, c.key);
    CHECK(applied(c.before, edit_to_set(c.before, c.key, c.value)).toStdString() == c.after);
  }
}

TEST_CASE("A key is taken away with its line") {
  struct Case {
    const char *before, *key, *after;
  };
  const std::vector<Case> cases = {
      {"[a]\n# of x\nx = 1 # why\ny = 2 # stays\n", "a.x", "[a]\n# of x\ny = 2 # stays\n"},
      {"[a]\nx = 1", "a.x", "[a]\n"},
      {"[a]\nx = [1,\n2]\ny = 2\n", "a.x", "[a]\ny = 2\n"},
      {"a = { x = 1, y = 2 }\n", "a.x", "a = { y = 2 }\n"},
      {"a = { x = 1, y = 2 }\n", "a.y", "a = { x = 1 }\n"},
      {"a = { x = 1 }\n", "a.x", "a = { }\n"}};
  for (const Case& c : cases) {
    CAPTURE(c.before, c.key);
    const auto edit = edit_to_remove(c.before, c.key);
    REQUIRE(edit);
    const QString after = applied(c.before, *edit);
    CHECK(after.simplified() == QString(c.after).simplified());
    CHECK(after.count('\n') == QString(c.after).count('\n'));
  }
  CHECK_FALSE(edit_to_remove("[a]\nx = 1\n", "a.y"));
}

TEST_CASE("Changes of every field keep the comments, are read back, and can be undone") {
  test::need_application();
  for (const fs::path& path : toml_files(kRoot / "simulator/scenarios")) {
    CAPTURE(path.string());
    ScenarioDraft draft("", "x");
    REQUIRE(draft.load(QString::fromStdString(path.string())).isEmpty());
    const QString before = draft.text();
    for (const ScenarioField& field : scenario_fields()) {
      const QString key = field_key(field, draft.value("strategy.gradients").value_or(""));
      CAPTURE(key.toStdString());
      const auto was = draft.value(key);
      const QString value = field.kind == ScenarioField::Kind::number ? "12" : "else";
      field.kind == ScenarioField::Kind::number ? draft.set_number(key, value) : draft.set_string(key, value);
      CHECK(draft.value(key) == value);
      CHECK(draft.is_modified());
      QString without = draft.text();
      for (const QString& line : before.split('\n'))
        if (line.startsWith('#')) CHECK(without.contains(line));
      CHECK(without.count('#') == before.count('#'));
      draft.document().undo();
      CHECK(draft.text() == before);
      CHECK(draft.value(key) == was);
      CHECK_FALSE(draft.is_modified());
    }
  }
}

TEST_CASE("The check finds what the command finds, where it finds it") {
  const fs::path before = fs::current_path();
  const fs::path folder = kRoot / "tests/bad_inputs";
  fs::current_path(folder);  // where the command runs
  int cases = 0, with_line = 0;
  for (const fs::path& path : toml_files(folder)) {
    const std::string name = path.filename().string();
    CAPTURE(name);
    const std::string bytes = bytes_of(path);
    const QString text = QString::fromStdString(bytes);
    if (text.toStdString() != bytes) continue;  // not UTF-8, so no editor could hold it
    std::string expected = bytes_of(folder / (path.stem().string() + ".expected"));
    expected.pop_back();
    const CheckedScenario checked = check_scenario(text, "");
    CHECK_FALSE(checked.ok);
    if (!expected.starts_with(name)) continue;
    std::string found = name + ":";
    if (checked.line > 0) found += std::to_string(checked.line) + ":" + std::to_string(checked.column) + ":";
    CHECK(found + " " + checked.message.toStdString() == expected);
    ++cases;
    with_line += checked.line > 0;
  }
  fs::current_path(before);
  CHECK(cases >= 30);
  CHECK(with_line >= 30);
}

TEST_CASE("What is right is told in one line, with what every key comes to") {
  struct Case {
    const char* file;
    int devices;
    std::map<QString, QString> values;
  };
  // gpt3-175b: 96 nodes of 8 A100 are 768 devices; its model has sequences of 2048; bf16, Adam, ring, and the
  // newest attention that these devices support: simulator/scenario/README.md. Eight NICs of 200 Gb/s:
  // topologies/presets.
  const std::vector<Case> cases = {
      {"gpt3-175b.toml",
       768,
       {{"training.sequence_length", "2048"},
        {"training.precision", "bf16"},
        {"training.optimizer", "adam"},
        {"training.attention", "flash-2"},
        {"strategy.pipeline", "48"},
        {"strategy.all_reduce", "ring"},
        {"cluster.nic_gbps", "200"},
        {"cluster.server_nodes", "0"},
        {"strategy.overlap", "true"},
        {"simulation.fidelity", "auto"},
        {"model.preset", "gpt3-175b"}}},
      {"resnet50-ring.toml",
       32,
       {{"strategy.data", "32"}, {"cluster.nodes", "8"}, {"training.attention", ""}}},
      {"bert-large-ps.toml", 32, {{"servers", "4"}, {"cluster.server_nodes", "0"}}}};
  for (const Case& c : cases) {
    CAPTURE(c.file);
    const CheckedScenario checked = check_scenario(text_of(kRoot / "simulator/scenarios" / c.file), "");
    CHECK(checked.message.toStdString() == "");
    REQUIRE(checked.ok);
    CHECK(checked.devices == c.devices);
    CHECK(checked.summary.contains(QString::number(c.devices) + " devices: data "));
    for (const auto& [key, value] : c.values) CHECK(checked.values[key].toStdString() == value.toStdString());
  }
  const CheckedScenario first = check_scenario(new_scenario_text(), "");
  CHECK(first.message.toStdString() == "");
  CHECK(first.ok);
}

TEST_CASE("File names in a scenario begin in its folder") {
  QTemporaryDir folder;
  QFile cluster(folder.filePath("lab.toml"));
  REQUIRE(cluster.open(QIODevice::WriteOnly));
  cluster.write(bytes_of(kRoot / "topologies/presets/ethernet.toml").c_str());
  cluster.close();
  QString text = text_of(kRoot / "simulator/scenarios/resnet50-ring.toml");
  text.replace("preset = \"ethernet\"", "file = \"lab.toml\"");
  CHECK(check_scenario(text, folder.path()).message.toStdString() == "");
  const CheckedScenario elsewhere = check_scenario(text, "");
  CHECK_FALSE(elsewhere.ok);
  CHECK(elsewhere.message.contains("lab.toml"));
}

TEST_CASE("Typing is checked once it pauses, and only its last text") {
  test::need_application();
  ScenarioCheck check;
  QSignalSpy spy(&check, &ScenarioCheck::checked);
  const QString good = text_of(kRoot / "simulator/scenarios/mlp-ring.toml");
  for (int i = 0; i < 5; ++i) {
    check.set_text(good + "broken " + QString::number(i), "");
    QElapsedTimer pause;
    pause.start();
    QTest::qWait(20);
    if (pause.elapsed() >= ScenarioCheck::kDelayMs) SKIP("the machine is too busy to type on");
  }
  CHECK(spy.isEmpty());
  check.set_text(good, "");
  CHECK_FALSE(check.is_current());
  REQUIRE(spy.wait(kPatienceMs));
  CHECK(spy.count() == 1);
  CHECK(check.is_current());
  CHECK(check.result().ok);
}

TEST_CASE("A line of TOML in parts") {
  using enum TomlPart;
  struct Case {
    const char* line;
    std::vector<TomlToken> tokens;
  };
  const std::vector<Case> cases = {
      {"[model] # what", {{0, 7, section}, {8, 6, comment}}},
      {"[[cluster.slow]]", {{0, 16, section}}},
      {"preset = \"a # b\"", {{0, 6, key}, {9, 7, string}}},
      {"nodes = 8  # eight", {{0, 5, key}, {8, 1, number}, {11, 7, comment}}},
      {"x = -1.5e6", {{0, 1, key}, {4, 6, number}}},
      {"fold = true", {{0, 4, key}, {7, 4, word}}},
      {"a = { b = 1, c = 'd' }", {{0, 1, key}, {6, 1, key}, {10, 1, number}, {13, 1, key}, {17, 3, string}}},
      {"s = \"a \\\" b\"", {{0, 1, key}, {4, 8, string}}},
      {"", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line);
    TomlLineState state;
    CHECK(toml_tokens(c.line, state) == c.tokens);
    CHECK(state == TomlLineState{});
  }
  TomlLineState state;
  CHECK(toml_tokens("x = [", state) == std::vector<TomlToken>{{0, 1, key}});
  CHECK(state.brackets == 1);
  CHECK(toml_tokens("  [1, 2],", state) == std::vector<TomlToken>{{3, 1, number}, {6, 1, number}});
  CHECK(toml_tokens("]", state).empty());
  CHECK(state == TomlLineState{});
  toml_tokens("x = [1,", state);
  CHECK(toml_tokens("[model]", state) == std::vector<TomlToken>{{0, 7, section}});  // missing bracket
  CHECK(state == TomlLineState{});
  CHECK(toml_tokens("x = '''a", state) == std::vector<TomlToken>{{0, 1, key}, {4, 4, string}});
  CHECK(toml_tokens("[no section]", state) == std::vector<TomlToken>{{0, 12, string}});
  CHECK(toml_tokens("b''' # c", state) == std::vector<TomlToken>{{0, 4, string}, {5, 3, comment}});
  CHECK(state == TomlLineState{});
}

TEST_CASE("Fields offer what may be chosen") {
  std::map<QString, QStringList> choices;
  for (const ScenarioField& field : scenario_fields())
    choices[field_key(field, "hierarchical-parameter-server")] = field.choices;
  CHECK(choices["model.preset"].contains("gpt3-175b"));
  CHECK(choices["cluster.preset"].contains("dgx-a100"));
  CHECK(choices["strategy.preset"].contains("pytorch-ddp"));
  CHECK(choices["strategy.gradients"].contains("local-sgd"));
  CHECK(choices["strategy.offload"] == QStringList{"none", "cpu", "nvme"});
  CHECK(choices["strategy.offload_parameters"] == choices["strategy.offload"]);
  CHECK(choices["strategy.schedule"] == QStringList{"gpipe", "1f1b", "interleaved", "breadth-first", "zb-h1",
                                                    "zb-h2", "zb-v", "dualpipe-v", "dualpipe"});
  CHECK(choices.count("strategy.hierarchical_parameter_server.servers") == 1);
  CHECK(has_servers("parameter-server"));
  CHECK_FALSE(has_servers("all-reduce"));
  CHECK_FALSE(has_servers("local-sgd"));
}

TEST_CASE("Templates are the shipped scenarios, with what they say of themselves") {
  const std::vector<ScenarioTemplate> templates = scenario_templates();
  CHECK(templates.size() == toml_files(kRoot / "simulator/scenarios").size());
  for (const ScenarioTemplate& t : templates) {
    CAPTURE(t.name.toStdString());
    CHECK_FALSE(t.told.isEmpty());
    CHECK(bytes_of(t.path.toStdString()).starts_with("# " + t.told.left(20).toStdString()));
  }
}

TEST_CASE("What the check suggests can be taken over") {
  test::need_application();
  const QString text = text_of(kRoot / "simulator/scenarios/resnet50-ring.toml");
  // The correct text and a misspelling of it.
  const std::vector<std::pair<QString, QString>> cases = {
      {"[training]", "[trainin]"}, {"micro_batch = 64", "micro_bach = 64"}, {"\"resnet50\"", "\"resnet5\""}};
  for (const auto& [right, wrong] : cases) {
    CAPTURE(wrong.toStdString());
    ScenarioDraft draft(QString(text).replace(right, wrong), "x");
    const CheckedScenario checked = check_scenario(draft.text(), "");
    CAPTURE(checked.message.toStdString());
    REQUIRE(checked.line > 0);
    const auto suggestions = draft.suggestions(checked.line, checked.column, checked.message);
    REQUIRE(suggestions.size() == 1);
    CHECK(right.contains(suggestions[0].name));
    draft.change(suggestions[0].edit);
    CHECK(draft.text() == text);
    draft.document().undo();
    CHECK(draft.text() != text);
  }
  ScenarioDraft draft(QString(text).replace("= 2048", "= -1"), "x");
  const CheckedScenario checked = check_scenario(draft.text(), "");
  CHECK(draft.suggestions(checked.line, checked.column, checked.message).empty());
}

TEST_CASE("Settings as on a command line are made in the text, in one step") {
  const QString before = "[training]\nmicro_batch = 16\nrecompute = \"none\"\n[strategy]\ndata = 4\n";
  struct Case {
    QStringList settings;
    QString after;
  };
  const std::vector<Case> cases = {
      {{"training.micro_batch=8"}, QString(before).replace("= 16", "= 8")},
      {{"training.recompute=full"}, QString(before).replace("\"none\"", "\"full\"")},
      {{"training.recompute=\"full\""}, QString(before).replace("\"none\"", "\"full\"")},
      {{"strategy.data="}, QString(before).remove("data = 4\n")},
      {{"strategy.sequence_parallel=true", "strategy.data=2"},
       QString(before).replace("data = 4\n", "data = 2\nsequence_parallel = true\n")},
  };
  for (const Case& c : cases) {
    CAPTURE(c.settings.join(' ').toStdString());
    ScenarioDraft draft(before, "mine");
    draft.assign(c.settings);
    CHECK(draft.text().toStdString() == c.after.toStdString());
    draft.document().undo();
    CHECK(draft.text() == before);
  }
}

TEST_CASE("A draft of a run takes the run's text again, in one step") {
  ScenarioDraft draft("a = 1\n", "run");
  draft.take_run();  // of no run
  CHECK(draft.text() == "a = 1\n");
  draft.set_run(3, "a = 1\n");
  draft.set_made_for_run();
  CHECK(draft.is_as_run());
  CHECK(draft.only_repeats_run());
  draft.set_number("a", "2");
  draft.set_number("a", "3");
  CHECK_FALSE(draft.is_as_run());
  CHECK_FALSE(draft.only_repeats_run());
  draft.take_run();
  CHECK(draft.is_as_run());
  CHECK_FALSE(draft.is_modified());
  CHECK_FALSE(draft.only_repeats_run());  // its changes can still be brought back
  draft.document().undo();
  CHECK(draft.text() == "a = 3\n");
  CHECK(draft.is_modified());
}

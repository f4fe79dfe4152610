// Checks that no name collides where the sources of a target are compiled in batches, in any batch that
// adding a source could make. The list of targets comes from CMake.
#include <chrono>
#include <fstream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/unity_names.hpp"

using namespace rehearse::test;

namespace {

std::string text_in(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string in_anonymous(const std::string& text) {
  return "namespace a {\nnamespace {\n" + text + "\n}  // namespace\n}\n";
}

}  // namespace

TEST_CASE("names that a source defines for itself are found") {
  struct Case {
    std::string source, name, parameters;
  };
  for (const auto& [source, name, parameters] : std::vector<Case>{
           {in_anonymous("constexpr double kMost = 1e9;"), "a::kMost", ""},
           {in_anonymous("constexpr std::array<std::string_view, 2> kNames = {\"a\", \"b;\"};"), "a::kNames",
            ""},
           {in_anonymous("const std::vector<Case> kCases{{1, 2}, {3, 4}};"), "a::kCases", ""},
           {in_anonymous("int counts[3];"), "a::counts", ""},
           {in_anonymous("struct Row : Base {\n  int kInside = 1;\n  void f() {}\n};"), "a::Row", ""},
           {in_anonymous("enum class State : int { on, off };"), "a::State", ""},
           {in_anonymous("using Json = nlohmann::json;"), "a::Json", "=nlohmann::json"},
           {in_anonymous("template <typename T>\nT twice(const T& value, int n = 2) { return value * n; }"),
            "a::twice", "(const T & ,int ,)"},
           {in_anonymous("std::map<int, int> made(std::map<int, int> from) { return f(')', \"}\"); }"),
            "a::made", "(std :: map < int , int > ,)"},
           {"static void helper() {}\n", "helper", "(,)"},
           {"namespace a::b {\nconstexpr int kIn = 1'000;\n}\n", "a::b::kIn", ""},
           {"#define X \\\n  int not_this = 1;\n/* { */ // }\nstatic int x = 0;", "x", ""},
           {"const char* const kText = R\"(int f() { \"})\";", "kText", ""}}) {
    CAPTURE(source);
    const auto found = own_names(source);
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == name);
    CHECK(found[0].parameters == parameters);
  }
  // What others can see is the linker's business; declarations and members define nothing.
  for (const std::string source :
       {"namespace a {\nint f(int x) { return x; }\n}", "inline constexpr int kShared = 1;", "int f();",
        "namespace a {\nA::A(int x) : x_(x), y_{1} {}\nint A::f() const { return 1; }\nint A::count = 1;\n}",
        "using namespace std;", "extern const int kOther;", "static_assert(sizeof(int) == 4);"}) {
    CAPTURE(source);
    CHECK(own_names(source).empty());
  }
}

TEST_CASE("names that two sources define collide") {
  struct Case {
    std::string first, second;
    bool collide;
  };
  for (const auto& [first, second, collide] :
       std::vector<Case>{{"constexpr int kMost = 1;", "constexpr double kLeast = 2, kMost = 3;", true},
                         {"struct Case {};", "class Case {};", true},
                         {"int f(int a) { return a; }", "int f(int number) { return number; }", true},
                         {"int f(int a) { return a; }", "int f(long a) { return a; }", false},
                         {"int f(int a) { return a; }", "constexpr int f = 1;", true},
                         {"using J = json;", "using J = json;", false},
                         {"using J = json;", "using J = toml;", true},
                         {"struct A { int same; };", "struct B { int same; };", false}}) {
    CAPTURE(first, second);
    const std::vector<std::pair<std::string, std::string>> sources = {{"1.cpp", in_anonymous(first)},
                                                                      {"2.cpp", in_anonymous(second)}};
    CHECK(collisions(sources, 2).size() == (collide ? 1U : 0U));
    CHECK(collisions(sources, 1).empty());  // never in one batch
    const std::vector<std::pair<std::string, std::string>> apart = {
        sources[0], {"2.cpp", "namespace b {\nnamespace {\n" + second + "\n}\n}\n"}};
    CHECK(collisions(apart, 2).empty());
  }
  const auto told = collisions(
      {{"1.cpp", in_anonymous("int f() { return 1; }")}, {"2.cpp", in_anonymous("\nint f() { return 2; }")}},
      12);
  CHECK(told == std::vector<std::string>{"a::f: 1.cpp:3 and 2.cpp:4"});
}

TEST_CASE("no two sources of a target collide") {
  std::ifstream list(REHEARSE_UNITY_SOURCES);  // lines of a target, the size of its batches, and its sources
  std::size_t sources_read = 0;
  for (std::string line; std::getline(list, line);) {
    std::stringstream words(line);
    std::string target, source;
    std::size_t batch = 0;
    words >> target >> batch;
    std::vector<std::pair<std::string, std::string>> sources;
    while (words >> source) sources.emplace_back(source, text_in(source));
    sources_read += sources.size();
    const std::vector<std::string> told = collisions(sources, batch);
    CAPTURE(target, told);
    CHECK(told.empty());
  }
  CHECK(sources_read > 300);
}

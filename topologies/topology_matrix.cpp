#include "topologies/topology_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

struct Word {
  std::string text;
  int column = 1;
};
struct WordLine {
  int number = 1;
  std::vector<Word> words;
};

// Removes escape sequences such as "\x1b[4m", which underlines the first line on terminals.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      if (text[i] != '\r') plain += text[i];
      continue;
    }
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    for (i += 2; i < text.size() && text[i] != '\n' && (text[i] < '@' || text[i] > '~');) ++i;
  }
  return plain;
}

// Returns the lines that are not empty.
std::vector<WordLine> lines_of(const std::string& text) {
  std::vector<WordLine> lines;
  WordLine line;
  int column = 1;
  bool in_word = false;
  for (const char c : text + '\n') {
    if (c == '\n') {
      const int next = line.number + 1;
      if (!line.words.empty()) lines.push_back(std::move(line));
      line = {next, {}};
      column = 1;
      in_word = false;
      continue;
    }
    const bool space = c == ' ' || c == '\t';
    if (!space && !in_word) line.words.push_back({"", column});
    if (!space) line.words.back().text += c;
    in_word = !space;
    ++column;
  }
  return lines;
}

bool is_gpu(std::string_view word, std::size_t number) {
  return word == fmt::format("GPU{}", number);
}

constexpr std::size_t kMostGpus = 64;
constexpr int kMostNvlinks = 64;

// A connection in the matrix: 0 for PCIe, else the number of NVLinks; whether it leaves the socket.
struct Connection {
  int nvlinks = 0;
  bool between_sockets = false;
};

struct Matrix {
  std::size_t gpus = 0;
  int nics = 0;
  std::vector<std::vector<Connection>> to;  // from GPU to GPU
};

// SOC is what SYS was called before 2018; "P2P" kinds of other matrices are not among them.
Connection connection(const Word& word, const std::string& path, int line) {
  Connection c;
  constexpr std::array<std::string_view, 5> kInSocket = {"X", "PIX", "PXB", "PHB", "NODE"};
  if (std::find(kInSocket.begin(), kInSocket.end(), word.text) != kInSocket.end()) return c;
  c.between_sockets = word.text == "SYS" || word.text == "SOC";
  if (c.between_sockets) return c;
  const char *first = word.text.data() + 2, *last = word.text.data() + word.text.size();
  if (word.text.size() > 2 && word.text.starts_with("NV")) {
    const auto [end, error] = std::from_chars(first, last, c.nvlinks);
    if (error == std::errc() && end == last && c.nvlinks >= 1 && c.nvlinks <= kMostNvlinks) return c;
  }
  throw InputError(
      {path, line, word.column},
      fmt::format("\"{}\" in a matrix of nvidia-smi topo -m; allowed: X, NV1 to NV{}, PIX, PXB, PHB, "
                  "NODE, SYS",
                  word.text.substr(0, 40), kMostNvlinks));
}

Matrix matrix_of(const std::string& text, const std::string& path) {
  const std::vector<WordLine> lines = lines_of(without_escapes(text));
  Matrix matrix;
  const WordLine& head = lines.front();  // is_topology_matrix()
  while (matrix.gpus < head.words.size() && is_gpu(head.words[matrix.gpus].text, matrix.gpus)) ++matrix.gpus;
  if (matrix.gpus > kMostGpus)
    throw InputError({path, head.number, 1},
                     fmt::format("{} GPUs; allowed: at most {}", matrix.gpus, kMostGpus));
  for (std::size_t w = matrix.gpus; w < head.words.size(); ++w, ++matrix.nics)
    if (head.words[w].text == "CPU" || head.words[w].text == "NUMA" || head.words[w].text == "GPU") break;
  if (matrix.nics > 256)
    throw InputError({path, head.number, 1}, fmt::format("{} NICs; allowed: at most 256", matrix.nics));
  for (std::size_t g = 0; g < matrix.gpus; ++g) {
    const int after = g + 1 < lines.size() ? lines[g + 1].number : lines.back().number;
    if (g + 1 >= lines.size() || !is_gpu(lines[g + 1].words.front().text, g))
      throw InputError({path, after, 1},
                       fmt::format("no row of GPU{}; allowed: a row for each of the {} GPUs of the "
                                   "first line, in their order",
                                   g, matrix.gpus));
    const WordLine& row = lines[g + 1];
    if (row.words.size() < matrix.gpus + 1)
      throw InputError({path, row.number, 1}, fmt::format("{} connections of GPU{}; allowed: {}",
                                                          row.words.size() - 1, g, matrix.gpus));
    std::vector<Connection>& to = matrix.to.emplace_back();
    for (std::size_t b = 0; b < matrix.gpus; ++b) {
      const Word& word = row.words[b + 1];
      if ((word.text == "X") != (b == g))
        throw InputError({path, row.number, word.column},
                         fmt::format("\"{}\" from GPU{} to GPU{}; allowed: X from a GPU to itself only",
                                     word.text.substr(0, 40), g, b));
      to.push_back(connection(word, path, row.number));
      if (b < g && (matrix.to[b][g].nvlinks != to[b].nvlinks))
        throw InputError(
            {path, row.number, word.column},
            fmt::format("\"{}\" from GPU{} to GPU{}, unlike the other way; allowed: the same both ways",
                        word.text, g, b));
    }
  }
  return matrix;
}

// Number of sockets, if SYS divides the GPUs into equal groups of neighbours that no NVLink hides; else 1.
int sockets_of(const Matrix& m) {
  std::vector<int> group(m.gpus, -1);
  int groups = 0;
  for (std::size_t g = 0; g < m.gpus; ++g) {
    if (group[g] >= 0) continue;
    group[g] = groups++;
    for (std::size_t again = 0; again < m.gpus;
         ++again)  // an NVLink says nothing about sockets, so ask others, too
      for (std::size_t a = 0; a < m.gpus; ++a)
        for (std::size_t b = 0; b < m.gpus; ++b)
          if (group[a] == group[g] && group[b] < 0 && !m.to[a][b].between_sockets) group[b] = group[a];
  }
  const std::size_t each = m.gpus / static_cast<std::size_t>(groups);
  for (std::size_t g = 0; g < m.gpus; ++g)
    if (m.gpus % static_cast<std::size_t>(groups) != 0 || group[g] != static_cast<int>(g / each)) return 1;
  return groups;
}

// What a GPU's number of NVLinks suggests.
struct NvlinkGeneration {
  int links = 0;
  std::string_view device;
  double gb_per_s = 0;  // of one link, per direction
  std::string_view source;
};
constexpr std::array<NvlinkGeneration, 5> kNvlinkGenerations = {{
    {0, "l40s", 0, ""},
    {4, "rtx-a6000", 14.0625,
     "NVIDIA RTX A6000 datasheet: 112.5 GB/s in both directions together over 4 NVLinks"},
    {6, "v100-32", 25, "NVIDIA Tesla V100 whitepaper: NVLink 2, 25 GB/s a link and direction"},
    {12, "a100-80", 25, "NVIDIA A100 whitepaper: NVLink 3, 25 GB/s a link and direction"},
    {18, "h100", 25, "NVIDIA H100 whitepaper: NVLink 4, 25 GB/s a link and direction"},
}};

}  // namespace

bool is_topology_matrix(std::string_view text) {
  const std::vector<WordLine> lines = lines_of(without_escapes(text.substr(0, 65'536)));
  return !lines.empty() && is_gpu(lines.front().words.front().text, 0);
}

std::string cluster_file_of_matrix(const std::string& text, const std::string& path) {
  const Matrix m = matrix_of(text, path);
  int most_links = 0, least = kMostNvlinks, most = 0;
  std::string pairs;
  for (std::size_t a = 0; a < m.gpus; ++a) {
    int links = 0;
    for (std::size_t b = 0; b < m.gpus; ++b) {
      const int count = m.to[a][b].nvlinks;
      links += count;
      if (a == b) continue;
      least = std::min(least, count);
      most = std::max(most, count);
      if (a < b && count > 0)
        pairs += fmt::format("{}{{a = {}, b = {}, count = {}}}", pairs.empty() ? "" : ", ", a, b, count);
    }
    most_links = std::max(most_links, links);
  }
  const bool nvswitch = m.gpus > 2 && least == most && most_links > kNvlinkGenerations.back().links;
  const int links = nvswitch ? most : most_links;
  const auto generation = std::find_if(kNvlinkGenerations.begin(), kNvlinkGenerations.end() - 1,
                                       [&](const NvlinkGeneration& one) { return links <= one.links; });
  const int sockets = sockets_of(m);

  std::string out = fmt::format("title = \"{} GPUs, as nvidia-smi topo -m shows them\"\n", m.gpus);
  out += "basis = \"guess\"\nsources = [\n";
  out += "  \"nvidia-smi topo -m: which GPUs NVLinks join, how many, and which share a socket\",\n";
  if (links > 0) out += fmt::format("  \"{}\",\n", generation->source);
  out += "  \"guess: PCI Express 4.0 with 16 lanes, 31.5 GB/s; 1 us for a hop; NICs of 100 Gb/s\",\n";
  if (sockets > 1)
    out += "  \"guess: three links of UPI at 10.4 GT/s between two sockets, each 20.8 GB/s a direction\",\n";
  out += "]\n\n[node]\n";
  out += fmt::format("device = \"{}\"  # a guess by the number of NVLinks: the matrix does not name it\n",
                     generation->device);
  out += fmt::format("devices = {}\n", m.gpus);
  if (m.gpus > 1)
    out += fmt::format("interconnect = \"{}\"\n", nvswitch ? "nvswitch" : links > 0 ? "nvlink-mesh" : "pcie");
  if (links > 0) out += fmt::format("nvlink_gb_per_s = {}\n", generation->gb_per_s * (nvswitch ? links : 1));
  if (links > 0 && !nvswitch) out += fmt::format("nvlink = [{}]\n", pairs);
  out += "device_latency_us = 1\npcie_gb_per_s = 31.5\n";
  if (sockets > 1) out += fmt::format("sockets = {}\ninter_socket_gb_per_s = 62.4\n", sockets);
  out += fmt::format("nics = {}\nnic_gbps = 100\n\n[fabric]\nkind = \"switch\"\nlatency_us = 1\n",
                     std::max(1, m.nics));
  return out;
}

}  // namespace rehearse

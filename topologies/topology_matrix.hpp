// Reads the matrix of connections that `nvidia-smi topo -m` prints, and writes it as a cluster file.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// Returns whether `text` begins like such a matrix: its first line that is not empty names GPU0 first. Escape
// sequences of terminals are skipped.
bool is_topology_matrix(std::string_view text);

// Returns a cluster file (TOML) with one such node and one switch. NV# becomes NVLinks, or an NVSwitch if
// every pair has more of them than a mesh could; SYS divides the GPUs among sockets; columns that are neither
// GPUs nor affinities are NICs. The matrix names neither devices nor speeds, so these are guesses with their
// reasons. Throws InputError with file, line, column, what was found and what is allowed.
std::string cluster_file_of_matrix(const std::string& text, const std::string& path);

}  // namespace rehearse

// Checks the reader of `nvidia-smi topo -m`, and what its cluster files say.
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"
#include "topologies/read_node.hpp"
#include "topologies/topology_matrix.hpp"

using namespace rehearse;

namespace {

Node node_in(const std::string& matrix) {
  REQUIRE(is_topology_matrix(matrix));
  Document document = Document::parse_text(cluster_file_of_matrix(matrix, "topo.txt"), "written.toml");
  Section root = document.root();
  Section section = root.section("node");
  return read_node(section, "");
}

std::string matrix_error(const std::string& matrix) {
  try {
    cluster_file_of_matrix(matrix, "topo.txt");
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

// Every two of `gpus` GPUs are joined in the same way.
std::string all_joined(int gpus, const std::string& how) {
  std::string text = "\t";
  for (int g = 0; g < gpus; ++g) text += "GPU" + std::to_string(g) + "\t";
  for (int a = 0; a < gpus; ++a) {
    text += "\nGPU" + std::to_string(a);
    for (int b = 0; b < gpus; ++b) text += "\t" + (a == b ? " X " : how);
  }
  return text + "\n";
}

}  // namespace

TEST_CASE("a matrix of nvidia-smi becomes NVLink pairs and sockets") {
  // The form of 2023 with NICs, affinities and a legend, as NVIDIA/nccl-tests issue 178 has the GPUs.
  const std::string pairs =
      "\x1b[4m\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
      "GPU0\t X \tNV12\tSYS\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\r\n"
      "GPU1\tNV12\t X \tSYS\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\r\n"
      "GPU2\tSYS\tSYS\t X \tNV12\tSYS\tPXB\t32-63,96-127\t1\t\tN/A\r\n"
      "GPU3\tSYS\tSYS\tNV12\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A\r\n"
      "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\r\n"
      "NIC1\tSYS\tSYS\tPXB\tPXB\tSYS\t X \r\n"
      "\r\nLegend:\r\n\r\n  X    = Self\r\n\r\nNIC Legend:\r\n\r\n  NIC0: mlx5_0\r\n  NIC1: mlx5_1\r\n";
  const Node node = node_in(pairs);
  CHECK(node.devices == 4);
  CHECK(node.device.name == "a100-80");
  CHECK(node.interconnect == Node::Interconnect::nvlink_mesh);
  CHECK(node.device_bandwidth == 25e9);
  REQUIRE(node.mesh.size() == 2);
  CHECK(node.mesh[1].a == 2);
  CHECK(node.mesh[1].b == 3);
  CHECK(node.mesh[1].count == 12);
  CHECK(node.sockets == 2);
  CHECK(node.nics == 2);
}

TEST_CASE("old and other forms of the matrix") {
  // Before 2022 the columns of NICs had the names of their drivers; before 2018 SYS was SOC.
  const Node old = node_in(
      "        GPU0    GPU1    mlx5_0  CPU Affinity\n"
      "GPU0     X      SOC     PHB     0-9\n"
      "GPU1    SOC      X      SOC     10-19\n"
      "mlx5_0  PHB     SOC      X \n");
  CHECK(old.interconnect == Node::Interconnect::pcie);
  CHECK(old.sockets == 2);
  CHECK(old.nics == 1);

  const Node one = node_in("\tGPU0\tCPU Affinity\nGPU0\t X \t0-15\n");
  CHECK(one.devices == 1);
  CHECK(one.interconnect == Node::Interconnect::none);

  const Node hgx = node_in(all_joined(8, "NV18"));
  CHECK(hgx.interconnect == Node::Interconnect::nvswitch);
  CHECK(hgx.device_bandwidth == 450e9);
  CHECK(hgx.device.name == "h100");
  CHECK(hgx.sockets == 1);
  const Node mesh = node_in(all_joined(4, "NV4"));  // four A100 without NVSwitch
  CHECK(mesh.interconnect == Node::Interconnect::nvlink_mesh);
  CHECK(mesh.mesh.size() == 6);
  CHECK(mesh.device.name == "a100-80");
  CHECK(node_in(all_joined(2, "PHB")).interconnect == Node::Interconnect::pcie);

  CHECK_FALSE(is_topology_matrix("[node]\ndevice = \"h100\"\n"));
  CHECK_FALSE(is_topology_matrix(""));
  CHECK_FALSE(is_topology_matrix("\x1b["));
}

TEST_CASE("sockets whose GPUs are no equal runs of neighbours are left out") {
  CHECK(node_in("\tGPU0 GPU1 GPU2 GPU3\nGPU0 X SYS NODE SYS\nGPU1 SYS X SYS NODE\nGPU2 NODE SYS X SYS\n"
                "GPU3 SYS NODE SYS X\n")
            .sockets == 1);
  CHECK(node_in("\tGPU0 GPU1 GPU2\nGPU0 X SYS SYS\nGPU1 SYS X PHB\nGPU2 SYS PHB X\n").sockets == 1);
}

TEST_CASE("a damaged matrix is refused with its place") {
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X PIX\n").find("topo.txt:2:1: no row of GPU1") == 0);
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X\nGPU1 PIX X\n")
            .find("topo.txt:2:1: 1 connections of GPU0; allowed: 2") == 0);
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X NVX\nGPU1 NVX X\n").find("topo.txt:2:8: \"NVX\"") == 0);
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X NV999\nGPU1 NV999 X\n").find("topo.txt:2:8: \"NV999\"") == 0);
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X X\nGPU1 X X\n").find("topo.txt:2:8: \"X\" from GPU0 to GPU1") == 0);
  CHECK(matrix_error("GPU0 GPU1\nGPU0 X NV4\nGPU1 PIX X\n").find("topo.txt:3:6: \"PIX\" from GPU1 to GPU0") ==
        0);
}

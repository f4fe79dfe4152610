// How events are sorted into kinds, and what names of processes tell.
#include "gui/models/event_kinds.hpp"
#include "gui/models/process_names.hpp"
#include "gui/models/timeline_layout.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

TEST_CASE("Ops of ours by their pass and kind") {
  struct Case {
    const char *category, *kind, *name;
    Sorted sorted;
  };
  for (const auto& [category, kind, name, sorted] :
       {Case{"forward", "compute", "forward 0", {Kind::compute, Pass::forward}},
        Case{"recompute", "compute", "recompute 0", {Kind::compute, Pass::backward}},
        Case{"backward_weight", "compute", "backward weight 0", {Kind::compute, Pass::backward}},
        Case{"optimizer", "compute", "optimizer", {Kind::compute, Pass::optimizer}},
        Case{"other", "compute", "begin step", {Kind::compute, Pass::none}},
        Case{"forward", "exchange", "send forward 0", {Kind::communication, Pass::none}},
        Case{"gradient_sync", "reduce-scatter", "bucket 0", {Kind::communication, Pass::none}},
        Case{"data", "host", "load batch", {Kind::data, Pass::none}},
        Case{"other", "host", "write checkpoint", {Kind::checkpoint, Pass::none}},
        Case{"gradient_sync", "host", "fusion cycle 0", {Kind::waiting, Pass::none}},
        Case{"other", "wait_until", "wait for clock", {Kind::waiting, Pass::none}},
        Case{"other", "signal", "tell clock", {Kind::other, Pass::none}}}) {
    CAPTURE(name);
    CHECK(sorted_op(category, kind, name) == sorted);
  }
  CHECK(is_pipeline_transfer("backward", "exchange", "receive backward 3"));
  CHECK_FALSE(is_pipeline_transfer("gradient_sync", "exchange", "push bucket 3"));
  CHECK_FALSE(is_pipeline_transfer("forward", "all-gather", "gather forward 3"));
}

// Categories and names as they stand in traces of PyTorch 1.8 to 2.15.
TEST_CASE("Events of PyTorch's profiler by category and name") {
  struct Case {
    const char *category, *name;
    Sorted sorted;
    const char* exposed = "";
  };
  for (const auto& [category, name, sorted, exposed] :
       {Case{"kernel",
             "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
             {Kind::communication},
             "exposed all-reduce"},
        Case{"kernel",
             "ncclKernel_ReduceScatter_RING_LL_Sum_half(x)",
             {Kind::communication},
             "exposed reduce-scatter"},
        Case{"Kernel", "ncclKernel_SendRecv(x)", {Kind::communication}, "exposed sends and receives"},
        Case{"kernel", "void at::native::vectorized_elementwise_kernel<4>", {Kind::compute}},
        Case{"kernel", "flash_fwd_kernel", {Kind::compute, Pass::forward}},
        Case{"kernel", "flash_bwd_kernel", {Kind::compute, Pass::backward}},
        Case{"gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", {Kind::copy}},
        Case{"gpu_memset", "Memset (Device)", {Kind::copy}},
        Case{"cpu_op", "aten::mm", {Kind::host}},
        Case{"cpu_op", "autograd::engine::evaluate_function: MmBackward0", {Kind::host, Pass::backward}},
        Case{"cpu_op", "c10d::allreduce_", {Kind::communication}, "exposed all-reduce"},
        Case{"user_annotation", "gloo:all_reduce", {Kind::communication}, "exposed all-reduce"},
        Case{"gpu_user_annotation", "nccl:all_gather", {Kind::annotation}},
        Case{"user_annotation", "ProfilerStep#7", {Kind::annotation}},
        Case{"user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {Kind::data}},
        Case{"user_annotation", "Optimizer.step#SGD.step", {Kind::annotation, Pass::optimizer}},
        Case{"user_annotation", "DistributedDataParallel.forward", {Kind::annotation, Pass::forward}},
        Case{"cuda_runtime", "cudaLaunchKernel", {Kind::host}},
        Case{"cuda_driver", "cuLaunchKernel", {Kind::host}},
        Case{"python_function", "train.py(12): step", {Kind::host}},
        Case{"overhead", "CUPTI Buffer Request", {Kind::host}},
        Case{"Trace", "PyTorch Profiler (0)", {Kind::annotation}}}) {
    CAPTURE(name);
    CHECK(sorted_profiled(category, name) == sorted);
    if (sorted.kind == Kind::communication) CHECK(exposed_name(name, Draft::Moves::not_told) == exposed);
  }
  CHECK_FALSE(sorted_profiled("toplevel", "something else"));
  CHECK((bytes_of_type("Float") == 4 && bytes_of_type("c10::BFloat16") == 2 &&
         bytes_of_type("Float8_e4m3fn") == 1));
  CHECK((bytes_of_type("Long") == 8 && bytes_of_type("unsigned char") == 1 && bytes_of_type("thing") == 0));
}

TEST_CASE("What the name of a process tells") {
  struct Case {
    const char* name;
    int members;
    const char *stage, *role;
  };
  for (const auto& [name, members, stage, role] :
       {Case{"stage 3, data 0-63 (64 ranks)", 64, "stage 3", "worker"},
        Case{"stage 12, data 5 (rank 83)", 1, "stage 12", "worker"},
        Case{"job 2: stage 0 (rank 0)", 1, "stage 0", "worker"},
        Case{"worker, data 0, 8, 16, 24 (4 ranks)", 4, "", "worker"},
        Case{"worker (ranks 0-3, 8)", 5, "", "worker"},
        Case{"worker (12 ranks: 0-3, 8-9, 11 ...)", 12, "", "worker"},
        Case{"big: server, server 0-3 (4 ranks)", 4, "", "server"}, Case{"python", 1, "", "python"}}) {
    CAPTURE(name);
    CHECK((members_of(name) == members && stage_of(name) == stage && role_of(name) == role));
  }
}

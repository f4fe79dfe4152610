// Tests how events are assigned to kinds.
#include "gui/models/timeline/event_kinds.hpp"
#include "gui/models/trace/timeline_layout.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

TEST_CASE("Ops of ours by their pass and kind") {
  struct Case {
    const char *category, *kind, *host_action;
    Sorted sorted;
  };
  for (const auto& [category, kind, host_action, sorted] :
       {Case{"forward", "compute", "", {Kind::compute, rehearse::gui::Pass::forward}},
        Case{"recompute", "compute", "", {Kind::compute, rehearse::gui::Pass::recompute}},
        Case{"backward_weight", "compute", "", {Kind::compute, rehearse::gui::Pass::weights}},
        Case{"optimizer", "compute", "", {Kind::compute, rehearse::gui::Pass::optimizer}},
        Case{"other", "compute", "", {Kind::compute, rehearse::gui::Pass::none}},
        Case{"forward", "exchange", "", {Kind::communication, rehearse::gui::Pass::none}},
        Case{"gradient_sync", "reduce-scatter", "", {Kind::communication, rehearse::gui::Pass::none}},
        Case{"data", "host", "load_batch", {Kind::data, rehearse::gui::Pass::none}},
        Case{"other", "host", "write_checkpoint", {Kind::checkpoint, rehearse::gui::Pass::none}},
        Case{"gradient_sync", "host", "sleep", {Kind::waiting, rehearse::gui::Pass::none}},
        Case{"gradient_sync", "host", "copy_to_host", {Kind::copy, rehearse::gui::Pass::none}},
        Case{"other", "host", "read_nvme", {Kind::copy, rehearse::gui::Pass::none}},
        Case{"optimizer", "host", "update", {Kind::host, rehearse::gui::Pass::optimizer}},
        Case{"other", "wait_until", "", {Kind::waiting, rehearse::gui::Pass::none}},
        Case{"other", "signal", "", {Kind::other, rehearse::gui::Pass::none}}}) {
    CAPTURE(category, kind, host_action);
    CHECK(sorted_op(category, kind, host_action) == sorted);
  }
}

// Categories and names as in traces of PyTorch 1.8 to 2.15.
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
        Case{"kernel", "flash_fwd_kernel", {Kind::compute, rehearse::gui::Pass::forward}},
        Case{"kernel", "flash_bwd_kernel", {Kind::compute, rehearse::gui::Pass::backward}},
        Case{"gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", {Kind::copy}},
        Case{"gpu_memset", "Memset (Device)", {Kind::copy}},
        Case{"cpu_op", "aten::mm", {Kind::host}},
        Case{"cpu_op",
             "autograd::engine::evaluate_function: MmBackward0",
             {Kind::host, rehearse::gui::Pass::backward}},
        Case{"cpu_op", "c10d::allreduce_", {Kind::communication}, "exposed all-reduce"},
        Case{"user_annotation", "gloo:all_reduce", {Kind::communication}, "exposed all-reduce"},
        Case{"gpu_user_annotation", "nccl:all_gather", {Kind::annotation}},
        Case{"user_annotation", "ProfilerStep#7", {Kind::annotation}},
        Case{"user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {Kind::data}},
        Case{
            "user_annotation", "Optimizer.step#SGD.step", {Kind::annotation, rehearse::gui::Pass::optimizer}},
        Case{"user_annotation",
             "DistributedDataParallel.forward",
             {Kind::annotation, rehearse::gui::Pass::forward}},
        Case{"cuda_runtime", "cudaLaunchKernel", {Kind::host}},
        Case{"cuda_driver", "cuLaunchKernel", {Kind::host}},
        Case{"python_function", "train.py(12): step", {Kind::host}},
        Case{"overhead", "CUPTI Buffer Request", {Kind::host}},
        Case{"Trace", "PyTorch Profiler (0)", {Kind::annotation}}}) {
    CAPTURE(name);
    CHECK(sorted_profiled(category, name) == sorted);
    if (sorted.kind == Kind::communication) CHECK(exposed_name(name) == exposed);
  }
  CHECK_FALSE(sorted_profiled("toplevel", "something else"));
  CHECK((bytes_of_type("Float") == 4 && bytes_of_type("c10::BFloat16") == 2 &&
         bytes_of_type("Float8_e4m3fn") == 1));
  CHECK((bytes_of_type("Long") == 8 && bytes_of_type("unsigned char") == 1 && bytes_of_type("thing") == 0));
}

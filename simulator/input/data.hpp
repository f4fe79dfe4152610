// Defines the input of a training run: its samples, where they are stored, and how they are loaded.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "simulator/input/cache.hpp"
#include "topologies/device.hpp"
#include "topologies/storage.hpp"

namespace rehearse {

// How workers divide their work. PyTorch's workers each prepare whole batches; the threads of DALI, tf.data
// and FFCV prepare the samples of one batch together.
enum class LoaderKind { batches, samples };
inline constexpr std::array<std::string_view, 2> kLoaderKindNames = {"batches", "samples"};

struct DataLoader {
  std::string title;
  LoaderKind kind = LoaderKind::batches;
  int workers = 2;  // of each device; 0: the training process loads, and does nothing else meanwhile
  // Batches that are prepared ahead: of each worker (kind `batches`), or of all of them.
  int prefetch = 2;
  int device_batches =
      2;  // that the device has room for: one that it trains on, others that are copied to it
};

// How the storage serves single reads. What it carries in total is in Storage.
struct StorageAccess {
  std::string title;
  double latency_s = 0;           // of one operation
  double reader_bytes_per_s = 0;  // of one reader, such as one connection; 0: unlimited
};

struct Data {
  bool given = false;  // the scenario says what the input is; otherwise input takes no time
  std::string title;   // of the dataset
  double samples = 0;  // of the dataset; 0: unknown
  double sample_bytes = 0;
  double record_bytes =
      0;  // of the files into which samples are packed in the order of reading; 0: a file each
  double device_bytes = 0;  // of a prepared sample
  bool shuffle = true;
  std::string preparation;  // its title
  Sourced core_s;           // that one core takes to prepare a sample
  DataLoader loader;
  Storage storage;
  StorageAccess access;
  CachePolicy cache = CachePolicy::none;
  double cache_bytes = 0;  // of a node
};

}  // namespace rehearse

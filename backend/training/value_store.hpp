// The tensors between the segments of a transformer's layers on one rank, and their gradients, by
// micro-batch: each as its maker gives it and as its readers read it. What lies between is exchanged with
// other ranks.
#pragma once

#include <map>
#include <vector>

#include "backend/training/tensor_layout.hpp"
#include "backend/training/trained_network.hpp"
#include "backend/training/transformer_arithmetic.hpp"
#include "simulator/strategies/programs/walk.hpp"

namespace rehearse {

// A gradient that a segment gives to one of its inputs. Not `wanted`: another rank gives the same.
struct GradientTarget {
  Array array;
  bool accumulate = false, wanted = true;
};

class ValueStore {
public:
  // Of the layers in `held`; `model`, `walk`, `shards` and both arithmetics must outlive it. RunError if the
  // scenario's axes ask for what is not exchanged here.
  ValueStore(Arithmetic& arithmetic, TransformerArithmetic& pieces, const std::vector<Layer>& model,
             const Walk& walk, const Shards& shards, const DimSizes& sizes,
             const std::vector<LayerRange>& held, int microbatches, const std::vector<int>& change_streams);

  // Of segment number `segment` of the model. The gradients of what it makes begin anew.
  void begin_forward(int segment, int microbatch);
  Array output(int segment, int output, int microbatch) const;
  // As the segment reads it.
  Array input(int stream, int segment, int input, int microbatch);
  // As the segment reads it, summed over all readers of the output.
  Array output_gradient(int stream, int segment, int output, int microbatch);
  // Where the segment writes the gradient of an input; `accumulate`: or adds it.
  GradientTarget input_gradient(int stream, int segment, int input, int microbatch);

  Array begin_transfer(int stream, const ValueTransfer& transfer);
  void end_transfer(int stream, const ValueTransfer& transfer);

  // Elements of the largest tensor here.
  std::size_t largest() const;

  // What stages exchange: TrainedNetwork::activation().
  Array activation(int microbatch, int layer) const;
  Array activation_gradient(int microbatch, int layer) const;

private:
  // The changes of one direction on this rank: before step k the tensor lies in states[k].
  struct Way {
    std::vector<Change> changes;
    std::vector<Placements> placements;         // by state
    std::vector<TensorLayout> layouts;          // by state
    std::vector<std::vector<OwnedArray>> here;  // by state and micro-batch; empty: it is not here
    int first = 0, end = 0;                     // steps on this rank
  };
  struct Path {  // of a route
    bool made_here = false, read_here = false;
    int maker = -1;  // number of the tensor in made_
    Way forward, backward;
    std::vector<char> empty;  // by micro-batch: no reader has given a gradient yet
  };
  struct Made {
    TensorLayout layout;
    std::vector<OwnedArray> value;  // by micro-batch
    std::vector<int> paths;
    std::vector<OwnedArray> sum;  // of the paths' gradients, where they are several
    std::vector<char> summed;
  };
  struct Reader {
    int path = -1;            // -1: the batch
    bool kept_apart = false;  // this rank's gradient is another's again
  };

  void add_made(int segment);
  void add_paths();
  void lay_out(Way& way, const Value& value, Placements from, const Placements& to,
               const DimSizes& sizes) const;
  void allocate(std::vector<OwnedArray>& arrays, std::size_t elements) const;
  void add_readers(int segment);
  int boundary(int layer) const;
  Array state(const Path& path, const Way& way, int state, int microbatch) const;
  void run_free(int stream, const Path& path, const Way& way, int begin, int end, int microbatch);
  void run_trailing(int stream, const Path& path, const Way& way, int microbatch);
  Array packed(int stream, std::size_t elements) const { return packed_.at(stream)->part(0, elements); }
  void allocate_packed(const std::vector<int>& streams);
  // Between a tensor and the block of it that is the shard, in `sharded`, of the member of a change at these
  // coordinates.
  void copy_block(int stream, const TensorLayout& whole, const Change& change, const Placements& sharded,
                  const std::vector<int>& coordinates, const Array& all, const Array& block,
                  bool into_block) const;

  Arithmetic& arithmetic_;
  TransformerArithmetic& pieces_;
  const std::vector<Layer>& model_;
  const Walk& walk_;
  const Shards& shards_;
  const DimSizes sizes_;
  std::vector<char> held_;  // by layer
  int microbatches_;
  std::vector<Path> paths_;  // by route
  std::vector<Made> made_;
  std::vector<std::vector<int>> outputs_;     // by segment: numbers in made_
  std::vector<std::vector<Reader>> readers_;  // by segment and input
  std::map<int, OwnedArray> packed_;          // by stream: for its transfer under way
};

}  // namespace rehearse

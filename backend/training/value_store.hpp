// Stores the tensors between the segments of a transformer's layers on one rank, and their gradients, by
// micro-batch: in the placement in which their maker writes them and in those in which their readers read
// them. The changes between these placements are exchanges with other ranks.
#pragma once

#include <map>
#include <vector>

#include "backend/training/tensor_layout.hpp"
#include "backend/training/trained_network.hpp"
#include "backend/training/transformer_arithmetic.hpp"
#include "simulator/strategies/programs/walk.hpp"

namespace rehearse {

// Where a segment writes the gradient of one of its inputs. `wanted` is false if it should not: another rank
// contributes the same gradient, or the input has none.
struct GradientTarget {
  Array array;
  bool accumulate = false, wanted = true;
};

class ValueStore {
public:
  // Stores the tensors of the layers in `held`. `model`, `walk`, `shards` and both arithmetics must outlive
  // it. Throws RunError if the scenario's axes require an exchange that is not implemented here.
  ValueStore(Arithmetic& arithmetic, TransformerArithmetic& pieces, const std::vector<Layer>& model,
             const Walk& walk, const Shards& shards, const DimSizes& sizes,
             const std::vector<LayerRange>& held, int microbatches, const std::vector<int>& change_streams);

  // Must be called before a forward pass of segment number `segment` of the model; resets the gradients of
  // its outputs.
  void begin_forward(int segment, int microbatch);
  Array output(int segment, int output, int microbatch) const;
  // Returns an input in the placement in which the segment reads it.
  Array input(int stream, int segment, int input, int microbatch);
  // Returns the gradient of an output, in the placement in which the segment reads it, summed over all
  // readers of the output.
  Array output_gradient(int stream, int segment, int output, int microbatch);
  // Returns where the segment writes the gradient of an input or, if `accumulate`, to which it adds it.
  GradientTarget input_gradient(int stream, int segment, int input, int microbatch);

  Array begin_transfer(int stream, const ValueTransfer& transfer);
  void end_transfer(int stream, const ValueTransfer& transfer);

  // Returns the number of elements of the largest tensor on this rank.
  std::size_t largest() const;

  // Return what stages exchange; see TrainedNetwork::activation().
  Array activation(int microbatch, int layer) const;
  Array activation_gradient(int microbatch, int layer) const;
  void begin_send(int stream, int microbatch, int layer, bool of_gradient);

private:
  // The changes of placement in one direction on this rank. State k is the tensor before change k.
  struct Way {
    std::vector<Change> changes;
    std::vector<Placements> placements;         // by state
    std::vector<TensorLayout> layouts;          // by state
    std::vector<std::vector<OwnedArray>> here;  // by state and micro-batch; empty: not on this rank
    int first = 0, end = 0;                     // states on this rank
    int before = 0;                             // see ValueRoute
  };
  struct Path {  // of a route
    bool made_here = false, read_here = false;
    int maker = -1;  // index of the tensor in made_
    Way forward, backward;
    std::vector<char> empty;  // by micro-batch: no reader has written a gradient yet
  };
  struct Made {
    TensorLayout layout;
    std::vector<OwnedArray> value;  // by micro-batch
    std::vector<int> paths;
    std::vector<OwnedArray> sum;  // of the paths' gradients, if there are several
    std::vector<char> summed;
  };
  struct Reader {
    int path = -1;            // -1: the batch
    bool kept_apart = false;  // another rank contributes this rank's gradient
  };

  void add_made(int number);
  void add_paths();
  void lay_out(Way& way, const Value& value, Placements from, const Placements& by_way_of,
               const Placements& to) const;
  void allocate(std::vector<OwnedArray>& arrays, std::size_t elements) const;
  void add_readers(int number);
  int boundary(int layer) const;
  Array state(const Path& path, const Way& way, int state, int microbatch) const;
  void run_free(int stream, const Path& path, const Way& way, int begin, int end, int microbatch);
  void run_trailing(int stream, const Path& path, const Way& way, int microbatch);
  Array packed(int stream, std::size_t elements) const { return packed_.at(stream)->part(0, elements); }
  void allocate_packed(const std::vector<int>& streams);
  // Copies between a tensor and the block of it that belongs to the member of a change at these coordinates,
  // when the tensor is sharded as in `sharded`.
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
  std::vector<std::vector<int>> outputs_;     // by segment: indices in made_
  std::vector<std::vector<Reader>> readers_;  // by segment and input
  std::map<int, OwnedArray> packed_;          // by stream: for its transfer in progress
};

}  // namespace rehearse

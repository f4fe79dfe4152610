#include "backend/host/host_hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "backend/runtime/combine_numbers.hpp"
#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

// This member's messages on one connection of a message table, which are sent one after the other.
struct Lane {
  std::vector<std::int64_t> messages;
  std::size_t next = 0;
  Parcel parcel;
  bool posted = false;
  // Where data arrives that is added later, once this member's own message of the same range has left.
  std::vector<std::byte> aside;
};

class TableRun {
public:
  TableRun(Transport& transport, const CollectiveWiring& wiring, int rank, const Payload& payload)
      : transport_(transport),
        wiring_(wiring),
        table_(wiring.table),
        self_(wiring.member_of(rank)),
        payload_(payload),
        done_(table_.messages.size(), 0),
        lanes_(table_.connections.size()) {
    for (std::size_t m = 0; m < table_.messages.size(); ++m) {
      const int c = table_.messages[m].connection;
      if (table_.connections[c].from == self_ || table_.connections[c].to == self_)
        lanes_[c].messages.push_back(static_cast<std::int64_t>(m));
      stages_ = std::max(stages_, table_.messages[m].stage + 1);
    }
  }

  void run() {
    std::vector<Parcel*> active;
    for (;;) {
      active.clear();
      bool left = false;
      for (const bool later : {false, true})  // what is added behind a message comes after that message
        for (Lane& lane : lanes_)
          if (lane.posted && lane.parcel.done && !lane.aside.empty() == later) end(lane);
      for (std::size_t c = 0; c < lanes_.size(); ++c) {
        Lane& lane = lanes_[c];
        if (lane.next == lane.messages.size()) continue;
        left = true;
        if (!lane.posted && ready(static_cast<int>(c), lane.messages[lane.next])) post(static_cast<int>(c));
        if (lane.posted && !lane.parcel.done) active.push_back(&lane.parcel);
      }
      if (!left) return;
      transport_.progress(active);
    }
  }

private:
  bool ready(int connection, std::int64_t number) const {
    const MessageTable::Message& message = table_.messages[number];
    if (table_.connections[connection].to == self_)
      return (message.behind < 0 || done_[message.behind] != 0) &&
             !(message.reduce && adds_earlier(connection, number));
    for (std::int64_t i = table_.first_needed[number]; i < table_.first_needed[number + 1]; ++i)
      if (done_[table_.needed[i]] == 0) return false;
    return !sends_in_earlier_stage(message);
  }

  // Returns whether a message before this one in the table is still to be added to the same numbers. A member
  // of a tree adds its children's numbers in the order of the table, not of arrival, because sums in fp32
  // depend on their order: losses are the same in every run, and groups that add up the same numbers get the
  // same sums.
  bool adds_earlier(int connection, std::int64_t number) const {
    const MessageTable::Message& message = table_.messages[number];
    for (std::size_t c = 0; c < lanes_.size(); ++c) {
      if (static_cast<int>(c) == connection || table_.connections[c].to != self_) continue;
      const Lane& lane = lanes_[c];
      for (std::size_t i = lane.next; i < lane.messages.size() && lane.messages[i] < number; ++i) {
        const MessageTable::Message& other = table_.messages[lane.messages[i]];
        if (other.reduce && other.begin < message.end && message.begin < other.end) return true;
      }
    }
    return false;
  }

  // Returns whether an earlier step of the collective still has messages to send. Steps must follow one
  // another: if a step began while the kernel still buffered data of the previous one, the two would share
  // the network card, the previous step's receiver would fall behind, and its delay would grow from step to
  // step.
  bool sends_in_earlier_stage(const MessageTable::Message& message) const {
    for (std::size_t c = 0; c < lanes_.size(); ++c) {
      const Lane& lane = lanes_[c];
      if (lane.next == lane.messages.size() || table_.connections[c].from != self_) continue;
      const MessageTable::Message& other = table_.messages[lane.messages[lane.next]];
      if (other.lane == message.lane && other.stage < message.stage) return true;
    }
    return false;
  }

  // Ends a message that has been sent or received, unless its data must still be kept aside.
  void end(Lane& lane) {
    const std::int64_t number = lane.messages[lane.next];
    if (!lane.aside.empty()) {
      const MessageTable::Message& message = table_.messages[number];
      if (done_[message.after_sent] == 0) return;
      combine_numbers(payload_.type, payload_.reduction, data_of(message), lane.aside.data(),
                      lane.parcel.bytes);
      spare_.push_back(std::move(lane.aside));
      lane.aside.clear();
    }
    done_[number] = 1;
    ++lane.next;
    lane.posted = false;
  }

  std::byte* data_of(const MessageTable::Message& message) const {
    return payload_.data + static_cast<std::size_t>(message.begin) * kElementBytes;
  }

  void post(int connection) {
    Lane& lane = lanes_[connection];
    const MessageTable::Message& message = table_.messages[lane.messages[lane.next]];
    const Connection& ends = table_.connections[connection];
    const bool sends = ends.from == self_, later = !sends && message.after_sent >= 0;
    lane.parcel = {};
    lane.parcel.kind = sends                      ? Parcel::Kind::send
                       : message.reduce && !later ? Parcel::Kind::receive_combine
                                                  : Parcel::Kind::receive;
    lane.parcel.peer = wiring_.ranks[sends ? ends.to : ends.from];
    lane.parcel.channel = wiring_.first_channel + connection;
    lane.parcel.data = data_of(message);
    lane.parcel.type = payload_.type;
    lane.parcel.reduction = payload_.reduction;
    lane.parcel.bytes = static_cast<std::size_t>(message.end - message.begin) * kElementBytes;
    if (later) {
      if (!spare_.empty()) {
        lane.aside = std::move(spare_.back());
        spare_.pop_back();
      }
      lane.aside.resize(lane.parcel.bytes);
      lane.parcel.data = lane.aside.data();
    }
    lane.parcel.until_arrived = sends && stages_ > 1;
    lane.posted = true;
  }

  Transport& transport_;
  const CollectiveWiring& wiring_;
  const MessageTable& table_;
  const int self_;
  const Payload payload_;
  std::vector<char> done_;  // by message: this member has sent or received it
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::byte>> spare_;  // memory for Lane::aside that is not in use
  int stages_ = 1;
};

class HostHardware : public Hardware {
public:
  HostHardware(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
               Workload& workload, RealRun::Collectives collectives)
      : wiring_(wiring),
        rank_(rank),
        transport_(transport),
        workload_(workload),
        by_library_(collectives == RealRun::Collectives::library) {
    const int number = wiring.communication().program_of_rank(rank);
    if (number < 0) return;
    program_ = &schedule.programs[number];
    for (std::size_t i = 0; i < program_->ops.size(); ++i) {
      const Op& op = program_->ops[i];
      const int n = static_cast<int>(i);
      exchanges_.push_back(op.kind == OpKind::exchange ? wiring.exchange(rank, n)
                                                       : std::vector<ExchangePart>());
      collectives_.push_back(op.kind == OpKind::collective ? wiring.collective(rank, n) : nullptr);
    }
  }

  Moment mark(int) override { return {monotonic_s()}; }
  void wait_for(int, const Moment&) override {}
  void settle(int) override {}
  double seconds(const Moment& moment) override { return moment.time_s; }

  void prepare(const OpCall& call) override {
    workload_.prepare(call, [] {});
  }
  void compute(const OpCall& call) override { workload_.compute(call); }

  void host(const OpCall& call) override {
    const Op& op = program_->ops[call.op];
    if (op.purpose == Purpose::input) return workload_.input(call);
    std::this_thread::sleep_for(std::chrono::duration<double>(op.seconds));
  }

  Exchanged exchange(const OpCall& call, int sender, const std::function<void()>& other_side_here) override {
    const Op& op = program_->ops[call.op];
    const std::vector<ExchangePart>& parts = exchanges_[call.op];
    if (op.purpose == Purpose::input) {
      workload_.input(call);
      return {};
    }
    if (op.messages.front().peer.kind == Peer::Kind::any) return receive_from_anyone(call, other_side_here);
    std::vector<Parcel> parcels;
    for (const ExchangePart& part : parts)
      if (op.messages[part.message].peer.kind != Peer::Kind::sender || part.peer == sender)
        parcels.push_back(parcel(call, part));
    std::vector<Parcel*> pointers;
    for (Parcel& p : parcels) pointers.push_back(&p);
    if (op.turn >= 0) {
      if (pointers.size() == 1 && parcels.front().kind != Parcel::Kind::send) transport_.wait_any(pointers);
      other_side_here();
    }
    carry(transport_, pointers);
    if (std::any_of(parcels.begin(), parcels.end(), [](const Parcel& p) { return p.over; }))
      return {-1, true};
    return {};
  }

  void collective(const OpCall& call) override {
    const std::shared_ptr<const CollectiveWiring>& wiring = collectives_[call.op];
    if (!wiring) return;
    const Payload payload = workload_.collective(call, *wiring);
    if (by_library_ && program_->ops[call.op].collective.kind == CollectiveKind::all_reduce)
      transport_.all_reduce(wiring->ranks, wiring->first_channel, payload.reduction,
                            reinterpret_cast<float*>(payload.data), wiring->table.elements);
    else
      run_table(transport_, *wiring, rank_, payload);
    workload_.after_collective(call);
  }

  void end_messages() override {
    std::vector<Parcel> parcels;
    for (const Channel& channel : wiring_.endless_channels(rank_)) {
      Parcel end;
      end.peer = channel.to;
      end.channel = channel.number;
      parcels.push_back(end);
    }
    std::vector<Parcel*> pointers;
    for (Parcel& p : parcels) pointers.push_back(&p);
    if (!pointers.empty()) carry(transport_, pointers);
  }

  void abort(const std::string&) override {
    workload_.stop_input();
    transport_.abort();
  }

private:
  Parcel parcel(const OpCall& call, const ExchangePart& part) {
    Parcel p;
    p.kind = part.send ? Parcel::Kind::send : Parcel::Kind::receive;
    p.peer = part.peer;
    p.channel = part.channel;
    p.rendezvous = part.rendezvous;
    const Payload payload = workload_.message(call, part);
    p.data = payload.data;
    p.bytes = payload.bytes;
    return p;
  }

  // The result is `over` if all possible senders have announced that they send no more.
  Exchanged receive_from_anyone(const OpCall& call, const std::function<void()>& other_side_here) {
    std::vector<Parcel> parcels;
    {
      const std::lock_guard lock(closed_mutex_);
      for (const ExchangePart& part : exchanges_[call.op])
        if (closed_.count(part.channel) == 0) parcels.push_back(parcel(call, part));
    }
    while (!parcels.empty()) {
      std::vector<Parcel*> pointers;
      for (Parcel& p : parcels) pointers.push_back(&p);
      const std::size_t came = transport_.wait_any(pointers);
      other_side_here();
      Parcel& message = parcels[came];
      carry(transport_, {&message});
      if (!message.over) return {message.peer, false};
      {
        const std::lock_guard lock(closed_mutex_);
        closed_.insert(message.channel);
      }
      parcels.erase(parcels.begin() + static_cast<std::ptrdiff_t>(came));
    }
    return {-1, true};
  }

  const Wiring& wiring_;
  const int rank_;
  Transport& transport_;
  Workload& workload_;
  const bool by_library_;
  const Program* program_ = nullptr;
  std::vector<std::vector<ExchangePart>> exchanges_;                  // by op
  std::vector<std::shared_ptr<const CollectiveWiring>> collectives_;  // by op
  std::set<int> closed_;                                              // channels whose sender sends no more
  std::mutex closed_mutex_;
};

}  // namespace

void run_table(Transport& transport, const CollectiveWiring& wiring, int rank, const Payload& payload) {
  TableRun(transport, wiring, rank, payload).run();
}

std::unique_ptr<Hardware> host_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload,
                                        RealRun::Collectives collectives) {
  if (collectives == RealRun::Collectives::library && !transport.reduces())
    throw RunError(
        fmt::format("run.collectives is \"library\", and {} has no built-in all-reduce; allowed: "
                    "\"schedule\", or MPI's under mpirun",
                    transport.kind()));
  return std::make_unique<HostHardware>(schedule, wiring, rank, transport, workload, collectives);
}

}  // namespace rehearse

// Creates anonymous network namespaces and runs the programs `ip` and `tc` inside them.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// A file descriptor that its owner closes.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }

private:
  int fd_;
};

// Creates a network namespace, which lives as long as a descriptor of it is open or a process is in it: it
// has no name and no file, so when its owner dies, by any signal, the kernel removes it and everything in it.
// Throws RunError if this process may not create one. Without root, the first call moves this process into a
// new user namespace, in which it may; that requires a single-threaded process.
Descriptor make_namespace();

// Moves the calling thread, and what it starts, into the namespace until the end of the scope.
class InNamespace {
public:
  explicit InNamespace(const Descriptor& space);
  ~InNamespace();
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

private:
  Descriptor home_;
};

// Runs `ip -batch` or `tc -batch` on the lines in the calling thread's namespace. Throws RunError with the
// line that failed and the program's output.
void run_batch(const std::string& program, const std::vector<std::string>& lines);
// Like run_batch(), but returns whether it succeeded.
bool try_batch(const std::string& program, const std::vector<std::string>& lines);

// Writes a file below /proc/sys/net in the calling thread's namespace; returns false if this kernel does not
// have it.
bool set_sysctl(const std::string& name, const std::string& value);

}  // namespace rehearse

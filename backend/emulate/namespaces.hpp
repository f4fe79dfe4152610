// Anonymous network namespaces, and the programs `ip` and `tc` run inside them.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// A file descriptor that ends with its owner.
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

// A network namespace that lives as long as a descriptor of it is open or a process is in it: it has no name
// and no file, so when its owner dies, by whatever signal, the kernel takes it down with all that is in it.
// RunError if this process may not make one. Without root, the first call brings this process into a user
// namespace of its own, where it may; that needs a process of one thread.
Descriptor make_namespace();

// The calling thread, and what it starts, is in the namespace until the end of the scope.
class InNamespace {
public:
  explicit InNamespace(const Descriptor& space);
  ~InNamespace();
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

private:
  Descriptor home_;
};

// Runs `ip -batch` or `tc -batch` over the lines in the calling thread's namespace. RunError with the line
// that failed and what the program said.
void run_batch(const std::string& program, const std::vector<std::string>& lines);
// The same, and whether it went well.
bool try_batch(const std::string& program, const std::vector<std::string>& lines);

// Writes a file below /proc/sys/net of the calling thread's namespace; false if this kernel does not have it.
bool set_sysctl(const std::string& name, const std::string& value);

}  // namespace rehearse

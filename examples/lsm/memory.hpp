// Where the nodes of a memtable lie: in ordinary memory, or in a container (persistent.hpp).
#ifndef EXAMPLES_LSM_MEMORY_HPP
#define EXAMPLES_LSM_MEMORY_HPP

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace lsm
{

class Memory
{
  public:
    virtual ~Memory() = default;

    // `bytes` of memory, aligned to 8. Throws Error if there is no room.
    virtual char *allocate(size_t bytes) = 0;

    // The caller is about to store to [at, at + bytes).
    virtual void announce(const void *at, size_t bytes) = 0;

    // Give one allocation back. `bytes` as it was allocated.
    virtual void release(void *at, size_t bytes) = 0;

    // An allocation is `to`'s from now on. Both have the same container.
    void hand_over(Memory &to, size_t bytes)
    {
        count(-bytes);
        to.count(bytes);
    }

    size_t bytes() const { return bytes_.load(std::memory_order_relaxed); } // allocated

  protected:
    void count(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  private:
    std::atomic<size_t> bytes_{0};
};

// Ordinary memory, which is given back as a whole.
class HeapMemory : public Memory
{
  public:
    char *allocate(size_t bytes) override;
    void announce(const void *, size_t) override {}
    void release(void *, size_t) override {}

  private:
    std::vector<std::unique_ptr<char[]>> chunks_;
    char *free_ = nullptr, *end_ = nullptr;
};

} // namespace lsm

#endif

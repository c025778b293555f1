// Tracks readers, and the age of the states that they read. By these epochs an Ftl knows when it can free
// the memory of a replaced extent.
//
// The epoch is the *sequence* of the newest change that readers may see. A reader pins a sequence as long
// as it reads memory of the container. The invariants:
//
//   1. While a sequence v is pinned, no object is freed that a change after v has unlinked.
//   2. A pin is of the sequence that was visible when the pin began, or of a later one. It is never of a
//      sequence whose objects the writer has already freed. Hence the loop in enter().
//
// A reader takes one of 64 slots by compare-and-swap, in about 20 ns. It waits only in two cases: if all
// slots are taken, or while a failed change is rolled back (block()). During the rollback nobody may read
// the memory of the container.
#ifndef EXAMPLES_NVMKV_READERS_HPP
#define EXAMPLES_NVMKV_READERS_HPP

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace nvmkv
{

class Readers
{
    static constexpr uint64_t idle = UINT64_MAX;

    // A slot has a cache line of its own. Only the thread that has the slot may change the counters.
    struct alignas(64) Slot {
        std::atomic<uint64_t> pinned{idle};
        std::atomic<uint64_t> reads{0};
        std::atomic<uint64_t> bytes{0};
    };

  public:
    /// Pins a sequence, from enter() to its destruction. Movable; belongs to one thread at a time.
    class Pin
    {
      public:
        Pin(Pin &&other) noexcept : slot_(other.slot_), sequence_(other.sequence_)
        {
            other.slot_ = nullptr;
        }
        Pin &operator=(Pin &&) = delete;
        ~Pin()
        {
            if (slot_)
                slot_->pinned.store(idle, std::memory_order_release);
        }

        uint64_t sequence() const { return sequence_; }

        /// Count one more read, of so many bytes.
        void count(uint64_t bytes)
        {
            add(slot_->reads, 1);
            add(slot_->bytes, bytes);
        }

      private:
        friend class Readers;
        Pin(Slot *slot, uint64_t sequence) : slot_(slot), sequence_(sequence) {}
        static void add(std::atomic<uint64_t> &counter, uint64_t n)
        {
            counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        }

        Slot *slot_;
        uint64_t sequence_;
    };

    /// Pin the sequence that `visible` has. Lock-free, but for the two cases above.
    Pin enter(const std::atomic<uint64_t> &visible);

    /// The oldest pinned sequence. UINT64_MAX if none is pinned.
    uint64_t oldest() const;

    /// Let no reader in, and wait until all readers have left. False if some are left after `patience`.
    bool block(std::chrono::milliseconds patience);
    void unblock();

    uint64_t reads() const { return sum(&Slot::reads); }
    uint64_t bytes() const { return sum(&Slot::bytes); }

  private:
    uint64_t sum(std::atomic<uint64_t> Slot::*counter) const;

    std::array<Slot, 64> slots_;
    std::atomic<bool> blocked_{false};
};

} // namespace nvmkv

#endif

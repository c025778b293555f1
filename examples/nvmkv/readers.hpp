// Who is reading, and how old the state is that they read: the epochs by which an Ftl knows when
// the memory of a replaced extent can be given back.
//
// The epoch is the *sequence* of the newest change that readers may see. A reader pins it for as
// long as it looks at memory of the container. What must hold:
//   1. while a sequence v is pinned, nothing is freed that a change after v has unlinked;
//   2. a pin is of the newest visible sequence at the moment it began, or of a later one, never of
//      one that the writer has already cleaned up behind: hence the loop in enter().
//
// A reader takes one of 64 slots by compare-and-swap, about 20 ns, and waits for nobody unless all
// are taken, or a failed change is being rolled back (block()), when the memory of the container
// is not to be looked at.
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

    // A line of its own. The counters belong to whoever has the slot.
    struct alignas(64) Slot {
        std::atomic<uint64_t> pinned{idle};
        std::atomic<uint64_t> reads{0};
        std::atomic<uint64_t> bytes{0};
    };

  public:
    /// From enter() to the end of its life. Movable; belongs to one thread at a time.
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

        /// One more read, of so many bytes.
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

    /// Pin the sequence that `visible` has. Lock-free but for what is said above.
    Pin enter(const std::atomic<uint64_t> &visible);

    /// The oldest sequence that is pinned; UINT64_MAX if none is.
    uint64_t oldest() const;

    /// Let nobody in, and wait until all have left; false if some have not after so long.
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

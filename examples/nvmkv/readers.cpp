#include "nvmkv/readers.hpp"

#include <algorithm>
#include <functional>
#include <thread>

namespace nvmkv
{
namespace
{

// The slot that a thread tries first. Each thread has another, so that threads do not collide.
size_t favourite()
{
    static std::atomic<size_t> threads{0};
    thread_local const size_t number = threads++;
    return number;
}

} // namespace

// All accesses to `visible`, `pinned` and `blocked_` here are sequentially consistent (for invariant 2). So
// if the writer looks for the oldest pin and does not see this one, this thread sees the `visible` that the
// writer stored before.
Readers::Pin Readers::enter(const std::atomic<uint64_t> &visible)
{
    uint64_t sequence = visible.load();
    for (size_t tried = 0, i = favourite();; tried++, i++) {
        if (tried >= slots_.size())
            std::this_thread::yield(); // all slots are taken
        Slot &slot = slots_[i % slots_.size()];
        uint64_t expected = idle;
        if (slot.pinned.compare_exchange_strong(expected, sequence)) {
            for (uint64_t now; (now = visible.load()) != sequence; sequence = now)
                slot.pinned.store(now);
            if (!blocked_.load())
                return Pin(&slot, sequence);
            slot.pinned.store(idle);
            blocked_.wait(true);
            sequence = visible.load();
        }
    }
}

uint64_t Readers::oldest() const
{
    uint64_t oldest = idle;
    for (const Slot &slot : slots_)
        oldest = std::min(oldest, slot.pinned.load());
    return oldest;
}

bool Readers::block(std::chrono::milliseconds patience)
{
    blocked_.store(true);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (oldest() != idle) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
}

void Readers::unblock()
{
    blocked_.store(false);
    blocked_.notify_all();
}

uint64_t Readers::sum(std::atomic<uint64_t> Slot::*counter) const
{
    uint64_t total = 0;
    for (const Slot &slot : slots_)
        total += (slot.*counter).load(std::memory_order_relaxed);
    return total;
}

} // namespace nvmkv

// Each thread has a semaphore, its turn. To hand over, a thread posts the next one's semaphore and waits for
// its own. So one thread runs at a time, and the state here needs no lock. A thread that ends passes its
// turn on.
#include "sim/threads.hpp"

#include "sim/random.hpp"

#include <exception>
#include <memory>
#include <semaphore.h>
#include <thread>
#include <vector>

namespace sim
{

namespace
{

// Not a C++ semaphore: these call sched_yield(2), which is wrapped.
struct Thread {
    Thread() { sem_init(&turn, 0, 0); }
    ~Thread() { sem_destroy(&turn); }
    sem_t turn;
    bool finished = false;
};

struct Threads {
    explicit Threads(unsigned count, uint64_t seed) : all(count), random(seed) {}

    // A random other thread that has not finished; `self` if there is none.
    unsigned other(unsigned self)
    {
        std::vector<unsigned> others;
        for (unsigned i = 0; i < all.size(); i++)
            if (i != self && !all[i].finished)
                others.push_back(i);
        return others.empty() ? self : others[random.below(others.size())];
    }

    std::vector<Thread> all;
    Random random;
    std::exception_ptr failure;
};

std::unique_ptr<Threads> threads;
thread_local int self = -1;

void await_turn(unsigned of)
{
    while (sem_wait(&threads->all[of].turn) != 0)
        ; // a signal came
}

void hand_over(unsigned to)
{
    if ((int)to == self)
        return;
    sem_post(&threads->all[to].turn);
    await_turn((unsigned)self);
}

} // namespace

void run_threads(unsigned count, uint64_t seed, const std::function<void(unsigned)> &body)
{
    threads = std::make_unique<Threads>(count, seed);
    std::vector<std::thread> running;
    for (unsigned i = 0; i < count; i++)
        running.emplace_back([&body, i] {
            self = (int)i;
            await_turn(i);
            try {
                body(i);
            } catch (...) {
                if (!threads->failure)
                    threads->failure = std::current_exception();
            }
            threads->all[i].finished = true;
            unsigned next = threads->other(i);
            if (next != i)
                sem_post(&threads->all[next].turn);
        });
    sem_post(&threads->all[0].turn);
    for (std::thread &t : running)
        t.join();
    std::exception_ptr failure = threads->failure;
    threads.reset();
    if (failure)
        std::rethrow_exception(failure);
}

bool in_thread()
{
    return self >= 0;
}

void yield()
{
    if (in_thread() && threads->random.below(2))
        hand_over(threads->other((unsigned)self));
}

void yield_blocked()
{
    hand_over(threads->other((unsigned)self));
}

} // namespace sim

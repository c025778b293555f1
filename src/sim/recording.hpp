// The history of the files while a program ran: a list of steps. From it the memory at every event can be
// made again without running the program.
#ifndef PM_SIM_RECORDING_HPP
#define PM_SIM_RECORDING_HPP

#include "sim/memory.hpp"

#include <memory>

namespace sim
{

struct Step {
    enum Kind : uint8_t { CHANGE, QUEUE, FENCE, BEGIN_SYNC, SYNC, RESIZE, SYNC_SIZE } kind;
    uint32_t event;    // event at which the step happened
    Unit unit;         // of CHANGE and QUEUE; otherwise the file
    uint32_t count;    // of QUEUE
    const char *bytes; // of CHANGE
    uint64_t value;    // of CHANGE: the hash; of RESIZE: the size

    // True if a crash at the step's event comes before the step.
    bool is_effect() const { return kind == FENCE || kind == SYNC || kind == SYNC_SIZE; }
};

// The commits that may be found in a container after a crash: `lower` commits had returned, `upper` had
// begun.
struct Bounds {
    uint64_t lower, upper;
    bool operator==(const Bounds &) const = default;
};

class Recording
{
  public:
    void clear();
    // Begin the next event; `whole`: all files were looked at.
    uint32_t begin_event(bool whole);
    void add(const Step &step) { steps_.push_back(step); }
    const char *keep(const char *bytes, uint32_t size);
    // Set the bounds from the next event on.
    void set_bounds(uint32_t container, Bounds bounds)
    {
        bounds_.push_back({now(), container, bounds});
    }

    // The event that is happening; after the end, the last event.
    uint32_t now() const { return (uint32_t)whole_.size(); }
    bool is_whole(uint32_t event) const { return whole_[event - 1]; }

  private:
    friend class Cursor;
    struct Mark {
        uint32_t event;
        uint32_t container;
        Bounds bounds;
    };
    static constexpr size_t CHUNK = 1 << 18;

    std::vector<Step> steps_;
    std::vector<bool> whole_; // one for each event
    std::vector<Mark> bounds_;
    std::vector<std::unique_ptr<char[]>> chunks_;
    size_t chunk_ = 0, used_ = 0;
};

// Walks through a recording, forward. `memory` must begin in the state in which the recording began.
class Cursor
{
  public:
    Cursor(const Recording &recording, Memory &memory, std::vector<Bounds> bounds)
        : r_(recording), memory_(memory), bounds_(std::move(bounds))
    {
    }
    void advance_to(uint32_t event);
    const Memory &memory() const { return memory_; }
    const std::vector<Bounds> &bounds() const { return bounds_; }

  private:
    void apply(const Step &step);

    const Recording &r_;
    Memory &memory_;
    std::vector<Bounds> bounds_;
    size_t step_ = 0, mark_ = 0;
};

} // namespace sim

#endif

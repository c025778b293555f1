// What happened to the files while a program ran: a list of steps, from which the memory at every
// event can be made again without running the program.
#ifndef PM_SIM_RECORDING_HPP
#define PM_SIM_RECORDING_HPP

#include "sim/memory.hpp"

#include <memory>

namespace sim
{

struct Step {
    enum Kind : uint8_t { CHANGE, QUEUE, FENCE, BEGIN_SYNC, SYNC, RESIZE, SYNC_SIZE } kind;
    uint32_t event;    // at which it happened
    Unit unit;         // CHANGE, QUEUE; of the others the file
    uint32_t count;    // QUEUE
    const char *bytes; // CHANGE
    uint64_t value;    // CHANGE: the hash; RESIZE: the size

    // Whether a crash at the event still comes before it.
    bool is_effect() const { return kind == FENCE || kind == SYNC || kind == SYNC_SIZE; }
};

// What may be found in a container after a crash: so many commits had returned, so many had begun.
struct Bounds {
    uint64_t lower, upper;
    bool operator==(const Bounds &) const = default;
};

class Recording
{
  public:
    void clear();
    // The next event; `whole`: all files were looked at.
    uint32_t begin_event(bool whole);
    void add(const Step &step) { steps_.push_back(step); }
    const char *keep(const char *bytes, uint32_t size);
    // From the next event on.
    void set_bounds(uint32_t container, Bounds bounds)
    {
        bounds_.push_back({now(), container, bounds});
    }

    // Of the event that is happening, and when all is over of the last one.
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
    std::vector<bool> whole_; // one an event
    std::vector<Mark> bounds_;
    std::vector<std::unique_ptr<char[]>> chunks_;
    size_t chunk_ = 0, used_ = 0;
};

// Goes through a recording, forward. `memory` begins as it was when the recording did.
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

// Contents of units lie in chunks of 256 KiB that never move, because versions point into them (M2). clear()
// keeps the chunks for the next recording.
//
// A cursor applies the steps up to an event. It leaves out the effect of the event itself: the crash comes
// before.
#include "sim/recording.hpp"

namespace sim
{

void Recording::clear()
{
    steps_.clear();
    whole_.clear();
    bounds_.clear();
    chunk_ = used_ = 0;
}

uint32_t Recording::begin_event(bool whole)
{
    whole_.push_back(whole);
    return now();
}

const char *Recording::keep(const char *bytes, uint32_t size)
{
    if (used_ + size > CHUNK) {
        chunk_++;
        used_ = 0;
    }
    if (chunk_ == chunks_.size())
        chunks_.push_back(std::make_unique<char[]>(CHUNK));
    char *to = chunks_[chunk_].get() + used_;
    memcpy(to, bytes, size);
    used_ += size;
    return to;
}

void Cursor::apply(const Step &s)
{
    switch (s.kind) {
    case Step::CHANGE:
        memory_.change(s.unit, s.bytes, s.value);
        break;
    case Step::QUEUE:
        memory_.queue(s.unit, s.count);
        break;
    case Step::FENCE:
        memory_.fence();
        break;
    case Step::BEGIN_SYNC:
        memory_.begin_sync(s.unit);
        break;
    case Step::SYNC:
        memory_.sync(s.unit);
        break;
    case Step::RESIZE:
        memory_.resize(s.unit, s.value);
        break;
    case Step::SYNC_SIZE:
        memory_.sync_size(s.unit);
        break;
    }
}

void Cursor::advance_to(uint32_t event)
{
    for (; step_ < r_.steps_.size(); step_++) {
        const Step &s = r_.steps_[step_];
        if (s.event > event || (s.event == event && s.is_effect()))
            break;
        apply(s);
    }
    for (; mark_ < r_.bounds_.size() && r_.bounds_[mark_].event < event; mark_++)
        bounds_[r_.bounds_[mark_].container] = r_.bounds_[mark_].bounds;
}

} // namespace sim

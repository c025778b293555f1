// A program whose container is moved to other addresses at almost every opening: somebody else is
// where it was, and at every second recovery from a crash also where it was going. Or it stays what it
// is on the medium, and only lies elsewhere.
#ifndef TESTS_SIMULATION_MOVING_HPP
#define TESTS_SIMULATION_MOVING_HPP

#include "simulation/subject.hpp"

namespace simulation
{

class Moving : public Program
{
  public:
    explicit Moving(const Setup &setup);
    void run(sim::Session &session) override;

  private:
    // `taken`: at any rate; else as the file's own contents decide, so that runs repeat.
    Container open(const std::string &path, bool taken);
    uint64_t check(pm_container *c);
    // What transaction `n` does.
    void push(pm_container *c, uint64_t n);
};

} // namespace simulation

#endif

// A program that frees much of what it has made, and compacts its container again and again.
#ifndef TESTS_SIMULATION_COMPACTING_HPP
#define TESTS_SIMULATION_COMPACTING_HPP

#include "simulation/subject.hpp"

namespace simulation
{

class Compacting : public Program
{
  public:
    explicit Compacting(const Setup &setup);
    void run(sim::Session &session) override;

  private:
    uint64_t check(pm_container *c);
    void change(pm_container *c, uint64_t commits) const;
};

} // namespace simulation

#endif

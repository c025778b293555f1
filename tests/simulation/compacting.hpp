// A program that frees much of what it has made, and compacts its container again and again.
#ifndef TESTS_SIMULATION_COMPACTING_HPP
#define TESTS_SIMULATION_COMPACTING_HPP

#include "simulation/subject.hpp"

namespace simulation
{

class Compacting : public Repeating
{
  public:
    explicit Compacting(const Setup &setup);

  private:
    uint64_t check(pm_container *c) override;
    void change(pm_container *c, uint64_t commits) override;
    void commit(pm_container *c, uint64_t commits) override;
};

} // namespace simulation

#endif

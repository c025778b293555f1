// A program whose data its commits find on the volatile heap and move.
#ifndef TESTS_SIMULATION_DISCOVERING_HPP
#define TESTS_SIMULATION_DISCOVERING_HPP

#include "common/compiled.hpp"
#include "simulation/subject.hpp"

namespace simulation
{

class Discovering : public Program
{
  public:
    explicit Discovering(const Setup &setup);
    void run(sim::Session &session) override;

  private:
    uint64_t check(pm_container *c);
    void change(pm_container *c, uint64_t commits) const;

    const compiled::Module module_;
};

} // namespace simulation

#endif

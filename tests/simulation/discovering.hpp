// A program whose data its commits find on the volatile heap and move.
#ifndef TESTS_SIMULATION_DISCOVERING_HPP
#define TESTS_SIMULATION_DISCOVERING_HPP

#include "common/compiled.hpp"
#include "simulation/subject.hpp"

namespace simulation
{

class Discovering : public Repeating
{
  public:
    explicit Discovering(const Setup &setup);

  private:
    uint64_t check(pm_container *c) override;
    void change(pm_container *c, uint64_t commits) override;

    const compiled::Module module_;
};

} // namespace simulation

#endif

// Which engine and tracker a whole run of the tests is for.
#ifndef TESTS_MODE_HPP
#define TESTS_MODE_HPP

#include <libpm.h>

#include <string>

namespace test
{

// "undo", "redo", "log" (all with faults), or "stores" (redo) and "log.stores", in a program compiled with pmcc.
// From the environment, LIBPM_TEST_MODE; undo if it has none.
std::string mode();

std::string engine(); // of the mode
pm_engine engine_option(const std::string &mode = test::mode());
bool stores();        // the mode's tracker is `stores`
void set_mode(pm_options &options, const std::string &mode = test::mode());

} // namespace test

#endif

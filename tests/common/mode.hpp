// Which engine and tracker a whole run of the tests is for.
#ifndef TESTS_MODE_HPP
#define TESTS_MODE_HPP

#include <libpm.h>

#include <string>

namespace test
{

// "undo", "redo" (both with faults), or "stores" (redo, in a program compiled with pmcc). From the
// environment, LIBPM_TEST_MODE; undo if it has none.
std::string mode();
// Whether the log engine stands in for redo, in modes redo and stores. From the environment, LIBPM_TEST_ENGINE.
bool is_log();

void set_mode(pm_options &options);

} // namespace test

#endif

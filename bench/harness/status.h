/* How a measuring program ends. */
#pragma once

#include <exception>
#include <iostream>

namespace bench
{

/** Measure, and return what main() returns. A failure is told, and its status is 1. */
template <class Measure> int status_of(Measure measure)
{
    try {
        measure();
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

} // namespace bench

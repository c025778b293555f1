// The format's definitions for tests that look at the bytes on the medium.
#ifndef TESTS_FORMAT_HPP
#define TESTS_FORMAT_HPP

extern "C" {
#include "base/checksum.h"
#include "container/format.h"
}

#endif

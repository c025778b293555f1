/* Code that pmcc has not compiled: see audit.cpp. */
#ifndef TESTS_SYSTEM_FOREIGN_H
#define TESTS_SYSTEM_FOREIGN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C"
#endif
    void
    foreign_store(volatile uint64_t *to, uint64_t value);

#endif

/*
 * Included by `pmcc --discover` and `pm++ --discover` before all else. Before C++20, libstdc++ has its
 * strings and streams compiled in the library, whose memory and stores discovery does not see. Here
 * its templates are to be compiled with the program.
 */
#if defined(__cplusplus) && __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
#endif

/*
 * `pmcc --discover` and `pm++ --discover` include this file before all else. Before C++20, libstdc++
 * compiles its strings and streams into the library. Discovery does not see their memory and stores
 * there. So this file has the program compile libstdc++'s templates itself.
 */
#if defined(__cplusplus) && __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
#endif

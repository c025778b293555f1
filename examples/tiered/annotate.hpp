// What a user writes into an ordinary struct. Only pm-tier reads it: for a compiler it is nothing, or an
// attribute without effect.
//
//     struct PM_DURABLE person {
//         PM_TIER("pm") int32_t age;
//         PM_TIER("pm", "disk") std::string place;   // in pm while there is room, else on disk
//         std::string name;                          // left to the profile
//         tiered::handle<person> boss;               // another object
//     };
//
// PM_DURABLE is for structs and classes in a namespace, without base classes, virtual functions, initialisers
// and unnamed members. pm-tier(1) lists the types of fields.
#ifndef EXAMPLES_TIERED_ANNOTATE_HPP
#define EXAMPLES_TIERED_ANNOTATE_HPP

#ifdef __clang__
#define PM_DURABLE   [[clang::annotate("pm::durable")]]
#define PM_TIER(...) [[clang::annotate("pm::tier " #__VA_ARGS__)]]
#else
#define PM_DURABLE
#define PM_TIER(...)
#endif

namespace tiered
{

/// In an annotated struct: a reference to another object of a durable type.
template <class T> struct handle {
    void *object;
};

} // namespace tiered

#endif

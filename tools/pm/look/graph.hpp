// A container's objects and the pointers between them, in the language of Graphviz.
#ifndef PM_LOOK_GRAPH_HPP
#define PM_LOOK_GRAPH_HPP

#include <libpm.h>

#include <cstdint>
#include <ostream>

namespace look
{

// The `most` objects that are nearest to the root, then others in order of address; all pointers
// between these; and a table of all objects by size. Linear in the container.
void write_graph(pm_container *c, uint64_t most, std::ostream &out);

} // namespace look

#endif

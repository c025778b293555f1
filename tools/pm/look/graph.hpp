// Writes a container's objects, and the pointers between them, in the language of Graphviz.
#ifndef PM_LOOK_GRAPH_HPP
#define PM_LOOK_GRAPH_HPP

#include <libpm.h>

#include <cstdint>
#include <ostream>

namespace look
{

// Write the `most` objects that are nearest to the root; if the root reaches fewer, then others in order
// of address. Write all pointers between these objects, and a table of all objects by size. The time is
// linear in the size of the container.
void write_graph(pm_container *c, uint64_t most, std::ostream &out);

} // namespace look

#endif

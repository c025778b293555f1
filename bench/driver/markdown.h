/* Tables for people. */
#pragma once

#include "driver/tables.h"

#include <ostream>

namespace bench
{

void write_markdown(std::ostream &out, const Table &table, const std::vector<Row> &rows);

} // namespace bench

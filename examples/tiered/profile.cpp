// What getters and setters have counted, as JSON for `pm-tier place`.
#include "tiered/store.hpp"

#include <cerrno>
#include <fstream>

namespace tiered
{

void store::write_profile(const std::filesystem::path &path)
{
    std::ofstream out(path);
    const char *between_types = "";
    out << "[";
    for (const schema *type : schema::all()) {
        if (!type->counts())
            continue;
        out << between_types << "\n{\"type\": \"" << type->name() << "\", \"fields\": [";
        between_types = ",";
        const char *between_fields = "";
        const size_t own = type->fields().size();
        for (size_t i = 0; i < own; i++) {
            const field &one = type->fields()[i];
            if (one.name.find('.') !=
                std::string_view::npos) // of an embedded object, whose type counts
                continue;
            const access_counts &counts = type->counts()[i];
            out << between_fields << "\n  {\"name\": \"" << one.name
                << "\", \"reads\": " << counts.reads << ", \"writes\": " << counts.writes
                << ", \"read_bytes\": " << counts.read_bytes
                << ", \"written_bytes\": " << counts.written_bytes << "}";
            between_fields = ",";
        }
        out << "]}";
    }
    out << "\n]\n";
    if (!out.flush())
        throw error(errno,
                    path.string() + ": cannot write the profile; is there room, and may you?");
}

} // namespace tiered

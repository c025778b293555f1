// What pm-tier reads beside headers, and checks: its JSON files, and the NAME=NUMBER of options.
#ifndef EXAMPLES_TIERED_PM_TIER_INPUTS_HPP
#define EXAMPLES_TIERED_PM_TIER_INPUTS_HPP

#include "placement.hpp"

namespace pm_tier
{

/// How often a field was read and written, and how many bytes.
struct field_counts {
    double reads, writes, read_bytes, written_bytes;
};

/// A file of `pm-tier measure`. It has at least one tier.
std::vector<tier_cost> read_tiers(const std::string &path);

/// A file of store::write_profile(), by TYPE.FIELD.
std::map<std::string, field_counts> read_profile(const std::string &path);

/// A file of `pm-tier place`. It has only fields of these types without a tag, and tiers of the list.
placement read_placement(const std::string &path, const std::vector<durable> &types,
                         const std::vector<std::string> &tiers);

/// Words NAME=NUMBER of an option, with a NAME of the list, and a NUMBER from 0 to `most`.
std::map<std::string, double> read_numbers(const std::vector<std::string> &words,
                                           const std::string &option, double most,
                                           const std::vector<std::string> &names);

} // namespace pm_tier

#endif

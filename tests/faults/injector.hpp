// One call of the system fails, once. The linker's --wrap sends libpm's calls through here; only
// those made inside a Window are counted, so that the tests' own are not.
#ifndef TESTS_FAULTS_INJECTOR_HPP
#define TESTS_FAULTS_INJECTOR_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace faults
{

// In the place of an errno: pwrite(2) that writes half.
constexpr int SHORT = 0;

struct Call {
    const char *name;
    const char *words; // separated by |: one of them is in the message of a failure
    std::vector<int> errors;
};

extern const std::vector<Call> calls; // calls.def

struct Fault {
    std::string call; // empty: none
    uint64_t count;   // of the call that fails, from 1 on
    int error;
};

// What the file system is like.
struct Place {
    bool ordinary = false; // not memory: an ordinary file, as far as libpm can see
    bool old = false;      // has neither O_TMPFILE nor fallocate(2)
};

void arm(const Fault &fault, const Place &place);
bool fired();
std::map<std::string, uint64_t> counts();

// A time in which calls count. What fails is told on standard error, with `what`.
class Window
{
  public:
    explicit Window(const char *what);
    ~Window();
    Window(const Window &) = delete;
};

// "EIO", "SHORT", and back.
std::string error_name(int error);
int error_named(const std::string &name);

} // namespace faults

#endif

// The system refuses one call after the other where pages are mapped from the log's file, and where they get
// memory again. A call of libpm fails and can be repeated, or it does without; the contents are right.
#include "common/fixture.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <sys/mman.h>
#include <sys/types.h>

namespace
{

std::string refused_call; // the call of this name
int countdown;            // that comes so many later; 0: none
bool refused;

bool refuse(const char *name)
{
    if (countdown == 0 || refused_call != name || --countdown > 0)
        return false;
    refused = true;
    errno = refused_call == "mprotect"
                ? EACCES
                : ENOMEM; // for ENOMEM pages are closed, and it is tried again
    return true;
}

} // namespace

extern "C" {

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from);
int __real_munlock(const void *at, size_t size);
int __real_mprotect(void *at, size_t size, int prot);
int __real_madvise(void *at, size_t size, int advice);
int __real_fallocate(int fd, int mode, off_t from, off_t size);
ssize_t __real_pwrite(int fd, const void *from, size_t size, off_t to);

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from)
{
    return refuse("mmap") ? MAP_FAILED : __real_mmap(at, size, prot, flags, fd, from);
}

int __wrap_munlock(const void *at, size_t size)
{
    return refuse("munlock") ? -1 : __real_munlock(at, size);
}

int __wrap_mprotect(void *at, size_t size, int prot)
{
    return refuse("mprotect") ? -1 : __real_mprotect(at, size, prot);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    return refuse("madvise") ? -1 : __real_madvise(at, size, advice);
}

int __wrap_fallocate(int fd, int mode, off_t from, off_t size)
{
    return refuse("fallocate") ? -1 : __real_fallocate(fd, mode, from, size);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t to)
{
    return refuse("pwrite") ? -1 : __real_pwrite(fd, from, size, to);
}
}

namespace
{

constexpr size_t PAGE = 4096, MiB = 1 << 20, SIZE = 40 * PAGE;
constexpr size_t UNMAPPED = 8 * PAGE; // so few are not mapped, but written to home at an opening

struct Root {
    char *value[2], *unmapped;
};

pm_options options(unsigned flags)
{
    pm_options how = test::options(flags);
    how.segment_size = MiB;
    how.max_size = 16 * MiB;
    return how;
}

class Session
{
  public:
    explicit Session(std::string path) : path_(std::move(path)) {}

    void run()
    {
        must([&] {
            const pm_options how = options(0);
            c_.reset(pm_open(path_.c_str(), &how));
            return c_ != nullptr;
        });
        Root *root = static_cast<Root *>(pm_getroot(c_.get()));
        std::string first(SIZE, 1), second(SIZE, 2);
        is(root->unmapped, std::string(UNMAPPED, 4));
        is(root->value[0], first);
        store(root->value[0] + 5 * PAGE, first[5 * PAGE] = 3);
        is(root->value[0], first);
        must([&] { return pm_rollback(c_.get()) == 0; });
        is(root->value[0], std::string(SIZE, 1));
        store(root->value[0] + 5 * PAGE, 3);
        must([&] { return pm_commit(c_.get()) == 0; });
        is(root->value[0], first);
        put(root, second);
        is(root->value[1], second);
        must([&] { return pm_commit(c_.get()) == 0; });
        is(root->value[1], second);
        must([&] { return pm_free(root->value[1]) == 0; });
        must([&] { return pm_commit(c_.get()) == 0; });
        put(root, second); // in the same memory
        is(root->value[1], second);
        must([&] { return pm_rollback(c_.get()) == 0; });
        put(root, second);
        must([&] { return pm_put(c_.get(), first.data(), 100) != nullptr; });
        store(root->value[1] + 7 * PAGE, second[7 * PAGE] = 4);
        must([&] { return pm_commit(c_.get()) == 0; });
        is(root->value[0], first);
        is(root->value[1], second);
        c_.reset();
        countdown = 0;
        c_ = test::open(path_, options(0));
        root = static_cast<Root *>(pm_getroot(c_.get()));
        is(root->value[0], first);
        is(root->value[1], second);
        REQUIRE(objects() == 5); // a call that failed has left none
        REQUIRE_OK(pm_check(c_.get()));
    }

  private:
    // Once a call is refused, the next attempt is not.
    template <typename Call> void must(Call call)
    {
        const bool before = refused;
        if (call())
            return;
        const std::string message = pm_errormsg();
        INFO(message);
        REQUIRE((refused && !before));
        REQUIRE(message.find(path_) != std::string::npos);
        REQUIRE(call());
    }

    int objects()
    {
        int n = 0;
        for (const void *p = nullptr; (p = pm_next_object(c_.get(), p, nullptr));)
            n++;
        return n;
    }

    void store(char *at, char value)
    {
        must([&] { return pm_dirty(at, 1) == 0; });
        *at = value;
    }

    void put(Root *root, const std::string &value)
    {
        must([&] { return pm_dirty(root, sizeof *root) == 0; });
        must([&] {
            return (root->value[1] = static_cast<char *>(pm_put(c_.get(), value.data(), SIZE)));
        });
    }

    void is(const char *value, const std::string &expected)
    {
        const bool same = memcmp(value, expected.data(), expected.size()) == 0;
        REQUIRE(same);
    }

    const std::string path_;
    test::Container c_;
};

void make(const std::string &path)
{
    test::Container c = test::open(path, options(PM_CREATE));
    auto *root = static_cast<Root *>(pm_calloc(c.get(), 1, sizeof(Root)));
    REQUIRE(root);
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    REQUIRE_OK(pm_dirty(root, sizeof *root));
    root->value[0] = static_cast<char *>(pm_put(c.get(), std::string(SIZE, 1).data(), SIZE));
    REQUIRE(root->value[0]);
    root->unmapped =
        static_cast<char *>(pm_put(c.get(), std::string(UNMAPPED, 4).data(), UNMAPPED));
    REQUIRE(root->unmapped);
    REQUIRE_OK(pm_commit(c.get()));
}

} // namespace

TEST_CASE("each call of the system is refused once")
{
    const char *name = GENERATE("mmap", "munlock", "mprotect", "madvise", "fallocate", "pwrite");
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    const std::string file = test::read_file(path);
    int n = 0;
    do {
        CAPTURE(name, n);
        test::write_file(path, file);
        refused_call = name;
        countdown = ++n;
        refused = false;
        Session(path).run();
    } while (refused);
    REQUIRE(n > 1);
}

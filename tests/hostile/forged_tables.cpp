// Tables, bitmaps and pointer maps that no libpm writes, with every seal right. All that walks such a
// container sees objects where slabs have slots and nowhere else, and ends. Compaction refuses it.
#include "common/format.hpp"
#include "common/process.hpp"
#include "hostile/anatomy.hpp"
#include "hostile/calls.hpp"
#include "hostile/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

using namespace hostile;

namespace
{

constexpr uint64_t SEGMENT = 64 << 10, FULL = (UINT64_C(1) << SEAL_BITS) - 1;

struct Node {
    Node *next;
    uint64_t number;
};

} // namespace

// Slabs of three sizes, with gaps, and two large objects; all pointers mapped. The root is a list.
CHILD_PROCESS(leaves_slabs)
{
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = 64 * SEGMENT;
    test::Container c = test::open(arguments[0], how);
    std::vector<void *> gaps;
    for (uint64_t i = 0; i < 2400; i++) {
        size_t size = (size_t[]){40, 300, 1000}[i % 3];
        auto *node = static_cast<Node *>(pm_calloc(c.get(), 1, i == 500 ? 2 * SEGMENT : size));
        CHILD_REQUIRE(node && pm_mark_pointer(&node->next) == 0);
        node->number = i;
        if (i % 7 != 0 && i != 500) {
            gaps.push_back(node);
            continue;
        }
        node->next = static_cast<Node *>(pm_getroot(c.get()));
        CHILD_REQUIRE(pm_setroot(c.get(), node, 0) == 0);
    }
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    for (void *p : gaps)
        CHILD_REQUIRE(pm_free(p) == 0);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

namespace
{

using Forge = void (*)(Bytes &file, const Piece &piece);

void put_word(Bytes &file, uint64_t offset, uint64_t payload)
{
    put(file, offset, seal(payload & FULL));
}

void each_word(Bytes &file, const Piece &piece, uint64_t payload)
{
    for (uint64_t i = 0; i < piece.bytes; i += 8)
        put_word(file, piece.offset + i, payload);
}

struct Forgery {
    const char *name;
    Kind kind;
    Forge forge;
};

const Forgery forgeries[] = {
    {"bitmaps claim slots beyond their slabs", Kind::bitmap,
     [](Bytes &file, const Piece &bitmap) {
         uint64_t last = bitmap.offset + bitmap.bytes - 8;
         put_word(file, last, at<uint64_t>(file, last) | ~UINT64_C(0) << 40);
     }},
    {"bitmaps claim everything", Kind::bitmap,
     [](Bytes &file, const Piece &bitmap) { each_word(file, bitmap, FULL); }},
    {"the end of bitmaps claims everything", Kind::bitmap,
     [](Bytes &file, const Piece &bitmap) {
         put_word(file, bitmap.offset + bitmap.bytes - 8, FULL);
     }},
    {"bitmaps are empty", Kind::bitmap,
     [](Bytes &file, const Piece &bitmap) { each_word(file, bitmap, 0); }},
    {"seals of bitmaps are wrong", Kind::bitmap,
     [](Bytes &file, const Piece &bitmap) {
         put(file, bitmap.offset, ~at<uint64_t>(file, bitmap.offset));
     }},
    {"everything is a pointer", Kind::map,
     [](Bytes &file, const Piece &map) { each_word(file, map, FULL); }},
    {"nothing is a pointer", Kind::map,
     [](Bytes &file, const Piece &map) { each_word(file, map, 0); }},
    {"objects are as small as they can be", Kind::table,
     [](Bytes &file, const Piece &table) {
         for (uint64_t i = table.offset; i < table.offset + table.bytes; i += 8)
             if (segment_kind(at<uint64_t>(file, i)) == SEGMENT_SLAB)
                 put(file, i, segment_word(SEGMENT_SLAB, 1));
     }},
    {"objects are as large as they can be", Kind::table,
     [](Bytes &file, const Piece &table) {
         for (uint64_t i = table.offset; i < table.offset + table.bytes; i += 8)
             if (segment_kind(at<uint64_t>(file, i)) == SEGMENT_SLAB)
                 put(file, i, segment_word(SEGMENT_SLAB, SEGMENT / 2 / FORMAT_GRANULARITY_MIN));
     }},
    {"free segments are slabs", Kind::table,
     [](Bytes &file, const Piece &table) {
         for (uint64_t i = 0; i < file.size() / SEGMENT; i++)
             if (at<uint64_t>(file, table.offset + 8 * i) == 0)
                 put(file, table.offset + 8 * i, segment_word(SEGMENT_SLAB, 3));
     }},
    {"all maps are of the first segments", Kind::table,
     [](Bytes &file, const Piece &table) {
         for (uint64_t i = 0; i < file.size() / SEGMENT; i++)
             if (at<uint64_t>(file, table.offset + 8 * i) == 0 ||
                 segment_kind(at<uint64_t>(file, table.offset + 8 * i)) == SEGMENT_MAP)
                 put(file, table.offset + 8 * i, segment_word(SEGMENT_MAP, 0));
     }},
};

class Forged
{
  public:
    Forged()
    {
        test::Directory directory;
        std::string path = directory / "c.pm";
        REQUIRE_CLEAN(test::run("leaves_slabs", {path}));
        whole_ = test::read_file(path);
        pieces_ = pieces_of(whole_);
        fill(whole_);
    }

    // One or more forgeries.
    void apply(std::initializer_list<const Forgery *> forgeries)
    {
        Bytes bytes = whole_;
        for (const Forgery *forgery : forgeries)
            for (const Piece &piece : pieces_)
                if (piece.kind == forgery->kind)
                    forgery->forge(bytes, piece);
        const bool changed = bytes != whole_;
        REQUIRE(changed);
        repair_sums(bytes);
        fill(bytes);
    }

    void fill(const Bytes &bytes)
    {
        bytes_ = bytes;
        file_.fill(bytes);
    }

    const Bytes &bytes() const { return bytes_; }
    Piece first(Kind kind) const
    {
        return *std::find_if(pieces_.begin(), pieces_.end(),
                             [&](const Piece &piece) { return piece.kind == kind; });
    }

    test::Container open(unsigned flags = PM_MOVABLE) const
    {
        pm_options how = test::options(flags);
        test::Container c(pm_open(file_.path(), &how));
        if (!c)
            REQUIRE(errno == EBADMSG);
        return c;
    }

    const char *path() const { return file_.path(); }

  private:
    Bytes whole_, bytes_;
    std::vector<Piece> pieces_;
    MemoryFile file_;
};

// Of each object of the list the number, and where it is.
std::map<uint64_t, Node *> list_of(pm_container *c)
{
    std::map<uint64_t, Node *> nodes;
    for (auto *n = static_cast<Node *>(pm_getroot(c)); n && pm_usable_size(n); n = n->next)
        if (!nodes.insert({n->number, n}).second)
            break;
    return nodes;
}

} // namespace

TEST_CASE("no container is compacted that pm_check() refuses")
{
    Forged forged;
    unsigned refused = 0;
    for (const Forgery &forgery : forgeries) {
        INFO(forgery.name);
        forged.apply({&forgery});
        test::Container c = forged.open();
        if (!c || pm_check(c.get()) == 0)
            continue;
        REQUIRE(errno == EBADMSG);
        const std::string why = pm_errormsg();
        const size_t nodes = list_of(c.get()).size();
        const uint64_t epoch = test::stats(c.get()).epoch;
        REQUIRE(pm_compact(c.get(), nullptr, nullptr, nullptr) == -1);
        REQUIRE(test::failed_with(EBADMSG, {why.c_str()}));
        REQUIRE(test::stats(c.get()).epoch == epoch);
        REQUIRE(list_of(c.get()).size() == nodes);
        refused++;
    }
    REQUIRE(refused >= 4);
}

TEST_CASE("an object reaches beyond the end of the file, by a segment of which the table says nothing")
{
    Forged forged;
    Bytes bytes = forged.bytes();
    const uint64_t last = bytes.size() / SEGMENT;
    bytes.append(SEGMENT, '\0');
    put(bytes, forged.first(Kind::table).offset + 8 * last, segment_word(SEGMENT_LARGE, 2));
    repair_sums(bytes);
    forged.fill(bytes);
    REQUIRE(!forged.open());
    REQUIRE(test::failed_with(EBADMSG, {"truncated", "in use beyond the end"}));
}

TEST_CASE("pointers are looked for in objects only")
{
    Forged forged;
    forged.apply({&forgeries[5]});
    test::Container c = forged.open();
    REQUIRE(c);
    // What looks like a pointer to an object that moves, where no object is.
    struct pm_stats stats = test::stats(c.get());
    for (void **field = pm_next_pointer(stats.base, (const char *)stats.base + stats.file_bytes); field;
         field = pm_next_pointer(field + 1, (const char *)stats.base + stats.file_bytes)) {
        size_t size;
        void *object = pm_next_object(c.get(), (char *)field - 70000, &size);
        while (object && (char *)object + size <= (char *)field)
            object = pm_next_object(c.get(), object, &size);
        REQUIRE(object);
        REQUIRE((void *)field >= object);
        field = reinterpret_cast<void **>((char *)object + size) - 1;
    }
}

// A word of a bitmap whose seal is right, and which looks like a pointer.
TEST_CASE("relocation moves words of objects only")
{
    Forged forged;
    forged.apply({&forgeries[5]});
    const uint64_t place = forged.first(Kind::bitmap).offset;
    {
        test::Container c = forged.open(PM_READONLY);
        REQUIRE(c);
        auto pointer = (uint64_t)test::stats(c.get()).base + 1000;
        while (!seal_is_valid(pointer))
            pointer += 8;
        Bytes bytes = forged.bytes();
        put(bytes, place, pointer);
        repair_sums(bytes);
        forged.fill(bytes);
    }
    MemoryFile original;
    original.fill(forged.bytes());
    pm_options how = test::options(PM_READONLY);
    test::Container in_the_way = test::open(original.path(), how);
    test::Container c = forged.open(PM_MOVABLE | PM_RELOCATE);
    REQUIRE(c);
    REQUIRE(test::stats(c.get()).base != test::stats(in_the_way.get()).base);
    REQUIRE(test::stats(c.get()).pointers_moved > 300);
    c.reset();
    REQUIRE(test::read_word(forged.path(), place) == at<uint64_t>(forged.bytes(), place));
}

TEST_CASE("every call on forged tables")
{
    const unsigned flags = GENERATE(0u, (unsigned)PM_MOVABLE, (unsigned)PM_READONLY);
    Forged forged;
    for (const Forgery &first : forgeries)
        for (const Forgery &second : forgeries) {
            INFO(first.name << ", then " << second.name);
            if (&first == &second)
                forged.apply({&first});
            else if (first.kind != second.kind)
                forged.apply({&first, &second});
            else
                continue;
            if (test::Container c = forged.open(flags))
                call_all(c.release(), {forged.path(), flags != PM_READONLY, false});
            forged.open();
        }
}

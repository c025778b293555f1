/*
 * Writes a C file of functions made up at random, and what memory is afterwards (pieces.h):
 *
 *     pieces_program SEED FIRST COUNT [DROPPED...]
 *
 * Function N of a seed is always the same. DROPPED are numbers of its statements: for who shrinks a function.
 *
 * Each expression and each statement is a text in C and a function that does the same to a model of memory.
 * For each byte, the model knows the pointer and the place in it, or that the byte is data. Most expressions
 * take a word apart and put its bytes together again, so that pointers stay whole.
 */
#include "pieces.h"
#include "random.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace
{

using std::string;
using std::to_string;

/* ---- the model of memory ---------------------------------------------------------------------- */

struct Byte {
    uint8_t value = 0, place = 0; // see POINTER() in pieces.h
    int pointer = 0;              // its number; 0: data; -1: unknown
    bool part = false;            // went through a value, or a store, of less than a word
    bool apart = false;           // stored since the last store to all of its word
};

using Value = std::vector<Byte>;

enum Object { A, B, Local, Text, Objects };

/* The statement cannot be made here. */
struct Invalid {
};

struct Model {
    std::array<std::array<Byte, BYTES>, Objects> memory{};
    std::array<std::array<bool, WORDS>, Local> overwritten{}; // a part, by data
    std::map<string, Value> variables;
    std::vector<int> pointers{0}; // their distances from t
    long i = 0, n = 0;            // i: the loop's counter

    Value &variable(const string &name)
    {
        auto found = variables.find(name);
        if (found == variables.end())
            throw Invalid();
        return found->second;
    }

    int new_pointer(int delta)
    {
        pointers.push_back(delta);
        return static_cast<int>(pointers.size()) - 1;
    }

    Value pointer(int delta)
    {
        Value value(WORD);
        int number = new_pointer(delta);
        for (int k = 0; k < WORD; k++)
            value[k] = {0, static_cast<uint8_t>(k), number, false, false};
        return value;
    }

    Value load(Object object, long at, int size)
    {
        if (at < 0 || at + size > BYTES)
            throw Invalid();
        Value value(&memory[object][0] + at, &memory[object][0] + at + size);
        for (Byte &b : value)
            b.part |= size < WORD || at % WORD;
        return value;
    }

    /* Store some bytes of one word. A part of a pointer that is stored over the same pointer makes two of
     * it: the word is no pointer for certain. A word is as if stored whole, if all of it was stored in
     * parts. */
    void store_part(Object object, long at, const Byte *bytes, int size, bool is_whole)
    {
        Byte *word = &memory[object][at / WORD * WORD];
        const long first = at % WORD, last = first + size;
        std::map<int, int> fresh;
        bool is_data = true, is_of_pointer = false,
             changes = false; // zeros over a pointer's last bytes do not
        const bool is_complete =
            std::all_of(word, word + WORD, [](const Byte &b) { return b.apart; });
        for (int k = 0; k < WORD; k++)
            word[k].apart &= !is_complete;
        for (int k = 0; k < WORD; k++) {
            const bool stays = k < first || k >= last;
            is_of_pointer |= stays && word[k].pointer && !word[k].apart;
            if (word[k].pointer > 0 && !word[k].apart &&
                (stays || (is_whole && k < 4 && bytes[k].part)))
                fresh.try_emplace(word[k].pointer, 0);
        }
        for (int k = 0; k < size; k++) {
            Byte b = bytes[k];
            auto found = fresh.find(b.pointer);
            if (found != fresh.end() && (!is_whole || k < 4)) {
                if (!found->second)
                    found->second = new_pointer(pointers[b.pointer]);
                b.pointer = found->second;
            }
            is_data &= b.pointer == 0;
            changes |= b.pointer || b.value || first + k < 6;
            b.apart = !is_whole;
            b.part |= !is_whole;
            word[first + k] = b;
        }
        if (object >= Local)
            return;
        bool &over = overwritten[object][at / WORD];
        over = !is_whole && ((over && !is_complete) || (is_data && is_of_pointer && changes));
    }

    void store(Object object, long at, const Value &value)
    {
        const int size = static_cast<int>(value.size());
        if (at < 0 || at + size > BYTES)
            throw Invalid();
        for (int done = 0, n; done < size; done += n) {
            n = std::min<int>(size - done, WORD - (at + done) % WORD);
            store_part(object, at + done, &value[done], n, n == WORD && at % WORD == 0);
        }
    }

    /* A copy of memory: whole words bring along what they are. */
    void copy(Object to, long to_at, Object from, long from_at, int size)
    {
        auto over = overwritten;
        Value value = load(from, from_at, size);
        if (to_at % WORD == from_at % WORD) // the store says which bytes are parts
            std::copy_n(&memory[from][from_at], size, value.begin());
        else
            for (Byte &b : value)
                b.part = true;
        if (to_at < 0 || to_at + size > BYTES)
            throw Invalid();
        for (int done = 0, n; done < size; done += n) {
            n = std::min<int>(size - done, WORD - (to_at + done) % WORD);
            bool whole = n == WORD && (to_at - from_at) % WORD == 0;
            store_part(to, to_at + done, &value[done], n, whole);
            if (whole && to < Local && from < Local)
                overwritten[to][(to_at + done) / WORD] = over[from][(from_at + done) / WORD];
        }
    }
};

/* ---- what is written --------------------------------------------------------------------------- */

struct Expression {
    string text;
    std::function<Value(Model &)> value;
};

struct Statement {
    string text;
    std::function<void(Model &)> run;
};

using Statements = std::vector<Statement>;

struct Place {
    Object object;
    long at, stride; // of a loop

    long here(const Model &m) const { return at + stride * m.i; }
    Place operator+(long bytes) const { return {object, at + bytes, stride}; }
    bool is_aligned(int size) const { return at % size == 0 && stride % size == 0; }
    string text() const
    {
        static const char *const names[] = {"a", "b", "(char *)&l", "(char *)text"};
        return string("(") + names[object] + " + " + to_string(at) +
               (stride ? " + " + to_string(stride) + " * i)" : ")");
    }
};

string type_of(int size)
{
    return "u" + to_string(8 * size);
}

/* The word from which bytes are taken: memory, or a variable. */
struct Source {
    Place place;
    Expression variable; // without a text: memory
};

/* A condition that the compiler does not know. */
struct Condition {
    string text;
    std::function<bool(const Model &)> holds;
};

class Writer : Random
{
  public:
    Writer(uint64_t seed, int number) : Random(seed_of(seed, number)), number_(number) {}

    void function(const std::set<int> &dropped);

  private:
    // Seeds and functions side by side would draw the same numbers.
    static uint64_t seed_of(uint64_t seed, int number)
    {
        const uint64_t mixed = Random(seed).below(UINT64_MAX) + static_cast<uint64_t>(number);
        return Random(mixed).below(UINT64_MAX);
    }
    bool one_in(uint64_t n) { return below(n) == 0; }
    string name() { return "v" + to_string(names_++); }

    Condition condition();
    Place any_place(int align, int size, bool to_write);
    Expression load(const Place &place, int size);
    Expression cut(const Expression &whole, int whole_size, int first, int size);
    Expression join(const Expression &low, const Expression &high, int size);
    Expression swap_bytes(const Expression &e, int size);
    Expression rotate(const Expression &e, int bytes);
    Expression choose(const Expression &a, const Expression &b);
    Expression merge(const Expression &a, const Expression &b, int bytes);
    Expression part(const Source &source, int first, int size, int depth);
    Expression whole(const Source &source, int depth);
    Expression noise(int size);
    Expression passed(const Expression &e, int size);
    Statement store(const Place &place, const Expression &e, int size);
    Statement declare(const string &variable, const string &type, const Expression &e);
    Source any_source(Statements &statements);
    void move(Statements &statements);
    void copy_memory(Statements &statements);
    void loop(Statements &statements);
    void branch(Statements &statements);
    void tag(Statements &statements);
    void data(Statements &statements);
    void vectors(Statements &statements);
    void wide(Statements &statements);
    void exchange(Statements &statements);
    void swap(Statements &statements);
    void in_variable(Statements &statements);
    void records(Statements &statements);
    void statement(Statements &statements);

    int number_, names_ = 0;
    long count_ = 0; // rounds of the loop that we are in; 0: none
    long n_ = 0;
};

Statement join_all(const string &before, const Statements &body, const string &after)
{
    string text = before;
    for (const Statement &s : body)
        text += s.text;
    return {text + after, [body](Model &m) {
                for (const Statement &s : body)
                    s.run(m);
            }};
}

Condition Writer::condition()
{
    const int bit = static_cast<int>(below(5));
    if (count_ && one_in(2))
        return {"(n >> (i & 3) & 1)", [](const Model &m) { return (m.n >> (m.i & 3) & 1) != 0; }};
    return {"(n >> " + to_string(bit) + " & 1)",
            [bit](const Model &m) { return (m.n >> bit & 1) != 0; }};
}

/* In a loop the place moves, and all of it is in the object. */
Place Writer::any_place(int align, int size, bool to_write)
{
    const Object object = to_write ? (one_in(4) ? B : A) : one_in(5) ? Local : one_in(3) ? A : B;
    long stride = 0;
    if (count_) {
        stride = one_in(4) ? 0 : one_in(4) && size <= 8 ? 16 : std::max(size, align);
        if (stride * (count_ - 1) + size + align > BYTES)
            stride = 0;
    }
    const long last = BYTES - size - stride * std::max(count_ - 1, 0L);
    return {object, static_cast<long>(below(last / align + 1)) * align, stride};
}

/* ---- expressions ------------------------------------------------------------------------------- */

Value parts(Value value)
{
    for (Byte &b : value)
        b.part = true;
    return value;
}

Expression Writer::load(const Place &p, int size)
{
    const string type = type_of(size), at = p.text();
    auto value = [p, size](Model &m) { return m.load(p.object, p.here(m), size); };
    const bool aligned = p.is_aligned(size);
    string text = "*(const " + type + (aligned && one_in(2) ? "" : "_any") + " *)" + at;
    switch (p.object == Text ? 9 : below(10)) {
    case 0:
        text = "copy_" + type + at;
        break;
    case 1:
        text = "far_copy_" + type + at;
        break;
    case 2:
        if (aligned)
            text = "*(const volatile " + type + " *)" + at;
        break;
    case 3:
        if (aligned)
            text = "__atomic_load_n((" + type + " *)" + at + ", " +
                   any({"__ATOMIC_RELAXED", "__ATOMIC_SEQ_CST"}) + ")";
        break;
    case 4:
    case 5:
        if (aligned && p.stride % WORD == 0) {
            const Place word = p + -(p.at % WORD);
            text = "((union word_of *)" + word.text() + ")->" + type +
                   (size < WORD ? "[" + to_string(p.at % WORD / size) + "]" : "");
        }
        break;
    case 6:
        if (aligned && size == WORD)
            text = one_in(2) ? "(u64)*(const ptr *)" + at : "bits_of(*(const dbl *)" + at + ")";
        break;
    default:
        break;
    }
    return {"(" + text + ")", value};
}

Expression Writer::cut(const Expression &whole, int whole_size, int first, int size)
{
    const string type = type_of(size);
    string text = whole.text;
    if (first)
        text = "((" + type_of(whole_size) + ")" + text + " >> " + to_string(8 * first) + ")";
    return {"((" + type + ")" + text + ")", [whole, first, size](Model &m) {
                Value v = whole.value(m);
                Value cut(v.begin() + first, v.begin() + first + size);
                return size < WORD ? parts(cut) : cut;
            }};
}

Expression Writer::join(const Expression &low, const Expression &high, int size)
{
    const string type = type_of(size);
    const string how = any({" | ", " | ", " + ", " ^ "});
    const string sign = one_in(6) ? "(s" + to_string(4 * size) + ")" : "";
    string a = "(" + type + ")" + low.text;
    string b = "((" + type + ")" + sign + high.text + " << " + to_string(4 * size) + ")";
    if (one_in(2))
        std::swap(a, b);
    return {"((" + type + ")(" + a + how + b + "))", [low, high, size](Model &m) {
                Value v = low.value(m), h = high.value(m);
                v.insert(v.end(), h.begin(), h.end());
                return size < WORD ? parts(v) : v;
            }};
}

Expression Writer::swap_bytes(const Expression &e, int size)
{
    return {"((" + type_of(size) + ")__builtin_bswap" + to_string(8 * size) + "(" + e.text + "))",
            [e](Model &m) {
                Value v = e.value(m);
                std::reverse(v.begin(), v.end());
                return v;
            }};
}

/* Rotate a word of 8 bytes to the right. */
Expression Writer::rotate(const Expression &e, int bytes)
{
    const string x = name();
    return {"({ u64 " + x + " = " + e.text + "; " + x + " >> " + to_string(8 * bytes) + " | " + x +
                " << " + to_string(64 - 8 * bytes) + "; })",
            [e, bytes](Model &m) {
                Value v = e.value(m);
                std::rotate(v.begin(), v.begin() + bytes, v.end());
                return v;
            }};
}

Expression Writer::choose(const Expression &a, const Expression &b)
{
    const Condition c = condition();
    return {"(" + c.text + " ? " + a.text + " : " + b.text + ")", [=](Model &m) {
                bool holds = c.holds(m);
                Value v = a.value(m), w = b.value(m);
                return holds ? v : w;
            }};
}

/* The lower bytes of one word, and the upper ones of another. */
Expression Writer::merge(const Expression &a, const Expression &b, int bytes)
{
    const string mask = to_string((uint64_t(1) << 8 * bytes) - 1) + "u";
    return {"((" + a.text + " & " + mask + "l) | (" + b.text + " & ~(u64)" + mask + "))",
            [=](Model &m) {
                Value v = a.value(m), w = b.value(m);
                std::copy(w.begin() + bytes, w.end(), v.begin() + bytes);
                return parts(v); // cut out of the words
            }};
}

Expression Writer::passed(const Expression &e, int size)
{
    return {"pass_" + type_of(size) + "(" + e.text + ")", e.value};
}

/* Data: a constant, a number of the caller's, or text. */
Expression Writer::noise(int size)
{
    const string type = type_of(size);
    uint64_t number =
        one_in(4) ? below(100) : 0x6161616161616161U + below(20) * 0x0101010001000101U;
    if (size < WORD)
        number &= (uint64_t(1) << 8 * size) - 1;
    auto constant = [size](uint64_t x) {
        Value v(size);
        for (int k = 0; k < size; k++, x >>= 8)
            v[k] = {static_cast<uint8_t>(x), 0, 0, size < WORD, false};
        return v;
    };
    if (one_in(3))
        return load({Text, static_cast<long>(below(40)) / size * size, 0}, size);
    if (one_in(3))
        return {"((" + type + ")(n * 3 + " + to_string(number) + "u))",
                [=](Model &m) { return constant(static_cast<uint64_t>(m.n) * 3 + number); }};
    return {"((" + type + ")" + to_string(number) + "u)",
            [=](Model &) { return constant(number); }};
}

/* All of a word. */
Expression Writer::whole(const Source &s, int depth)
{
    const bool in_memory = s.variable.text.empty();
    const Expression direct = in_memory ? load(s.place, WORD) : s.variable;
    if (depth > 2)
        return direct;
    auto again = [&] { return part(s, 0, WORD, depth + 1); };
    switch (below(18)) {
    case 0:
    case 1: {
        const Expression low = part(s, 0, 4, depth + 1), high = part(s, 4, 4, depth + 1);
        return join(low, high, WORD);
    }
    case 2:
        return swap_bytes(swap_bytes(again(), WORD), WORD);
    case 3: {
        const int bytes = 1 + static_cast<int>(below(7));
        return rotate(rotate(again(), bytes), WORD - bytes);
    }
    case 4: {
        const Expression low = again(), high = again();
        return merge(low, high, 1 + static_cast<int>(below(7)));
    }
    case 5: {
        const Expression yes = again(), no = one_in(2) ? again() : noise(WORD);
        return choose(yes, no);
    }
    case 6:
        return passed(again(), WORD);
    case 7: {
        const Expression e = again();
        const char *const ways[][2] = {
            {"((u64)(ptr)", ")"}, {"((u64)pass_pointer((ptr)", "))"}, {"bits_of(real_of(", "))"}};
        const auto &way = ways[below(std::size(ways))];
        return {way[0] + e.text + way[1], e.value};
    }
    case 8: { // a byte of it anew
        const int at = static_cast<int>(below(8));
        const Expression e = again(), byte = part(s, at, 1, depth + 1);
        const string mask = to_string(~(uint64_t(0xff) << 8 * at)) + "ul";
        return {"((" + e.text + " & " + mask + ") | (u64)" + byte.text + " << " +
                    to_string(8 * at) + ")",
                [=](Model &m) {
                    Value v = e.value(m);
                    v[at] = byte.value(m)[0];
                    return parts(v);
                }};
    }
    case 9: // one byte after the other
        if (depth == 0) {
            std::vector<Expression> bytes;
            string text;
            for (int k = 0; k < WORD; k++) {
                bytes.push_back(part(s, k, 1, 3));
                text += (k ? " | (u64)" : "(u64)") + bytes.back().text + " << " + to_string(8 * k);
            }
            return {"(" + text + ")", [bytes](Model &m) {
                        Value v;
                        for (const Expression &b : bytes)
                            v.push_back(b.value(m)[0]);
                        return v;
                    }};
        }
        break;
    case 10: // from a wider load
        if (in_memory && s.place.at >= WORD && s.place.is_aligned(WORD)) {
            const Place wide = s.place + -WORD;
            const char *const ways[][2] = {{"((u64)(*(const u128 *)", " >> 64))"},
                                           {"((*(const longs *)", ")[1])"},
                                           {"(((const pair *)", ")->second)"}};
            const auto &way = ways[below(std::size(ways))];
            return {way[0] + wide.text() + way[1],
                    [wide](Model &m) { return m.load(wide.object, wide.here(m) + WORD, WORD); }};
        }
        break;
    default:
        break;
    }
    return direct;
}

/* `size` bytes of a word, 8 or fewer. */
Expression Writer::part(const Source &s, int first, int size, int depth)
{
    if (size == WORD)
        return whole(s, depth);
    const bool in_memory = s.variable.text.empty();
    const Expression direct = in_memory && (depth > 2 || one_in(2))
                                  ? load(s.place + first, size)
                                  : cut(part(s, 0, WORD, depth + 1), WORD, first, size);
    if (depth > 2)
        return direct;
    switch (below(12)) {
    case 0:
        if (size > 1) {
            const Expression low = part(s, first, size / 2, depth + 1),
                             high = part(s, first + size / 2, size / 2, depth + 1);
            return join(low, high, size);
        }
        break;
    case 1:
        if (size < 4)
            return cut(part(s, first / 4 * 4, 4, depth + 1), 4, first % 4, size);
        break;
    case 2:
        return passed(direct, size);
    case 3:
        return choose(direct, one_in(2) ? direct : noise(size));
    case 4:
        if (size > 1)
            return swap_bytes(swap_bytes(direct, size), size);
        break;
    default:
        break;
    }
    return direct;
}

/* ---- statements -------------------------------------------------------------------------------- */

Statement Writer::store(const Place &p, const Expression &e, int size)
{
    const string type = type_of(size), at = p.text();
    const bool aligned = p.is_aligned(size);
    string text = "*(" + type + (aligned && one_in(2) ? "" : "_any") + " *)" + at + " = " + e.text;
    switch (below(11)) {
    case 0:
        text = "put_" + type + "(" + at + ", " + e.text + ")";
        break;
    case 1:
        text = "far_put_" + type + "(" + at + ", " + e.text + ")";
        break;
    case 2:
        if (aligned)
            text = "*(volatile " + type + " *)" + at + " = " + e.text;
        break;
    case 3:
        if (aligned)
            text = "__atomic_store_n((" + type + " *)" + at + ", " + e.text + ", " +
                   any({"__ATOMIC_RELAXED", "__ATOMIC_SEQ_CST"}) + ")";
        break;
    case 4:
        if (aligned)
            text =
                "__atomic_exchange_n((" + type + " *)" + at + ", " + e.text + ", __ATOMIC_ACQ_REL)";
        break;
    case 5:
    case 6:
        if (aligned && p.stride % WORD == 0) {
            const Place word = p + -(p.at % WORD);
            text = "((union word_of *)" + word.text() + ")->" + type +
                   (size < WORD ? "[" + to_string(p.at % WORD / size) + "]" : "") + " = " + e.text;
        }
        break;
    case 7:
        if (aligned && size == WORD)
            text = one_in(2) ? "*(ptr *)" + at + " = (ptr)" + e.text
                             : "*(dbl *)" + at + " = real_of(" + e.text + ")";
        break;
    default:
        break;
    }
    return {"    " + text + ";\n", [p, e](Model &m) { m.store(p.object, p.here(m), e.value(m)); }};
}

Expression value_of(const string &variable)
{
    return {variable, [variable](Model &m) { return m.variable(variable); }};
}

Statement Writer::declare(const string &variable, const string &type, const Expression &e)
{
    return {"    " + type + " " + variable + " = " + (type == "ptr" ? "(ptr)" : "") + e.text +
                ";\n",
            [variable, e](Model &m) { m.variables[variable] = e.value(m); }};
}

/* A word of memory, or a new pointer. */
Source Writer::any_source(Statements &statements)
{
    if (one_in(3)) {
        const string v = name();
        const int delta = 8 * static_cast<int>(below(12));
        const bool moves = count_ && one_in(2);
        const string at = "(t + " + to_string(delta) + (moves ? " + 8 * (i & 7))" : ")");
        const bool is_pointer = one_in(2);
        statements.push_back(declare(v, is_pointer ? "ptr" : "u64",
                                     {"(u64)" + at, [=](Model &m) {
                                          return m.pointer(
                                              delta + (moves ? 8 * static_cast<int>(m.i & 7) : 0));
                                      }}));
        Expression variable = value_of(v);
        if (is_pointer)
            variable.text = "((u64)" + v + ")";
        return {{}, variable};
    }
    return {any_place(one_in(12) ? 1 : WORD, WORD, false), {}};
}

/* Store all of a word, in parts or not, from anywhere to anywhere. */
void Writer::move(Statements &statements)
{
    static const std::vector<std::vector<int>> ways = {
        {8}, {8}, {4, 4}, {4, 4}, {4, 2, 2}, {2, 2, 2, 2}, {1, 1, 2, 4}, {1, 1, 1, 1, 1, 1, 1, 1}};
    const Source from = any_source(statements);
    Place to = any_place(one_in(15) ? 1 : WORD, WORD, true);
    if (one_in(6))
        to.object = Local;
    const auto &way = ways[below(ways.size())];
    const bool by_variables = one_in(3);
    Statements stores;
    int at = 0;
    for (int size : way) {
        Expression e = one_in(24) ? noise(size) : part(from, at, size, 0);
        if (by_variables) {
            const string v = name();
            statements.push_back(declare(v, type_of(size), e));
            e = value_of(v);
        }
        stores.push_back(store(to + at, e, size));
        at += size;
    }
    if (one_in(3))
        std::reverse(stores.begin(), stores.end());
    for (Statement &s : stores)
        statements.push_back(s);
}

void Writer::copy_memory(Statements &statements)
{
    static const int sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  8,  9,
                                12, 12, 16, 16, 20, 24, 24, 32, 40, 64};
    static const struct {
        const char *type;
        int size;
    } types[] = {{"u64", 8},     {"union word_of", 8}, {"pair", 16},       {"record", 24},
                 {"twelve", 12}, {"longs", 16},        {"four_longs", 32}, {"u128", 16}};
    const bool assigns = one_in(2);
    const auto &type = types[below(std::size(types))];
    const int size = assigns ? type.size : sizes[below(std::size(sizes))];
    const int align = !assigns && one_in(4) ? 1 : WORD;
    Place from = any_place(align, size, false);
    if (from.object == Local && type.type == string("record"))
        from.object = B; // small numbers of a variable are data
    Place to = any_place(align, size, true);
    if (one_in(6))
        to.object = Local;
    auto overlaps = [=](const Model &m) {
        const long a = to.here(m), b = from.here(m);
        return to.object == from.object && a < b + size && b < a + size;
    };
    const bool moves = one_in(3) && !assigns;
    const string length =
        one_in(3) ? "(size_t)(n - " + to_string(n_ - size) + ")" : to_string(size);
    const string text = assigns ? string("*(") + type.type + " *)" + to.text() + " = *(const " +
                                      type.type + " *)" + from.text()
                                : (moves ? "memmove(" : "memcpy(") + to.text() + ", " +
                                      from.text() + ", " + length + ")";
    statements.push_back({"    " + text + ";\n", [=](Model &m) {
                              if (!moves && overlaps(m))
                                  throw Invalid();
                              m.copy(to.object, to.here(m), from.object, from.here(m), size);
                          }});
}

void Writer::loop(Statements &statements)
{
    const bool narrow = one_in(3);
    const int unit = narrow ? 1 << below(3) : WORD;
    count_ =
        narrow ? static_cast<long>(1 + below(8)) * WORD / unit : static_cast<long>(2 + below(11));
    Statements body;
    if (narrow) { // units of less than a word
        const Place from = any_place(WORD, unit, false), to = any_place(WORD, unit, true);
        const Place f = {from.object, from.at % (BYTES - count_ * unit + 1) / WORD * WORD, unit};
        const Place t = {to.object, to.at % (BYTES - count_ * unit + 1) / WORD * WORD, unit};
        Expression e = load(f, unit);
        if (one_in(4))
            e = choose(e, noise(unit));
        body.push_back(store(t, e, unit));
    } else {
        for (uint64_t k = 1 + below(2); k > 0; k--)
            switch (below(8)) {
            case 0:
                copy_memory(body);
                break;
            case 1:
                swap(body);
                break;
            case 2:
                tag(body);
                break;
            case 3:
                data(body);
                break;
            default:
                move(body);
            }
    }
    const long count = count_;
    const bool down = one_in(4);
    const string bound = one_in(3) ? to_string(count) : "n - " + to_string(n_ - count);
    const string head = down ? "    for (long i = " + bound + "; i-- > 0;) {\n"
                             : "    for (long i = 0, e = " + bound + "; i < e; i++) {\n";
    count_ = 0;
    Statement all = join_all(head, body, "    }\n");
    statements.push_back({all.text, [=](Model &m) {
                              for (long i = 0; i < count; i++) {
                                  m.i = down ? count - 1 - i : i;
                                  all.run(m);
                              }
                              m.i = 0;
                          }});
}

void Writer::branch(Statements &statements)
{
    const Condition c = condition();
    Statements yes, no;
    statement(yes);
    if (one_in(2))
        statement(no);
    const string between = no.empty() ? "    }\n" : "    } else {\n";
    Statement a = join_all("    if (" + c.text + ") {\n", yes, between);
    Statement b = no.empty() ? join_all("", no, "") : join_all("", no, "    }\n");
    statements.push_back({a.text + b.text, [=](Model &m) {
                              if (c.holds(m))
                                  a.run(m);
                              else
                                  b.run(m);
                          }});
}

/* Set, clear or flip some of the three lowest bits of a word. */
void Writer::tag(Statements &statements)
{
    const Place p = any_place(WORD, WORD, true);
    const uint8_t bits = static_cast<uint8_t>(1 + below(7));
    const int how = static_cast<int>(below(3)); // set, clear, flip
    static const int sizes[] = {1, 1, 1, 2, 4, 8, 8};
    const int size = sizes[below(std::size(sizes))];
    const string type = type_of(size), at = "*(" + type + " *)" + p.text(), v = name();
    const string number = how == 1 ? "(" + type + ")~" + to_string(bits) + "ul" : to_string(bits);
    const string op = how == 0 ? "|" : how == 1 ? "&" : "^";
    string text = at + " " + op + "= " + number;
    const uint64_t form = below(8);
    const bool by_value = // it goes through a variable, or the bits are an argument
        (form < 2 || (form == 3 && how == 0)) && size == WORD;
    switch (form) {
    case 0:
        text = type + " " + v + " = " + at + "; " + v + " " + op + "= " + number + "; " + at +
               " = " + v;
        break;
    case 1:
        text = "{ " + type + " " + v + "; memcpy(&" + v + ", " + p.text() + ", " + to_string(size) +
               "); " + v + " " + op + "= " + number + "; memcpy(" + p.text() + ", &" + v + ", " +
               to_string(size) + "); }";
        break;
    case 2:
        text = string("__atomic_fetch_") +
               (how == 0   ? "or"
                : how == 1 ? "and"
                           : "xor") +
               "((" + type + " *)" + p.text() + ", " + number + ", __ATOMIC_RELAXED)";
        break;
    case 3:
        if (how == 0)
            text = "set_bits_" + type + "((" + type + " *)" + p.text() + ", " + number + ")";
        break;
    case 4:
        if (how < 2)
            text = "((tagged *)" + p.text() + ")->tag " + op + "= " +
                   to_string(how == 0 ? bits : ~bits & 7);
        break;
    default:
        break;
    }
    statements.push_back({"    " + text + ";\n", [=](Model &m) {
                              Byte *word = &m.memory[p.object][p.here(m)], &b = *word;
                              if (b.pointer && (b.place != 0 || b.pointer < 0))
                                  throw Invalid(); // its bits are not known
                              if (by_value)
                                  m.overwritten[p.object][p.here(m) / WORD] = false;
                              bool is_joined = std::any_of(word, word + WORD, [](const Byte &byte) {
                                  return byte.part && !byte.apart;
                              });
                              if (b.pointer && size < WORD && is_joined) // no pointer for certain
                                  b.pointer = m.new_pointer(m.pointers[b.pointer]);
                              b.value = static_cast<uint8_t>(how == 0   ? b.value | bits
                                                             : how == 1 ? b.value & ~bits
                                                                        : b.value ^ bits);
                          }});
}

/* Data over anything. */
void Writer::data(Statements &statements)
{
    const int size = 1 << below(4);
    if (count_ == 0 && one_in(5)) {
        const int bytes = 1 + static_cast<int>(below(40)), byte = static_cast<int>(below(3)) * 33;
        const Place p = any_place(1, bytes, true);
        const string length =
            one_in(2) ? to_string(bytes) : "(size_t)(n - " + to_string(n_ - bytes) + ")";
        statements.push_back(
            {"    memset(" + p.text() + ", " + to_string(byte) + ", " + length + ");\n",
             [=](Model &m) {
                 Value v(bytes, Byte{static_cast<uint8_t>(byte)});
                 m.store(p.object, p.here(m), v);
             }});
        return;
    }
    const Place p = any_place(one_in(4) ? 1 : size, size, true);
    statements.push_back(store(p, noise(size), size));
}

/* Permute the lanes of two vectors. */
void Writer::vectors(Statements &statements)
{
    static const struct {
        const char *type;
        int lane, count;
    } types[] = {{"longs", 8, 2}, {"ints", 4, 4}, {"chars", 1, 16}, {"four_longs", 8, 4}};
    const auto &type = types[below(std::size(types))];
    const int size = type.lane * type.count;
    const Place x = any_place(WORD, size, false), y = any_place(WORD, size, false),
                to = any_place(WORD, size, true);
    std::vector<int> order;
    const int words = size / WORD, each = WORD / type.lane;
    for (int w = 0; w < words; w++) {
        const int from = static_cast<int>(below(2 * words));
        for (int k = 0; k < each; k++)
            order.push_back(from * each + k);
    }
    string text = string("*(") + type.type + " *)" + to.text() +
                  " = __builtin_shufflevector(*(const " + type.type + " *)" + x.text() +
                  ", *(const " + type.type + " *)" + y.text();
    for (int lane : order)
        text += ", " + to_string(lane);
    const int lane = type.lane, count = type.count;
    statements.push_back({"    " + text + ");\n", [=](Model &m) {
                              Value a = m.load(x.object, x.here(m), size),
                                    b = m.load(y.object, y.here(m), size), v;
                              for (int from : order) {
                                  const Value &whole = from < count ? a : b;
                                  for (int k = 0; k < lane; k++)
                                      v.push_back(whole[from % count * lane + k]);
                              }
                              m.store(to.object, to.here(m), v);
                          }});
}

/* Two words in one number of 16 bytes, or in a vector. */
void Writer::wide(Statements &statements)
{
    const Source x = {any_place(WORD, WORD, false), {}}, y = {any_place(WORD, WORD, false), {}};
    const Place to = any_place(WORD, 2 * WORD, true);
    const Expression low = part(x, 0, WORD, 1), high = part(y, 0, WORD, 1);
    const string text =
        one_in(2) ? "*(u128 *)" + to.text() + " = (u128)" + high.text + " << 64 | " + low.text
                  : "*(longs *)" + to.text() + " = (longs){" + low.text + ", " + high.text + "}";
    statements.push_back({"    " + text + ";\n", [=](Model &m) {
                              Value v = low.value(m), h = high.value(m);
                              v.insert(v.end(), h.begin(), h.end());
                              m.store(to.object, to.here(m), v);
                          }});
}

/* Compare and swap a word, or a part of it, with what is there. */
void Writer::exchange(Statements &statements)
{
    const int size = 1 << below(4);
    const Source from = {any_place(WORD, WORD, false), {}};
    const Place to = any_place(WORD, WORD, true);
    const string v = name();
    Statements body;
    for (int at = 0; at < WORD; at += size) {
        const Expression e = part(from, at, size, 1);
        const Place p = to + at;
        const string type = type_of(size);
        body.push_back({"    " + type + " " + v + "_" + to_string(at) + " = *(" + type + " *)" +
                            p.text() + ";\n    __atomic_compare_exchange_n((" + type + " *)" +
                            p.text() + ", &" + v + "_" + to_string(at) + ", " + e.text +
                            ", 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);\n",
                        [=](Model &m) {
                            m.store(p.object, p.here(m), e.value(m));
                            m.overwritten[p.object][p.here(m) / WORD] =
                                false; // it goes by its value
                        }});
    }
    for (Statement &s : body)
        statements.push_back(s);
}

void Writer::swap(Statements &statements)
{
    static const int sizes[] = {8, 8, 4, 2, 1};
    const int size = sizes[below(std::size(sizes))];
    const Place a = any_place(WORD, WORD, true), b = any_place(WORD, WORD, true);
    for (int at = 0; at < WORD; at += size) {
        const string v = name(), type = type_of(size);
        const Place x = a + at, y = b + at;
        statements.push_back({"    { " + type + " " + v + " = *(" + type + " *)" + x.text() +
                                  "; *(" + type + " *)" + x.text() + " = *(" + type + " *)" +
                                  y.text() + "; *(" + type + " *)" + y.text() + " = " + v + "; }\n",
                              [=](Model &m) {
                                  Value v = m.load(x.object, x.here(m), size),
                                        w = m.load(y.object, y.here(m), size);
                                  m.store(x.object, x.here(m), w);
                                  m.store(y.object, y.here(m), v);
                              }});
    }
}

/* Put a word together in a variable, part by part. */
void Writer::in_variable(Statements &statements)
{
    static const int sizes[] = {1, 2, 4, 4};
    const int size = sizes[below(std::size(sizes))];
    const Source from = {any_place(WORD, WORD, false), {}};
    const Place to = any_place(WORD, WORD, true);
    const string v = name(), type = type_of(size);
    const int how = static_cast<int>(below(3));
    statements.push_back(
        {how == 0 ? "    u64 " + v + " = 0;\n" : "    union word_of " + v + " = {0};\n",
         [v](Model &m) { m.variables[v] = Value(WORD); }});
    for (int at = 0; at < WORD; at += size) {
        const Expression e = part(from, at, size, 1);
        const string text =
            how == 0 ? v + " |= (u64)" + e.text + " << " + to_string(8 * at)
            : how == 1
                ? v + "." + type + "[" + to_string(at / size) + "] = " + e.text
                : "put_" + type + "((char *)&" + v + " + " + to_string(at) + ", " + e.text + ")";
        statements.push_back({"    " + text + ";\n", [=](Model &m) {
                                  Value part = e.value(m);
                                  std::copy(part.begin(), part.end(), m.variable(v).begin() + at);
                              }});
    }
    const string text = how == 0    ? "*(u64 *)" + to.text() + " = " + v
                        : one_in(2) ? "*(union word_of *)" + to.text() + " = " + v
                                    : "memcpy(" + to.text() + ", &" + v + ", 8)";
    statements.push_back(
        {"    " + text + ";\n", [=](Model &m) { m.store(to.object, to.here(m), m.variable(v)); }});
}

/* A struct with a pointer, a number and two small numbers; one with padding. */
void Writer::records(Statements &statements)
{
    const string v = name();
    const Source x = {any_place(WORD, WORD, false), {}}, y = {any_place(WORD, WORD, false), {}};
    const Place to = any_place(WORD, 24, true);
    const Expression first = part(x, 0, WORD, 1), last = part(y, 0, WORD, 1);
    if (one_in(3)) {
        const Place from = any_place(WORD, 24, false);
        statements.push_back(
            {"    *(padded *)" + to.text() + " = *(const padded *)" + from.text() + ";\n",
             [=](Model &m) {
                 if (to.object == from.object)
                     throw Invalid();
                 m.copy(to.object, to.here(m), from.object, from.here(m), 24);
                 for (int k = 9; k < 16; k++)
                     m.memory[to.object][to.here(m) + k].pointer = -1;
             }});
        return;
    }
    const Expression low = noise(4), high = noise(4);
    statements.push_back({"    record " + v + ";\n    " + v + ".pointer = (ptr)" + first.text +
                              ";\n    " + v + ".low = " + low.text + ";\n    " + v +
                              ".high = " + high.text + ";\n    " + v + ".number = " + last.text +
                              ";\n    *(record *)" + to.text() + " = " + v + ";\n",
                          [=](Model &m) {
                              Value all;
                              for (const Expression &e : {first, low, high, last}) {
                                  Value part = e.value(m);
                                  all.insert(all.end(), part.begin(), part.end());
                              }
                              m.store(to.object, to.here(m), all);
                          }});
}

void Writer::statement(Statements &statements)
{
    switch (below(count_ ? 9 : 20)) {
    case 0:
    case 1:
        tag(statements);
        break;
    case 2:
    case 3:
        data(statements);
        break;
    case 4:
        swap(statements);
        break;
    case 5:
    case 6:
        copy_memory(statements);
        break;
    case 9:
    case 10:
        loop(statements);
        break;
    case 11:
        branch(statements);
        break;
    case 12:
        vectors(statements);
        break;
    case 13:
        wide(statements);
        break;
    case 14:
        exchange(statements);
        break;
    case 15:
        in_variable(statements);
        break;
    case 16:
        records(statements);
        break;
    default:
        move(statements);
    }
}

/* ---- functions --------------------------------------------------------------------------------- */

uint32_t code_of(const Model &m, const Byte &b)
{
    if (b.pointer < 0)
        return UNKNOWN;
    return b.pointer ? POINTER(static_cast<uint32_t>(m.pointers[b.pointer]), b.place, b.value)
                     : DATA(b.value);
}

/* The words of a and b that differ from those that were filled in. */
int write_words(const Model &m, const Model &filled, int number)
{
    int count = 0;
    std::cout << "static const struct word words_" << number << "[] = {\n";
    for (int object = A; object <= B; object++)
        for (int w = 0; w < WORDS; w++) {
            const Byte *word = &m.memory[object][w * WORD], *was = &filled.memory[object][w * WORD];
            bool differs = false, is_pointer = true, stays = false;
            // libpm does not tell bytes 1 to 3 apart (base/marks.h, P3)
            const bool may_fail = word[0].part && (word[1].part || word[2].part || word[3].part) &&
                                  word[4].part && word[5].part;
            for (int k = 0; k < WORD; k++) {
                const Byte &b = word[k];
                differs |= b.part || code_of(m, b) != code_of(filled, was[k]) ||
                           b.pointer != was[k].pointer;
                is_pointer &= b.pointer > 0 && b.pointer == word[0].pointer && b.place == k;
                stays |= k < 6 && !b.apart;
            }
            if (!differs)
                continue;
            std::cout << "    {" << object << ", " << w << ", " << is_pointer << ", "
                      << (m.overwritten[object][w] && stays && !is_pointer) << ", " << may_fail
                      << ", {";
            for (int k = 0; k < WORD; k++)
                std::cout << (k ? ", " : "") << code_of(m, word[k]) << "u";
            std::cout << "}},\n";
            count++;
        }
    std::cout << "    {0}};\n";
    return count;
}

void Writer::function(const std::set<int> &dropped)
{
    Model filled;
    std::vector<uint32_t> codes;
    n_ = filled.n = 8 + static_cast<long>(below(24));
    for (int i = 0; i < 2 * WORDS; i++) {
        const uint32_t code = static_cast<uint32_t>(one_in(2)   ? 8 + 8 * below(11)
                                                    : one_in(3) ? 0
                                                                : 0x6161 + below(20) * 0x101);
        Value v(WORD);
        if (code > 0 && code < 256)
            v = filled.pointer(static_cast<int>(code));
        else
            for (int k = 0; k < WORD; k++)
                v[k].value = static_cast<uint8_t>(code * UINT64_C(0x10001000100) >> 8 * k);
        filled.store(i < WORDS ? A : B, i % WORDS * WORD, v);
        codes.push_back(code);
    }
    for (int i = 0; i < 52; i++)
        filled.memory[Text][i].value = static_cast<uint8_t>('a' + i % 26);

    /* A statement that cannot be made here is left out. */
    Model m = filled;
    Statements all;
    const bool commits = one_in(2);
    const uint64_t wanted = 2 + below(8);
    for (uint64_t k = 0; k < wanted; k++) {
        Statements some;
        statement(some);
        Model before = m;
        try {
            for (const Statement &s : some)
                s.run(m);
            all.insert(all.end(), some.begin(), some.end());
        } catch (Invalid) {
            m = before;
        }
    }
    if (!dropped.empty()) {
        m = filled;
        for (size_t k = 0; k < all.size(); k++)
            if (!dropped.count(static_cast<int>(k)))
                all[k].run(m);
    }
    const bool restricted = one_in(3);
    const char *pointer = restricted ? "char *__restrict " : "char *";
    std::cout << "NOINLINE static void run_" << number_ << "(" << pointer << "a, " << pointer
              << "b, char *t, long n)\n{\n    union buffer l = {{0}};\n";
    for (size_t k = 0; k < all.size(); k++)
        if (!dropped.count(static_cast<int>(k)))
            std::cout << "    /* " << k << " */\n" << all[k].text;
    std::cout << "}\nstatic const uint32_t filled_" << number_ << "[] = {";
    for (uint32_t code : codes)
        std::cout << code << "u, ";
    std::cout << "};\n";
    const int count = write_words(m, filled, number_);
    std::cout << "#define FUNCTION_" << number_ << " {run_" << number_ << ", " << number_ << ", "
              << n_ << ", " << commits << ", filled_" << number_ << ", words_" << number_ << ", "
              << count << "},\n\n";
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4) {
        std::cerr << "usage: pieces_program SEED FIRST COUNT [DROPPED...]\n";
        return 2;
    }
    const uint64_t seed = strtoull(argv[1], nullptr, 10);
    const int first = atoi(argv[2]), count = atoi(argv[3]);
    std::set<int> dropped;
    for (int i = 4; i < argc; i++)
        dropped.insert(atoi(argv[i]));
    std::cout << "/* seed " << seed << " */\n#define PIECES_PROGRAM\n#include \"pieces.h\"\n\n";
    try {
        for (int number = first; number < first + count; number++)
            Writer(seed, number).function(dropped);
    } catch (Invalid) {
        return 3;
    }
    std::cout << "const struct function functions[] = {\n";
    for (int number = first; number < first + count; number++)
        std::cout << "    FUNCTION_" << number << "\n";
    std::cout << "};\nconst int function_count = " << count << ";\n";
}

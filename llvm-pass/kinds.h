/*
 * What a store stores, as far as the pointer map is concerned: the kinds of src/base/marks.h.
 *
 * This looks at code that the optimiser is done with, where types say little: copies of 8 bytes are
 * loads and stores of i64, and a local union has become one variable of one of its types, by inttoptr
 * or bitcast what it is not. So it asks where a value comes from:
 *
 *   a pointer by its type, but for inttoptr                                            Pointer
 *   ptrtoint, and that with small bits set or cleared or a distance added              Pointer
 *   a load of a word, and that with bits or a constant changed                   as the word loaded
 *   the same with variable bits set, cleared or flipped               by its value; data if that was
 *   a load of a pointer that strict aliasing knows no type of                    as the word loaded
 *   arguments, results, doubles that were loaded, other changes of a pointer,
 *     shifts, quotients and small multiples of what may be part of one,
 *     and whatever mixes the above                                                  by its value
 *   numbers of less than 8 bytes, each of which may be a piece of a pointer,
 *     put together by shifts and bitwise operations                              Pieced
 *   other products, remainders, numbers of elements, constants, computed doubles,
 *     numbers of less than 8 bytes                                                    Data
 */
#pragma once

#include <llvm/IR/Instructions.h>

namespace pmcc
{

struct Origin {
    enum Kind { Data, Pointer, ByValue, Loaded, Changed, Pieced };

    Kind kind = Data;
    llvm::LoadInst *load = nullptr; // whose word's kind it has, or what is left of it; of the value's size
};

/** In a module while it is marked: strict aliasing has left the types of what is accessed. */
constexpr char typed_note[] = "pm.typed";
bool has_types(const llvm::Module &module);

/** Whether by those types it is a pointer that a load or store accesses. */
bool is_typed_pointer(const llvm::Instruction &access);

/** Whether by those types it is no byte of something of another type. Bit-fields have no type. */
bool is_typed_field(const llvm::Instruction &access);

/** Of a value that is put into memory. */
Origin origin_of(llvm::Value *value);

/**
 * Whether a store to part of a word may store a piece of a pointer (src/base/marks.h, P3). Pieces were read,
 * cut out of a word, passed or returned; their bits may have been shifted or joined. Strict aliasing rules
 * out fields and numbers of other types, unless a number is copied as it is.
 */
bool is_piece(llvm::StoreInst &store);

/** Whether a value of less than 8 bytes may be one. */
bool may_be_piece(llvm::Value *value);

/** The kind of memory that has this type, for who does not show the value: of its first word. */
Origin::Kind kind_of_type(const llvm::Type *type);

} // namespace pmcc

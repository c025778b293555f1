/*
 * Decides what a store stores for the pointer map: one of the kinds of src/base/marks.h.
 *
 * The pass sees code after the optimiser, where types say little. Copies of 8 bytes are loads and
 * stores of i64. A local union has become one variable with the type of one member; inttoptr and
 * bitcast turn it into the other types. So the search asks where a value comes from:
 *
 *     a pointer by its type, but not inttoptr                                        Pointer
 *     ptrtoint; also with small bits set or cleared, or a distance added             Pointer
 *     a loaded word; also with constant bits changed, or a constant added            as the loaded word
 *     a loaded word with variable bits set, cleared or flipped                       data if the loaded word
 *                                                                                    was data, else by value
 *     a loaded pointer whose type strict aliasing does not know                      as the loaded word
 *     arguments, results, loaded doubles and long doubles, other changes of a
 *     pointer                                                                        by its value
 *     shifts, quotients and small multiples of what may be part of a pointer         by its value
 *     vectors of narrower lanes that are copied, passed or returned; what bitwise
 *     operations and instructions of the processor make of them; doubles that such
 *     instructions yield                                                             by its value
 *     mixtures of the above                                                          by its value
 *     numbers of less than 8 bytes, put together by shifts and bitwise operations,
 *     if each may be a piece of a pointer                                            Pieced
 *     other products, remainders, numbers of elements, constants                     Data
 *     computed doubles, numbers of less than 8 bytes                                 Data
 */
#pragma once

#include <llvm/IR/Instructions.h>

namespace pmcc
{

struct Origin {
    enum Kind { Data, Pointer, ByValue, Loaded, Changed, Pieced };

    Kind kind = Data;
    llvm::LoadInst *load = nullptr; // Loaded, Changed: the load that read the words; of the value's size
};

/** A note in a module while the pass marks it: strict aliasing has left the types of accesses. */
constexpr char typed_note[] = "pm.typed";
bool has_types(const llvm::Module &module);

/** Whether, by the types of strict aliasing, a load or store accesses a pointer. */
bool is_typed_pointer(const llvm::Instruction &access);

/** Whether strict aliasing leaves open what type the accessed memory has, as that of a union. */
bool is_of_any_type(const llvm::Instruction &access);

/** Whether, by these types, the access is no byte of an object of another type. Bit-fields have no type. */
bool is_typed_field(const llvm::Instruction &access);

/** The origin of a value that is stored to memory. */
Origin origin_of(llvm::Value *value);

/**
 * Whether a store to part of a word may store a piece of a pointer (src/base/marks.h, P3). A piece was read
 * from memory, cut out of a word, passed or returned. Its bits may have been shifted or joined. By strict
 * aliasing, fields and numbers of other types are no pieces, unless a number is copied unchanged.
 */
bool is_piece(llvm::StoreInst &store);

/** Whether a value of less than 8 bytes may be a piece of a pointer. */
bool may_be_piece(llvm::Value *value);

/** The kind of the first word of memory of this type, if the stored value is not visible. */
Origin::Kind kind_of_type(const llvm::Type *type);

} // namespace pmcc

/*
 * The machinery of PM_TYPE(). Only libpm.h includes this file. It finds offset and size of each field,
 * and proves at compile time that the field is a pointer or an array of pointers.
 */
#ifndef LIBPM_TYPE_H
#define LIBPM_TYPE_H

/* m(t, f) for each field f. */
/* clang-format off */
#define PM__EACH1(m, t, f) m(t, f)
#define PM__EACH2(m, t, f, ...) m(t, f), PM__EACH1(m, t, __VA_ARGS__)
#define PM__EACH3(m, t, f, ...) m(t, f), PM__EACH2(m, t, __VA_ARGS__)
#define PM__EACH4(m, t, f, ...) m(t, f), PM__EACH3(m, t, __VA_ARGS__)
#define PM__EACH5(m, t, f, ...) m(t, f), PM__EACH4(m, t, __VA_ARGS__)
#define PM__EACH6(m, t, f, ...) m(t, f), PM__EACH5(m, t, __VA_ARGS__)
#define PM__EACH7(m, t, f, ...) m(t, f), PM__EACH6(m, t, __VA_ARGS__)
#define PM__EACH8(m, t, f, ...) m(t, f), PM__EACH7(m, t, __VA_ARGS__)
#define PM__EACH9(m, t, f, ...) m(t, f), PM__EACH8(m, t, __VA_ARGS__)
#define PM__EACH10(m, t, f, ...) m(t, f), PM__EACH9(m, t, __VA_ARGS__)
#define PM__EACH11(m, t, f, ...) m(t, f), PM__EACH10(m, t, __VA_ARGS__)
#define PM__EACH12(m, t, f, ...) m(t, f), PM__EACH11(m, t, __VA_ARGS__)
#define PM__EACH13(m, t, f, ...) m(t, f), PM__EACH12(m, t, __VA_ARGS__)
#define PM__EACH14(m, t, f, ...) m(t, f), PM__EACH13(m, t, __VA_ARGS__)
#define PM__EACH15(m, t, f, ...) m(t, f), PM__EACH14(m, t, __VA_ARGS__)
#define PM__EACH16(m, t, f, ...) m(t, f), PM__EACH15(m, t, __VA_ARGS__)
/* clang-format on */

#define PM__SELECT(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, n, ...) n
#define PM__COUNT(...)                                                                             \
    PM__SELECT(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define PM__JOIN_(a, b)    a##b
#define PM__JOIN(a, b)     PM__JOIN_(a, b)
#define PM__FIELDS(t, ...) PM__JOIN(PM__EACH, PM__COUNT(__VA_ARGS__))(PM__FIELD, t, __VA_ARGS__)
/* The check stands inside the sum, because compilers warn of the plain quotient of a `void **`. */
#define PM__FIELD(t, f)                                                                            \
    {offsetof(t, f), (sizeof(((t *)0)->f) + PM__CHECK(((t *)0)->f)) / sizeof(void *)}

#ifdef __cplusplus
template <class T> struct pm__pointers {
    enum { is = 0 };
};
template <class T> struct pm__pointers<T *> {
    enum { is = 1 };
};
template <class T> struct pm__pointers<T *const> {
    enum { is = 1 };
};
template <class T> struct pm__pointers<T *volatile> {
    enum { is = 1 };
};
template <class T> struct pm__pointers<T *const volatile> {
    enum { is = 1 };
};
template <class T> struct pm__pointers<T &> : pm__pointers<T> {
};
template <class T, size_t N> struct pm__pointers<T[N]> : pm__pointers<T> {
};
template <class T> constexpr size_t pm__check_pointers()
{
    static_assert(pm__pointers<T>::is, "PM_TYPE: the field is not a pointer");
    return 0;
}
#define PM__CHECK(field) pm__check_pointers<decltype(field)>()
#define PM__TYPE(type_, ...)                                                                       \
    ([]() -> const struct pm_type * {                                                              \
        static constexpr struct pm_field fields[] = {PM__FIELDS(type_, __VA_ARGS__)};              \
        static constexpr struct pm_type type = {sizeof(type_), sizeof fields / sizeof *fields,     \
                                                fields};                                           \
        return &type;                                                                              \
    }())
#else
/* An array is an array, not the pointer to which it decays. PM__ELEMENT() is its first element; of
 * anything else, the thing itself. As a value an atomic pointer is a plain pointer, too. */
#define PM__VALUE_TYPE(x) __typeof__(((void)0, (x)))
#define PM__IS_ARRAY(x)                                                                            \
    (!__builtin_types_compatible_p(__typeof__(x), PM__VALUE_TYPE(x)) &&                            \
     !__builtin_types_compatible_p(__typeof__(x), _Atomic(PM__VALUE_TYPE(x))))
#define PM__ELEMENT(x)                                                                             \
    __builtin_choose_expr(PM__IS_ARRAY(x),                                                         \
                          __builtin_choose_expr(PM__IS_ARRAY(x), (x), (void *[1]){0})[0], (x))
#define PM__POINTER_CLASS 5 /* what __builtin_classify_type() says of pointers, and of arrays */
/* Not _Static_assert(): before C11 the system's headers declare a function of that name. */
#define PM__CHECK(x)                                                                               \
    (0 * sizeof(struct {                                                                           \
         int the_field_is_not_a_pointer                                                            \
             : !PM__IS_ARRAY(PM__ELEMENT(PM__ELEMENT(PM__ELEMENT(x)))) &&                          \
               __builtin_classify_type(PM__ELEMENT(PM__ELEMENT(PM__ELEMENT(x)))) ==                \
                   PM__POINTER_CLASS                                                               \
             ? 1                                                                                   \
             : -1;                                                                                 \
     }))
#define PM__TYPE(type, ...)                                                                        \
    (&(const struct pm_type){sizeof(type), PM__COUNT(__VA_ARGS__),                                 \
                             (const struct pm_field[]){PM__FIELDS(type, __VA_ARGS__)}})
#endif
#endif

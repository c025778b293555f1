// Tables of what the linker keeps once: they have it once.
#include "roots.h"

#include "mock_heap.h"

USE(lists_once_what_several_files_have, "")
{
    use_shared();
    use_shared_elsewhere();
    assert(count_global(&shared_variable, sizeof shared_variable) == 1);
    assert(count_global(&Shared<int>::member, sizeof Shared<int>::member) == 1);
    assert(count_local(&shared_local, sizeof shared_local) == 1);
    assert(count_function(shared_function, false) == 1);
}

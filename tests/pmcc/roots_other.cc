#include "roots.h"

void use_shared_elsewhere()
{
    use_shared();
}

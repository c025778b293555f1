# Random commands for phonebook: -v seed -v lines.
function any(n) { return int(rand() * n) + 1 }
BEGIN {
    srand(seed)
    for (i = 1; i <= lines; i++) {
        kind = any(10)
        if (kind <= 6)
            print "put name" any(500) " " any(100000)
        else if (kind == 7)
            print "next name" any(500)
        else
            print "drop name" any(500)
    }
}

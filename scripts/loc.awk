# The definitions that some functions need, themselves among them, without comments and blank lines:
# -v roots="create insert". Reads C as clang-format leaves it: what begins in the first column is a
# definition, and ends with a line that ends it there. Includes and prototypes are left out.

function strip_comments(line,    kept, at) {
    kept = ""
    while (line != "") {
        at = index(line, in_comment ? "*/" : "/*")
        if (!at) {
            if (!in_comment)
                kept = kept line
            break
        }
        if (!in_comment)
            kept = kept substr(line, 1, at - 1)
        line = substr(line, at + 2)
        in_comment = !in_comment
    }
    sub(/[ \t]+$/, "", kept)
    return kept
}

# What a definition defines: a function, the tag of a struct, the constants of an enum, a type.
function name(definition,    head) {
    if (definition ~ /^enum/) {
        sub(/^enum/, "", definition)
        gsub(/=[^,}]*/, "", definition)
        gsub(/[^A-Za-z0-9_]+/, " ", definition)
        return definition
    }
    if (definition ~ /^struct [A-Za-z0-9_]+ \{/) {
        split(definition, head, " ")
        return head[2]
    }
    if (definition ~ /^typedef/) {
        match(definition, /[A-Za-z0-9_]+;/)
        return substr(definition, RSTART, RLENGTH - 1)
    }
    gsub(/TOID\([^)]*\)/, "", definition)
    match(definition, /[A-Za-z0-9_]+\(/)
    return substr(definition, RSTART, RLENGTH - 1)
}

function need(word,    count, words, i) {
    if (!(word in defined) || defined[word] in needed)
        return
    needed[defined[word]]
    count = split(text[defined[word]], words, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= count; i++)
        need(words[i])
}

{
    line = strip_comments($0)
    if (line == "" || line ~ /^#/ || line ~ /^extern "C"/ || (line == "}" && !open))
        next
    open = 1
    current = current line "\n"
    if (line ~ /^}/ || line ~ /^[^ ].*;$/ || (line ~ /;$/ && current !~ /\{/)) {
        if (current !~ /\);\n$/ || current ~ /\{/)
            text[++definitions] = current
        current = ""
        open = 0
    }
}

END {
    for (i = 1; i <= definitions; i++) {
        count = split(name(text[i]), words, " ")
        for (j = 1; j <= count; j++)
            defined[words[j]] = i
    }
    count = split(roots, words, " ")
    for (i = 1; i <= count; i++)
        need(words[i])
    for (i = 1; i <= definitions; i++)
        if (i in needed)
            printf "%s", text[i]
}

"""The options that each program may be given, one a line; see ``options`` for the form."""

__all__ = ["TABLES"]

TABLES = {
    "rg": """
        -A --after-context NUMBER
        -B --before-context NUMBER
        -C --context NUMBER
        -c --count
        --count-matches
        --color never
        --column
        --no-column
        --context-separator TEXT
        --crlf
        --no-crlf
        -E --encoding WORD
        --engine default|pcre2|auto
        --field-context-separator TEXT
        --field-match-separator TEXT
        --files
        -l --files-with-matches
        --files-without-match
        -F --fixed-strings
        --no-fixed-strings
        -g --glob GLOB
        --iglob GLOB
        --glob-case-insensitive
        --heading
        --no-heading
        --hidden
        -i --ignore-case
        -v --invert-match
        --line-buffered
        --no-line-buffered
        --block-buffered
        -n --line-number
        -N --no-line-number
        -x --line-regexp
        -M --max-columns NUMBER
        --max-columns-preview
        -m --max-count NUMBER
        --max-depth NUMBER
        --mmap
        --no-mmap
        -U --multiline
        --no-multiline
        --multiline-dotall
        --no-config
        --no-ignore
        --no-messages
        --no-unicode
        -0 --null
        --null-data
        -o --only-matching
        --passthru
        -P --pcre2
        --no-pcre2
        -q --quiet
        -e --regexp TEXT
        -r --replace TEXT
        -s --case-sensitive
        -S --smart-case
        --sort path|none
        --sortr path
        -a --text
        --no-text
        --binary
        --trim
        -t --type WORD
        -T --type-not WORD
        -u --unrestricted
        --vimgrep
        -b --byte-offset
        -H --with-filename
        -I --no-filename
        -w --word-regexp
    """,
    "grep": """
        -E --extended-regexp
        -F --fixed-strings
        -G --basic-regexp
        -P --perl-regexp
        -e --regexp TEXT
        -i --ignore-case
        --no-ignore-case
        -y
        -v --invert-match
        -w --word-regexp
        -x --line-regexp
        -c --count
        --color never|auto
        --colour never|auto
        -L --files-without-match
        -l --files-with-matches
        -m --max-count NUMBER
        -o --only-matching
        -q --quiet
        --silent
        -s --no-messages
        -b --byte-offset
        -H --with-filename
        -h --no-filename
        --label TEXT
        -n --line-number
        -T --initial-tab
        -Z --null
        -z --null-data
        -A --after-context NUMBER
        -B --before-context NUMBER
        -C --context NUMBER
        --group-separator TEXT
        --no-group-separator
        -a --text
        --binary-files binary|text|without-match
        -I
        -D --devices skip
        -d --directories read|skip|recurse
        -r --recursive
        --include GLOB
        --exclude GLOB
        --exclude-dir GLOB
        --line-buffered
        -U --binary
    """,
    "head": """
        -c --bytes COUNT
        -n --lines COUNT
        -q --quiet
        --silent
        -v --verbose
        -z --zero-terminated
    """,
    "tail": """
        -c --bytes COUNT
        -n --lines COUNT
        -q --quiet
        --silent
        -v --verbose
        -z --zero-terminated
    """,
    "cut": """
        -b --bytes LIST
        -c --characters LIST
        -d --delimiter TEXT
        -f --fields LIST
        -n
        --complement
        -s --only-delimited
        --output-delimiter TEXT
        -z --zero-terminated
    """,
    "sort": """
        -b --ignore-leading-blanks
        -d --dictionary-order
        -f --ignore-case
        -g --general-numeric-sort
        -h --human-numeric-sort
        -i --ignore-nonprinting
        -M --month-sort
        -n --numeric-sort
        -r --reverse
        -V --version-sort
        -c
        -C
        -k --key KEY
        -m --merge
        -s --stable
        -t --field-separator TEXT
        -u --unique
        -z --zero-terminated
    """,
    "uniq": """
        -c --count
        -d --repeated
        -D
        -f --skip-fields NUMBER
        -i --ignore-case
        -s --skip-chars NUMBER
        -u --unique
        -w --check-chars NUMBER
        -z --zero-terminated
    """,
    "wc": """
        -c --bytes
        -m --chars
        -l --lines
        -L --max-line-length
        -w --words
    """,
    "tr": """
        -c --complement
        -C
        -d --delete
        -s --squeeze-repeats
        -t --truncate-set1
    """,
    "sed": """
        -n --quiet
        --silent
        -e --expression TEXT
        -E --regexp-extended
        -r
        -s --separate
        -u --unbuffered
        -z --null-data
        --posix
    """,
    "awk": """
        -F --field-separator TEXT
        -v --assign ASSIGNMENT
    """,
    "cat": """
        -A --show-all
        -b --number-nonblank
        -e
        -E --show-ends
        -n --number
        -s --squeeze-blank
        -t
        -T --show-tabs
        -u
        -v --show-nonprinting
    """,
    "nl": """
        -b --body-numbering TEXT
        -i --line-increment COUNT
        -n --number-format ln|rn|rz
        -s --number-separator TEXT
        -v --starting-line-number COUNT
        -w --number-width NUMBER
    """,
    "tac": """
        -b --before
        -r --regex
        -s --separator TEXT
    """,
    "ls": """
        -1
        -a --all
        -A --almost-all
        -p
        -F --classify
        -r --reverse
        -R --recursive
        -S
        -X
    """,
    "jq": """
        -r --raw-output
        -j --join-output
        -a --ascii-output
        -c --compact-output
        -s --slurp
        -S --sort-keys
        -n --null-input
        -R --raw-input
        -e --exit-status
        -M --monochrome-output
        --tab
    """,
}

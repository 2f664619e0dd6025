#!/bin/sh
# Build the wheel, look into it, install it in a new environment, and use it outside the checkout.
# Usage: sh tests/wheel.sh .venv/bin
set -eu
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/python" -m build --quiet --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log"
    exit 1
}
"$bin/check-wheel-contents" --toplevel seekgym "$work"/dist/*.whl
"$bin/python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --upgrade 'pip<26.2'
"$work/venv/bin/pip" install --quiet "$work"/dist/*.whl pytest
cp -r tests "$work/tests"
cd "$work"
venv/bin/seekgym bench --episodes 5 --out "$work/out"
test -s "$work/out/report.html"
venv/bin/python -P -m pytest -q --import-mode=importlib -p no:cacheprovider \
    tests/test_golden.py tests/test_reported.py tests/corpora/test_documents.py \
    tests/corpora/test_tasks.py

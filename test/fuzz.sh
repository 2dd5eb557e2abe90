#!/bin/sh
# Runs every fuzz test of the module for the given time each.
set -eu
time=${1:?usage: fuzz.sh DURATION}
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$(dirname "$file")"
	done
done

#!/bin/sh
# Runs every fuzz test of the module for the given time each.
set -eu
time=${1:?usage: fuzz.sh DURATION}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Up to Go 1.26 the end of the time is now and then reported as a failure
# (go.dev/issue/75804). An input that fails is always written down.
fuzz() {
	{
		status=0
		go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" "$2" 2>&1 || status=$?
		echo "$status" >"$work/status"
	} | tee "$work/output"
	if [ "$(cat "$work/status")" != 0 ]; then
		grep -qx '    context deadline exceeded' "$work/output"
		if grep -q -e 'Failing input' -e '^panic' -e '^fatal error' "$work/output"; then exit 1; fi
		echo "$1: nothing found in $time"
	fi
}

grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		fuzz "$name" "$(dirname "$file")"
	done
done

// Package bench measures cdcpub beside a reference, alternating on the same
// machine in one run, so that only ratios count. `make bench` runs it; nothing
// here is asserted.
package bench

// Package slots tests on real servers of every version that what goes wrong
// with a slot is seen, is told, and is taken back when it is cured: a real
// `cdcpub slot watch`, a webhook that notes when each alert arrives, and faults
// made by hand.
package slots

package verify_test

import (
	"slices"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// The definition of a correct order, as short as it can be said: the rows that
// the partition holds are numbered from 1; every record is at most one further
// than the one before it.
func correctOrder(topic []int) bool {
	held := slices.Clone(topic)
	slices.Sort(held)
	held = slices.Compact(held)
	previous := -1
	for _, number := range topic {
		rank := slices.Index(held, number)
		if rank > previous+1 {
			return false
		}
		previous = rank
	}
	return true
}

func startsOver(topic []int) int {
	n := 0
	for i := 1; i < len(topic); i++ {
		if topic[i] <= topic[i-1] {
			n++
		}
	}
	return n
}

// Every topic of up to seven records over four rows: 21844 of them.
func TestVerdictOnOrderIsTheDefinitionForEverySmallTopic(t *testing.T) {
	rows := history(4)
	var try func(numbers []int)
	try = func(numbers []int) {
		r := verify.Check(rows, topic(rows, numbers...), options())
		correct := correctOrder(numbers)
		if (r.OutOfOrder == 0) != correct {
			t.Fatalf("%v: correct order is %v, but %d violations", numbers, correct, r.OutOfOrder)
		}
		if r.VersionInverted > r.OutOfOrder {
			t.Fatalf("%v: %d versions inverted, but only %d out of order", numbers, r.VersionInverted, r.OutOfOrder)
		}
		if correct && r.Rewinds != startsOver(numbers) {
			t.Fatalf("%v: %d rewinds, want %d", numbers, r.Rewinds, startsOver(numbers))
		}
		if len(numbers) == 7 {
			return
		}
		for next := 1; next <= len(rows); next++ {
			try(append(slices.Clip(numbers), next))
		}
	}
	try(nil)
}

package slotview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/slotmon"
)

// nearest returns the slots of the sample whose names are most like name, the
// best first, three at most.
func nearest(name string, sample *slotmon.Sample) []string {
	names := make([]string, 0, len(sample.Slots))
	for i := range sample.Slots {
		names = append(names, sample.Slots[i].Name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	return names[:min(len(names), 3)]
}

// distance is how many bytes must be inserted, deleted or replaced to make b
// of a; a part of the other's name is nearer than that.
func distance(a, b string) int {
	if a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a)) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

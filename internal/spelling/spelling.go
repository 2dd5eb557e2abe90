// Package spelling tells how far two names are apart, so that a message about
// an unknown name can say what was probably meant.
package spelling

import "slices"

// Distance counts insertions, deletions, substitutions and transpositions of
// neighbours (optimal string alignment), in bytes.
func Distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(change, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// Sorted returns the names ordered by their distance from name, nearest first;
// equally near ones by themselves.
func Sorted(name string, names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	distance := make(map[string]int, len(sorted))
	for _, candidate := range sorted {
		distance[candidate] = Distance(name, candidate)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return distance[a] - distance[b] })
	return sorted
}

// Package badinput collects what a newcomer can do wrong, does it with the real
// program on real servers, and keeps the one sentence that comes of it in
// testdata/sentences.txt, so that all of them can be read as a whole. Each must
// name the thing, offer a cure, and be free of noise and secrets.
//
//	go test ./test/badinput -update
//
// writes the file anew.
package badinput

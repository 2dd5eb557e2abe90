//go:build release

package main

// demoCommands is empty: release builds have no servers of their own.
type demoCommands struct{}

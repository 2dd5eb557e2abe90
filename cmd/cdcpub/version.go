package main

import (
	"fmt"
	"runtime/debug"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version = ""

type versionCommand struct{}

// Help is shown below the flags' overview.
func (versionCommand) Help() string {
	return `A build without a version of its own shows the commit that it was built from.

Example:

    cdcpub version`
}

func (versionCommand) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, "cdcpub", buildVersion())
	return err
}

func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return info.Main.Version + revision + dirty + " " + info.GoVersion
}

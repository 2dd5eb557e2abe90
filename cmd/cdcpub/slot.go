package main

// slotCommand is everything about slots: it needs a server and no stream.
type slotCommand struct {
	slotViews   `embed:""`
	slotActions `embed:""`
	Watch       slotWatchCommand `cmd:"" help:"Watch all slots of one or more servers: alerts, metrics and status page, without publishing."`
}

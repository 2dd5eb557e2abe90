// Package slotview shows what is known of replication slots: the list and the
// status screen for a terminal, the same as JSON documents, and the line of a
// monitoring plugin. It judges nothing: verdicts and reasons come from package
// slotmon as they are shown.
//
// List and Status are the JSON documents; everything else is rendered from
// them, so no form says more than another. Rendering is pure: it has no clock,
// and what is said to be "ago" is so by the clock of the sample.
//
// Names of databases, applications and tables are chosen by whoever may create
// them. They are shown with control characters escaped, so that they can
// neither move the cursor of a terminal nor end the line of a plugin.
//
// The screen is at most 100 columns wide. What has to be typed or copied
// whole, a word of a command or the name of a slot, is never cut for that.
//
// Ask is the only function that touches the network: it asks a cdcpub what it
// is doing.
package slotview

// Package page is the status page of the admin server: a page to leave open on
// a wall.
//
//	GET /              the page
//	GET /page/...      its style and scripts, embedded
//	GET /page/now      what is true now, as JSON; made anew for each request
//	GET /page/history  the points of the last hour, as JSON; since=CURSOR asks
//	                   for those after an earlier answer only
//
// One goroutine, Run, takes a point every 10 seconds into a ring of 360. What it
// stores is ready to draw: rates and quantiles of the interval, not counters. A
// value that is not known is a gap, never zero and never the last one known: a
// counter that restarted, an interval without a record, a server that did not
// answer, a sample that is old.
//
// The two answers are the only interface between this package and the scripts.
// The words on the page are made here; the scripts lay them out, format
// numbers and draw. Every text reaches the document as a text node.
//
// The page must not show old data as if it were new. Three clocks guard that:
// a sample older than three intervals of the monitor makes the verdict unknown
// (here, see fresh); a poll that fails, and an answer that is older than a
// poll and the patience for an answer, make the page say so and take the colour
// from what is below (in app.js).
//
// What is shown as present comes from one answer of /page/now, and so from one
// sample of each server: the verdict, the headline, the cards, the tables, the
// large numbers of slots, and the end of the strip. The history is behind by up
// to a step and says only what was.
//
// Cards are the findings of the latest sample, whether or not their alerts are
// raised yet, each with its cause, cure and section of the runbook. An alert
// outlives its finding by the time that it takes to resolve: its card is then
// grey, last and without its cure, and counts for nothing. Only a fresh sample
// can say that a finding is gone; of a server that does not answer the last
// findings stand, as last seen.
//
// The verdict of the page is the worst of the servers' verdicts, the cards, the
// freshness of the samples, and the publisher's state: critical while it waits
// for a human, at least a warning while it is not ready. So the page is never
// calm while /readyz says no. The headline is the first card of that verdict;
// cards are ordered by severity, then our own slot, then what costs data.
package page

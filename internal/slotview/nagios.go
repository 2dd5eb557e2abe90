package slotview

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// Nagios writes the one line that monitoring plugins print: text, and behind a
// bar the performance data, 'label'=value[UOM];[warn];[crit];[min];[max]
// (Monitoring Plugins Development Guidelines, "Performance data"). A value
// that is not known is U. Limits on times that are left are ranges with a
// colon behind: an alert is below them.
func (s *Status) Nagios(w io.Writer) error {
	line := "CDCPUB SLOT " + strings.ToUpper(s.Verdict.String()) + " - " + plain(s.sentence())
	if data := s.performance(); len(data) > 0 {
		line += " | " + strings.Join(data, " ")
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// plain is text without what has a meaning in the line.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(human.Clean(text), "|", "/")), " ")
}

// sentence is the reasons, or what is good.
func (s *Status) sentence() string {
	if problems := s.problems(); len(problems) > 0 {
		return strings.Join(problems, "; ")
	}
	var reasons []string
	for _, finding := range s.Report.Findings {
		if finding.Severity != slotmon.Info && finding.Severity != slotmon.OK {
			reasons = append(reasons, finding.Summary)
		}
	}
	if len(reasons) > 0 {
		if s.Report.Culprit != "" {
			reasons = append(reasons, "culprit: "+s.Report.Culprit)
		}
		if len(s.Nearest) > 0 {
			reasons = append(reasons, "there are "+strings.Join(s.Nearest, ", "))
		}
		return s.Name + ": " + strings.Join(reasons, "; ")
	}
	var facts []string
	if s.Report.Culprit != "" {
		facts = append(facts, "note: "+s.Report.Culprit)
	}
	if s.Slot != nil && s.Slot.RetainedBytes != nil {
		facts = append(facts, "retains "+human.Bytes(*s.Slot.RetainedBytes)+" of WAL")
	}
	if s.Slot != nil && s.Slot.ConfirmedLagBytes != nil {
		facts = append(facts, "confirmed lag "+human.Bytes(*s.Slot.ConfirmedLagBytes))
	}
	if s.Slot != nil && s.Slot.Holder != nil {
		facts = append(facts, strings.TrimSpace(fmt.Sprintf("held by PID %d %s", s.Slot.Holder.PID, s.Slot.Holder.ApplicationName)))
	}
	return strings.TrimSuffix(s.Name+": "+strings.Join(facts, ", "), ": ")
}

// performance is the same set of values for every slot that exists, so that a
// graph shows a gap and not another graph.
func (s *Status) performance() []string {
	slot := s.Slot
	if slot == nil || s.Server == nil {
		return nil
	}
	l, r := s.Limits, s.Report
	data := []string{
		datum{label: "retained", unit: "B", value: ofInt(slot.RetainedBytes), warn: whole(l.RetainedWAL.Warning), crit: whole(l.RetainedWAL.Critical), least: "0"}.String(),
		datum{label: "lag", unit: "B", value: ofInt(slot.ConfirmedLagBytes)}.String(),
		datum{label: "decode_backlog", unit: "B", value: ofInt(s.DecodeBacklogBytes)}.String(),
		datum{label: "safe_wal_size", unit: "B", value: ofInt(slot.SafeWALSize)}.String(),
	}
	if limit := float64(s.Server.MaxSlotWALKeepSize); limit > 0 {
		share := datum{label: "retained_share", unit: "%", warn: percent(l.RetainedShare.Warning), crit: percent(l.RetainedShare.Critical), least: "0"}
		if slot.SafeWALSize != nil {
			share.value = decimal(100*max(0, 1-float64(*slot.SafeWALSize)/limit), 2)
		}
		data = append(data, share.String())
	}
	inactive := datum{label: "inactive", unit: "s", value: "0", warn: atMost(l.Inactive.Warning), crit: atMost(l.Inactive.Critical), least: "0"}
	switch {
	case slot.Active:
	case slot.InactiveSince == nil: // before 17 only a lower bound is known
		inactive.value = ""
	default:
		inactive.value = ofFloat(s.InactiveSeconds)
	}
	return append(data,
		datum{label: "time_to_lost", unit: "s", value: ofFloat(r.SecondsToLost), warn: atLeast(l.TimeToLost.Warning), crit: atLeast(l.TimeToLost.Critical), least: "0"}.String(),
		datum{label: "time_to_full", unit: "s", value: ofFloat(r.SecondsToFull), warn: atLeast(l.TimeToFull.Warning), crit: atLeast(l.TimeToFull.Critical), least: "0"}.String(),
		inactive.String(),
		datum{label: "catalog_xmin_age", value: ofInt(slot.CatalogXminAge), warn: whole(l.CatalogXminAge.Warning), crit: whole(l.CatalogXminAge.Critical), least: "0"}.String())
}

// datum is one value of the performance data, as text.
type datum struct{ label, unit, value, warn, crit, least string }

func (d datum) String() string {
	value := d.value + d.unit
	if d.value == "" {
		value = "U"
	}
	return strings.TrimRight(d.label+"="+value+";"+d.warn+";"+d.crit+";"+d.least, ";")
}

func ofInt(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func ofFloat(f *float64) string {
	if f == nil || math.IsInf(*f, 0) || math.IsNaN(*f) {
		return ""
	}
	return decimal(*f, 0)
}

func decimal(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }

// A threshold of 0 is off.
func whole(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func percent(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return strconv.FormatFloat(math.Round(ratio*1e4)/100, 'f', -1, 64)
}

func atMost(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

func atLeast(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return atMost(d) + ":"
}

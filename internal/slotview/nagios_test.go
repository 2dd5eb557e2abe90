package slotview

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/internal/golden"
	"github.com/cdcpub/cdcpub/slotmon"
)

// plugin is a line as a monitoring system takes it apart.
type plugin struct {
	status, text string
	data         map[string]measured
}

type measured struct {
	value                  *float64 // nil: U
	unit                   string
	warn, crit, least, top string
}

var (
	label     = regexp.MustCompile(`^('(?:[^']|'')+'|[^ '=]+)=`)
	quantity  = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)(s|us|ms|%|B|KB|MB|TB|c)?$`)
	threshold = regexp.MustCompile(`^(@?(-?[0-9.]+|~)?:?(-?[0-9.]+)?)?$`)
	number    = regexp.MustCompile(`^(-?[0-9.]+)?$`)
)

// parsePlugin follows the Monitoring Plugins Development Guidelines and shares
// nothing with what writes the line.
func parsePlugin(line string) (plugin, error) {
	p := plugin{data: map[string]measured{}}
	line, found := strings.CutSuffix(line, "\n")
	if !found || strings.ContainsAny(line, "\n\r") {
		return p, fmt.Errorf("not one line")
	}
	if len(line) > 4096 {
		return p, fmt.Errorf("%d bytes: more than NRPE takes", len(line))
	}
	text, data, hasData := strings.Cut(line, "|")
	head, rest, found := strings.Cut(text, " - ")
	service, status, _ := strings.Cut(head, "SLOT ")
	if !found || service != "CDCPUB " {
		return p, fmt.Errorf("no status in front")
	}
	p.status, p.text = status, strings.TrimSpace(rest)
	if !hasData {
		return p, nil
	}
	for data = strings.TrimSpace(data); data != ""; data = strings.TrimLeft(data, " ") {
		name := label.FindStringSubmatch(data)
		if name == nil {
			return p, fmt.Errorf("no label at %q", data)
		}
		data = data[len(name[0]):]
		var item string
		item, data, _ = strings.Cut(data, " ")
		m, err := parseMeasured(item)
		if err != nil {
			return p, fmt.Errorf("%s: %w", name[1], err)
		}
		if _, twice := p.data[name[1]]; twice {
			return p, fmt.Errorf("%s twice", name[1])
		}
		p.data[name[1]] = m
	}
	return p, nil
}

func parseMeasured(item string) (m measured, err error) {
	parts := strings.Split(item, ";")
	if len(parts) > 5 {
		return m, fmt.Errorf("%d fields", len(parts))
	}
	parts = append(parts, make([]string, 5-len(parts))...)
	if parts[0] != "U" {
		q := quantity.FindStringSubmatch(parts[0])
		if q == nil {
			return m, fmt.Errorf("%q is no value", parts[0])
		}
		value, err := strconv.ParseFloat(q[1], 64)
		if err != nil {
			return m, err
		}
		m.value, m.unit = &value, q[2]
	}
	for _, part := range parts[1:3] {
		if !threshold.MatchString(part) {
			return m, fmt.Errorf("%q is no threshold", part)
		}
	}
	for _, part := range parts[3:] {
		if !number.MatchString(part) {
			return m, fmt.Errorf("%q is no number", part)
		}
	}
	m.warn, m.crit, m.least, m.top = parts[1], parts[2], parts[3], parts[4]
	return m, nil
}

func nagios(t *testing.T, s *Status) string {
	t.Helper()
	return render(t, func(b *bytes.Buffer) error { return s.Nagios(b) })
}

func TestPluginLines(t *testing.T) {
	for name, status := range cases() {
		line := nagios(t, status)
		golden.Compare(t, name+".nagios", []byte(line))
		p, err := parsePlugin(line)
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, line)
			continue
		}
		if p.status != strings.ToUpper(status.Verdict.String()) || p.text == "" {
			t.Errorf("%s: %+v", name, p)
		}
		if (status.Slot != nil) != (len(p.data) > 0) {
			t.Errorf("%s: performance data %v", name, p.data)
		}
	}
}

func TestPerformanceDataHasValuesAndLimits(t *testing.T) {
	p, err := parsePlugin(nagios(t, stalled()))
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"retained":         "12884901888 B 10737418240 53687091200 0",
		"lag":              "11811160064 B   ",
		"decode_backlog":   "1073741824 B   ",
		"safe_wal_size":    "8589934592 B   ",
		"retained_share":   "60 % 75 90 0",
		"time_to_lost":     "2796 s 21600: 3600: 0",
		"time_to_full":     "27307 s 21600: 3600: 0",
		"inactive":         "0 s 120 600 0",
		"catalog_xmin_age": "1234  50000000 200000000 0",
	} {
		m, ok := p.data[label]
		if !ok || m.value == nil {
			t.Errorf("%s: no value", label)
			continue
		}
		if got := fmt.Sprintf("%v %s %s %s %s", strconv.FormatFloat(*m.value, 'f', -1, 64), m.unit, m.warn, m.crit, m.least); got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
}

// A graph of a slot that dies must not lose its series.
func TestTheSetOfValuesIsTheSameWhateverBecomesOfTheSlot(t *testing.T) {
	want, err := parsePlugin(nagios(t, healthy()))
	if err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]*Status{"stalled": stalled(), "dying": dying(), "lost": lost()} {
		got, err := parsePlugin(nagios(t, status))
		if err != nil {
			t.Fatal(err)
		}
		for label := range want.data {
			if _, ok := got.data[label]; !ok {
				t.Errorf("%s has no %s", name, label)
			}
		}
	}
}

func TestNoTextBreaksThePluginLineOrTheScreen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := func(label string) string {
			return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("|'=; \n\r\x1b\a\u202e\u00a0x"))), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, label)
		}
		s := healthy()
		slot, holder := *s.Slot, *s.Slot.Holder
		holder.ApplicationName, holder.Address, holder.User = text("application"), text("address"), text("user")
		slot.Holder, slot.Database, slot.Plugin = &holder, text("database"), text("plugin")
		s.Slot, s.ServerName = &slot, text("server")
		s.Report.Verdict, s.Verdict = slotmon.Warning, slotmon.Warning
		s.Report.Culprit = text("culprit")
		if rapid.Bool().Draw(rt, "reasons") {
			s.Report.Findings = []slotmon.Finding{{ID: "x", Severity: slotmon.Warning, Summary: text("summary"), Cause: text("cause"), Cure: text("cure")}}
		}
		var line, shown bytes.Buffer
		if err := s.Nagios(&line); err != nil {
			rt.Fatal(err)
		}
		if len(line.Bytes()) > 4096 {
			rt.Skip() // the text is longer than any that PostgreSQL has
		}
		p, err := parsePlugin(line.String())
		if err != nil || p.status != "WARNING" || len(p.data) != 9 {
			rt.Fatalf("%v %+v %q", err, p, line.String())
		}
		if err := s.Screen(&shown, Style{}); err != nil {
			rt.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(shown.String(), "\n"), "\n") {
			if strings.IndexFunc(line, unprintable) >= 0 || !utf8.ValidString(line) {
				rt.Fatalf("a control character: %q", line)
			}
		}
	})
}

package check

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// notOK are the results besides OK, as "fail id". skip stands for any number of
// skipped checks where it is among wanted.
func notOK(results []Result, wanted []string) []string {
	var found []string
	for _, r := range results {
		name := r.Status.String() + " " + r.ID
		if r.Status == Skip && !slices.Contains(wanted, name) && slices.Contains(wanted, "skip") {
			name = "skip"
		}
		if r.Status != OK && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

func TestJudge(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			facts := ready()
			fault.make(facts)
			results := Judge(facts)
			got, want := notOK(results, fault.want), slices.Clone(fault.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			var all strings.Builder
			for _, r := range results {
				all.WriteString(r.Found + "\n" + r.Cure + "\n" + strings.Join(r.Commands, "\n") + "\n")
			}
			for _, words := range fault.says {
				if !strings.Contains(all.String(), words) {
					t.Errorf("does not say %q:\n%s", words, all.String())
				}
			}
		})
	}
}

func TestEveryReportHasEveryCheckInOrderAndACureForWhatIsWrong(t *testing.T) {
	names := slices.Sorted(maps.Keys(faults))
	rapid.Check(t, func(t *rapid.T) {
		facts := ready()
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "faults") {
			apply(facts, faults[name].make)
		}
		report := NewReport(facts)
		var ids []string
		for _, r := range report.Checks {
			if len(ids) == 0 || ids[len(ids)-1] != r.ID {
				ids = append(ids, r.ID)
			}
			bad := r.Status == Warn || r.Status == Fail
			if bad != (r.Cure != "") || r.Found == "" || len(r.Commands) > 0 && !bad {
				t.Errorf("%+v", r)
			}
			if strings.ContainsAny(r.Found+r.Cure, "\n") || strings.Contains(r.Found+r.Cure, "%!") {
				t.Errorf("not one line of text: %+v", r)
			}
		}
		if !slices.Equal(ids, IDs()) {
			t.Errorf("the checks are %q", ids)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
	})
}

// apply makes a fault, unless an earlier one took away what it changes.
func apply(facts *Facts, fault func(*Facts)) {
	if facts.Postgres.Sample == nil || facts.Postgres.About == nil || facts.Postgres.Content == nil ||
		len(facts.outbox().Columns) < 8 || len(facts.Kafka.Brokers) == 0 || len(facts.Kafka.Topics) != 2 || facts.Kafka.Topics[0].Configs == nil {
		return
	}
	fault(facts)
}

func TestTopicsComeFromMapTemplateAndTypes(t *testing.T) {
	setup := ready().Setup
	setup.Route.Topics = map[string]string{"order": "orders"}
	for name, c := range map[string]struct {
		topic string
		types []string
		want  []string
		open  bool
	}{
		"map alone":                      {"", []string{"order"}, []string{"orders"}, false},
		"map and template":               {"e.{aggregate_type}", []string{"order", "customer"}, []string{"e.customer", "orders"}, true},
		"no type":                        {"e.{aggregate_type}", nil, []string{"orders"}, true},
		"fixed":                          {"events", []string{"customer"}, []string{"events", "orders"}, false},
		"of another column":              {"e.{event_type}", []string{"order", "customer"}, []string{"orders"}, true},
		"braces in the text of the name": {"e-{aggregate_type}-{aggregate_type}", []string{"a"}, []string{"e-a-a", "orders"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			setup.Route.Topic = c.topic
			wanted := setup.Wanted(c.types)
			if !slices.Equal(wanted.Topics, c.want) || wanted.Open != c.open {
				t.Errorf("%+v, want %q", wanted, c.want)
			}
		})
	}
	setup.Route.Topic = ""
	if wanted := setup.Wanted([]string{"customer"}); len(wanted.Illegal) != 1 {
		t.Errorf("a type without a topic: %+v", wanted)
	}
}

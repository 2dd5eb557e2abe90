package slotmon

import (
	"encoding/json"
	"testing"
)

func TestCriticalIsWorseThanUnknownAndInfoIsNothing(t *testing.T) {
	order := []Severity{OK, Warning, Unknown, Critical}
	for i, a := range order {
		for j, b := range order {
			if a.Worse(b) != (j > i) {
				t.Errorf("%s becomes worse by %s: %t", a, b, a.Worse(b))
			}
		}
		if a.Worse(Info) {
			t.Errorf("%s becomes worse by info", a)
		}
	}
}

func TestSeveritiesAreTextInJSON(t *testing.T) {
	all := []Severity{OK, Warning, Critical, Unknown, Info}
	text, err := json.Marshal(all)
	if err != nil || string(text) != `["ok","warning","critical","unknown","info"]` {
		t.Fatalf("%s, %v", text, err)
	}
	var back []Severity
	if err := json.Unmarshal(text, &back); err != nil || len(back) != len(all) || back[3] != Unknown {
		t.Fatalf("%v, %v", back, err)
	}
	if json.Unmarshal([]byte(`["dire"]`), &back) == nil {
		t.Fatal("dire is not a severity")
	}
}

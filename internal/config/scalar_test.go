package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSizeReadsUnitsAndPrintsExactly(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1000": 1000, "64MiB": 64 * MiB, "64 mib": 64 * MiB, "1kB": 1000, "1.5KiB": 1536, "1,024": 1024,
		"8EiB": 0, "-1": 0, "": 0, "MiB": 0, "1 apple": 0, "NaN": 0, "99999999999999999999": 0, ".5MiB": 0,
	} {
		var got Size
		err := got.UnmarshalText([]byte(text))
		if (err != nil) != (want == 0 && text != "0") || got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, err, want)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 1024: "1KiB", 1536: "1536", 8 * MiB: "8MiB", 3 << 40: "3TiB"} {
		if got := size.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
	}
}

func TestDurationNeedsAUnitAndPrintsShort(t *testing.T) {
	for text, want := range map[string]string{
		"10s": "10s", "90s": "1m30s", "60m": "1h", "1h0m5s": "1h0m5s", "10m": "10m", "0": "0s", "1500ms": "1.5s",
		"10": "", "-1s": "", "soon": "", "": "", "1.5": "", "100h": "100h", "20s": "20s",
	} {
		var d Duration
		err := d.UnmarshalText([]byte(text))
		if (err != nil) != (want == "") || err == nil && d.String() != want {
			t.Errorf("%q = %s, %v; want %q", text, d, err, want)
		}
	}
}

func TestRatioIsAPercentageOrAFraction(t *testing.T) {
	for text, want := range map[string]string{
		"75%": "75%", "0.75": "75%", "29%": "29%", "0.29": "29%", "7.5%": "7.5%", "0": "0%", "0%": "0%", "1": "100%",
		"100%": "100%", "0.000001": "0.0001%", "0.000001%": "0.000001%", "33.333333%": "33.333333%",
		"75": "", "1.5": "", "101%": "", "-1%": "", "": "", "%": "", "NaN": "", "1e-1": "", "0x1p-1": "", ".5": "", "75 %": "",
	} {
		var r Ratio
		err := r.UnmarshalText([]byte(text))
		if (err != nil) != (want == "") || err == nil && r.String() != want {
			t.Errorf("%q = %s, %v; want %q", text, r, err, want)
		}
	}
	var percent Ratio
	if err := percent.UnmarshalText([]byte("29%")); err != nil || percent != 0.29 {
		t.Errorf("29%% is %v, not 0.29", float64(percent))
	}
}

func TestCountIsAWholeNumber(t *testing.T) {
	for text, want := range map[string]Count{
		"0": 0, "50000000": 50_000_000, "50_000_000": 50_000_000,
		"": -1, "-1": -1, "1.0": -1, "_1": -1, "1_": -1, "1__0": -1, "50M": -1, "99999999999999999999": -1,
	} {
		c := Count(-1)
		err := c.UnmarshalText([]byte(text))
		if c != want || (err != nil) != (want == -1) {
			t.Errorf("%q = %d, %v; want %d", text, c, err, want)
		}
	}
}

func TestScalarsReadBackWhatTheyPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Int64Min(0).Draw(t, "size"))
		duration := Duration(rapid.Int64Range(0, int64(10000*time.Hour)).Draw(t, "duration"))
		table := Table{Schema: identifiers().Draw(t, "schema"), Name: identifiers().Draw(t, "name")}
		ratio := Ratio(float64(rapid.Int64Range(0, 1e6).Draw(t, "ratio")) / 1e6)
		var gotRatio Ratio
		if err := gotRatio.UnmarshalText([]byte(ratio.String())); err != nil || gotRatio != ratio {
			t.Errorf("%s read back as %s: %v", ratio, gotRatio, err)
		}
		var gotSize Size
		var gotDuration Duration
		var gotTable Table
		for _, err := range []error{
			gotSize.UnmarshalText([]byte(size.String())),
			gotDuration.UnmarshalText([]byte(duration.String())),
			gotTable.UnmarshalText([]byte(table.String())),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if gotSize != size || gotDuration != duration || gotTable != table {
			t.Errorf("%s %s %s read back as %s %s %s", size, duration, table, gotSize, gotDuration, gotTable)
		}
	})
}

func identifiers() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z_0-9$"., äß-]{1,30}`)
}

func TestTableFollowsSQL(t *testing.T) {
	for text, want := range map[string]Table{
		"public.outbox":            {"public", "outbox"},
		"Public.OutBox_1$":         {"public", "outbox_1$"},
		`"My Schema"."Out Box"`:    {"My Schema", "Out Box"},
		`"a.b"."c""d"`:             {"a.b", `c"d`},
		`größe.Ärger`:              {"größe", "Ärger"},
		`app."Outbox"`:             {"app", "Outbox"},
		"outbox":                   {},
		"":                         {},
		"a.":                       {},
		".b":                       {},
		"a.b.c":                    {},
		"a b.c":                    {},
		"1a.b":                     {},
		`"a".""`:                   {},
		`"a`:                       {},
		`"a"b.c`:                   {},
		"a." + string(make64('x')): {},
	} {
		var got Table
		err := got.UnmarshalText([]byte(text))
		if got != want || (err == nil) != (want != Table{}) {
			t.Errorf("%s = %#v, %v; want %#v", text, got, err, want)
		}
	}
}

func make64(b byte) []byte {
	long := make([]byte, 64)
	for i := range long {
		long[i] = b
	}
	return long
}

package human

import (
	"math"
	"testing"
	"time"
)

func TestQuantities(t *testing.T) {
	for got, want := range map[string]string{
		Bytes(int64(0)):             "0 B",
		Bytes(int64(1023)):          "1023 B",
		Bytes(int64(1024)):          "1 KiB",
		Bytes(int64(10_988_028)):    "10.5 MiB",
		Bytes(int64(-7_340_032)):    "-7 MiB",
		Bytes(1e30):                 "8 EiB",
		Bytes(int64(math.MinInt64)): "-8 EiB",
		BytesPerSecond(3_355_443.2): "3.2 MiB/s",
		BytesPerSecond(0.4):         "0 B/s",
		Seconds(-1):                 "0 s",
		Seconds(59.9):               "59 s",
		Seconds(60):                 "1 min",
		Seconds(4800):               "1 h 20 min",
		Seconds(86400):              "1 d",
		Seconds(90_000):             "1 d 1 h",
		Seconds(math.Inf(1)):        "more than a year",
		Percent(0.78):               "78 %",
		Percent(0.7519):             "75.2 %",
		Count(1_234_567):            "1,234,567",
		Count(-1234):                "-1,234",
		Plural(1, "row"):            "1 row",
		Plural(2000, "row"):         "2,000 rows",
		Moment(time.Unix(0, 0)):     "1970-01-01 00:00:00 UTC",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

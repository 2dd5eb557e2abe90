package scenarios

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// readyGrace is how long a stall lasts before /readyz says no.
const readyGrace = 10 * time.Second

type answer struct {
	code int // 0: none
	body string
}

// get asks the process that was started last.
func (s *stand) get(path string) answer {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + s.listen + path)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}
	}
	return answer{response.StatusCode, string(body)}
}

// document is the JSON of /status, as a script would read it.
type document struct {
	s     *stand
	value any
}

func (s *stand) status() document {
	s.t.Helper()
	reply := s.get("/status")
	d := document{s: s}
	if reply.code != http.StatusOK {
		s.t.Fatalf("/status answers %d %s", reply.code, reply.body)
	}
	if err := json.Unmarshal([]byte(reply.body), &d.value); err != nil {
		s.t.Fatalf("/status: %v\n%s", err, reply.body)
	}
	return d
}

// at follows keys, and numbers in lists; nil is what is not there.
func (d document) at(path ...string) any {
	value := d.value
	for _, key := range path {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(inner) {
				return nil
			}
			value = inner[i]
		default:
			return nil
		}
	}
	return value
}

func (d document) text(path ...string) string {
	text, _ := d.at(path...).(string)
	return text
}

func (d document) number(path ...string) float64 {
	number, ok := d.at(path...).(float64)
	if !ok {
		return -1
	}
	return number
}

func (d document) time(path ...string) time.Time {
	d.s.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, d.text(path...))
	if err != nil {
		d.s.t.Fatalf("%v of /status is no time: %v", path, err)
	}
	return at
}

// expect compares what stands at a path.
func (d document) expect(want any, path ...string) {
	d.s.t.Helper()
	if got := d.at(path...); got != want {
		d.s.t.Errorf("%v of /status is %v, want %v\n%v", path, got, want, d.value)
	}
}

func (s *stand) codes(livez, readyz int) {
	s.t.Helper()
	if live, ready := s.get("/livez"), s.get("/readyz"); live.code != livez || ready.code != readyz {
		s.t.Errorf("/livez %d, /readyz %d %q, want %d and %d", live.code, ready.code, ready.body, livez, readyz)
	}
}

func TestStatusIdleStreamingAndKafkaDown(t *testing.T) {
	s := newStand(t, options{kafka: proxied(t), http: true})
	p := s.run()

	s.until("the process is ready", func() bool { return s.get("/readyz").code == http.StatusOK })
	s.until("Kafka has answered", func() bool { return s.status().at("kafka", "connected") == true })
	s.codes(http.StatusOK, http.StatusOK)
	idle := s.status()
	idle.expect("streaming", "state")
	idle.expect("active", "role")
	idle.expect(true, "ready")
	idle.expect(nil, "stall")
	idle.expect(s.slot, "slot")
	idle.expect(s.slot, "publication")
	idle.expect(0.0, "in_flight", "records")
	idle.expect(0.0, "in_flight", "bytes")
	idle.expect(nil, "kafka", "partitions", "0")
	if lsn := idle.text("confirmed_lsn"); lsn == "" || lsn == "0/0" {
		t.Errorf("confirmed_lsn is %q", lsn)
	}

	s.load(20, 10)
	s.delivered()
	s.until("all is acknowledged", func() bool { return s.status().number("records_acknowledged") == 200 })
	streaming := s.status()
	streaming.expect("streaming", "state")
	streaming.expect(nil, "stall")
	streaming.expect(0.0, "in_flight", "records")
	s.codes(http.StatusOK, http.StatusOK)

	down := time.Now()
	s.kafka.Proxy(0).Cut()
	s.load(20, 10)
	s.until("everything is read and the stall is named", func() bool {
		now := s.status()
		return now.number("in_flight", "records") == 200 && now.at("stall", "cause") != nil
	})
	s.codes(http.StatusOK, http.StatusOK) // it may be over in a moment
	stalled := s.status()
	stalled.expect("streaming", "state")
	stalled.expect("active", "role")
	stalled.expect(false, "in_flight", "full")
	s.says(stalled.text("stall", "cause"), s.topic, "partition")
	partitions, _ := stalled.at("kafka", "partitions").([]any)
	queued := 0.0
	for i := range partitions {
		n := strconv.Itoa(i)
		queued += stalled.number("kafka", "partitions", n, "queued")
		stalled.expect(s.topic, "kafka", "partitions", n, "topic")
		if oldest := stalled.time("kafka", "partitions", n, "oldest_since"); oldest.Before(down) {
			t.Errorf("the oldest record of partition %d is from %s, before the outage", i, oldest)
		}
		if lsn := stalled.text("kafka", "partitions", n, "oldest_commit_lsn"); lsn == "" || lsn == "0/0" {
			t.Errorf("oldest_commit_lsn is %q", lsn)
		}
	}
	if queued != 200 {
		t.Errorf("%v records are queued in all partitions, want 200: %v", queued, partitions)
	}
	s.until("the process is not ready", func() bool { return s.get("/readyz").code == http.StatusServiceUnavailable })
	s.codes(http.StatusOK, http.StatusServiceUnavailable)
	late := s.status()
	late.expect(false, "ready")
	if since := late.time("stall", "since"); since.Before(down) || time.Since(since) < readyGrace {
		t.Errorf("not ready %s after stall.since; Kafka was cut off %s ago", time.Since(since), time.Since(down))
	}

	s.no(s.kafka.Proxy(0).Restore())
	s.delivered()
	s.until("the process is ready again", func() bool { return s.get("/readyz").code == http.StatusOK })
	s.until("nothing stalls", func() bool { return s.status().at("stall") == nil })
	s.status().expect(400.0, "records_acknowledged")
	s.stop(p)
	s.check(nil)
}

func TestStatusOfAStandby(t *testing.T) {
	parallel(t)
	s := newStand(t, options{http: true})
	active := s.run()
	s.load(10, 10)
	s.delivered()
	s.listen = s.freeAddress()
	standby := s.launch()
	s.awaitLog(standby, "standby")
	s.until("the standby is ready", func() bool { return s.get("/readyz").code == http.StatusOK })
	s.codes(http.StatusOK, http.StatusOK)
	waiting := s.status()
	waiting.expect("standby", "state")
	waiting.expect("standby", "role")
	waiting.expect(s.slot, "slot")
	waiting.expect(0.0, "in_flight", "records")
	s.says(waiting.text("stall", "cause"), s.slot, "in use")
	waiting.time("stall", "since")
	s.no(active.Kill9())
	s.awaitLog(standby, "resumed")
	s.load(10, 10)
	s.delivered()
	s.until("the standby has taken over", func() bool { return s.status().text("role") == "active" })
	s.status().expect("streaming", "state")
	s.codes(http.StatusOK, http.StatusOK)
	s.stop(standby)
	s.check(nil)
}

// blockedProcess is what a monitor sees of a stream that needs a human.
func (s *stand) blockedProcess(p *harness.Process) harness.LogLine {
	s.t.Helper()
	line := s.awaitLog(p, "blocked")
	s.until("the process is not ready", func() bool { return s.get("/readyz").code == http.StatusServiceUnavailable })
	s.codes(http.StatusOK, http.StatusServiceUnavailable)
	blocked := s.status()
	blocked.expect("blocked", "state")
	blocked.expect("standby", "role")
	if cause := blocked.text("stall", "cause"); cause != line["error"] {
		s.t.Errorf("/status says %q, the log %q", cause, line["error"])
	}
	return line
}

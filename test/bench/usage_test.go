package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

// clockTick is the unit of times in /proc/PID/stat, USER_HZ, which is 100 on
// every Linux.
const clockTick = 10 * time.Millisecond

// cpuOf is the processor time that a process has used, 0 if it is gone.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses, which may contain blanks.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 11, 12 // fields 14 and 15 of proc(5)
	user, _ := strconv.Atoi(string(fields[utime]))
	system, _ := strconv.Atoi(string(fields[stime]))
	return time.Duration(user+system) * clockTick
}

// peakOf is the largest resident memory of a process so far in bytes, 0 if it
// is gone.
func peakOf(pid int) int64 {
	peak, _ := harness.PeakMemory(pid)
	return peak
}

// walsender follows the processor time of whoever serves a slot, which is gone
// when its reader is.
type walsender struct {
	stop context.CancelFunc
	done sync.WaitGroup
	used time.Duration // valid after end
}

const usageSample = 50 * time.Millisecond

func followWalsender(b *testing.B, url, slot string) *walsender {
	ctx, cancel := context.WithCancel(b.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	w := &walsender{stop: cancel}
	w.done.Go(func() {
		defer conn.Close(context.Background())
		ticker := time.NewTicker(usageSample)
		defer ticker.Stop()
		for pid := 0; ; {
			if pid == 0 {
				_ = conn.QueryRow(ctx, "SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1 AND active", slot).Scan(&pid)
			}
			w.used = max(w.used, cpuOf(pid))
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

// end stops following and returns the time used.
func (w *walsender) end() time.Duration {
	w.stop()
	w.done.Wait()
	return w.used
}

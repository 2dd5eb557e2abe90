package harness

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// fullAt is the size beyond which no file of a broker with a full disk grows.
const fullAt = 4096

// FillDisk makes broker i's disk full: no write gets beyond the first bytes of
// a file, its own log included. Kafka gives a log directory up at its first
// failed write, and with its only one itself. FillDisk waits for that end. Start
// gives the broker room again.
func (c *Cluster) FillDisk(ctx context.Context, i int) error {
	child, err := c.child(i)
	if err != nil {
		return err
	}
	// A limit of the process serves where no file system can be mounted.
	limit := exec.CommandContext(ctx, "prlimit", "--pid", strconv.Itoa(child.PID()), fmt.Sprintf("--fsize=%d:", fullAt))
	if out, err := limit.CombinedOutput(); err != nil {
		return fmt.Errorf("limit the files of Kafka broker %d (prlimit is in util-linux): %w: %s", i, err, out)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-child.Gone():
		if !child.State().Exited() {
			return fmt.Errorf("Kafka broker %d did not end by itself: %v", i, child.State())
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("Kafka broker %d still runs %v after its disk was full; the end of its log:\n%s",
			i, stopTimeout, pgserver.Tail(c.nodes[i].log, 20))
	}
}

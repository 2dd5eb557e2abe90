package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

// systemdInterval is how often systemd hears of us, unless WatchdogSec= wants
// it more often.
const systemdInterval = time.Second

// tellSystemd speaks sd_notify(3) until ctx ends, if systemd started us with
// Type=notify: that we are ready, what we are doing, and that we are alive.
// A standby is ready. Alive is who can say what it is doing: if the publisher
// hangs so does this, and WatchdogSec= ends the process.
func (s *service) tellSystemd(ctx context.Context, log *zap.Logger) {
	wanted, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served", zap.String("event", "systemd"), zap.Error(err))
	}
	told, err := daemon.SdNotify(false, daemon.SdNotifyReady)
	if err != nil {
		log.Warn("systemd was not told that the process is ready; see NotifyAccess= and Type= of the unit", zap.String("event", "systemd"), zap.Error(err))
	}
	if !told {
		return
	}
	interval := systemdInterval
	if wanted > 0 {
		interval = min(interval, wanted/3)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		status := s.publisher.Status()
		words := daemon.SdNotifyWatchdog + "\nSTATUS=" + inWords(&status)
		if status.State == publisher.Draining || status.State == publisher.Stopped {
			words += "\n" + daemon.SdNotifyStopping
		}
		_, _ = daemon.SdNotify(false, words) // systemd may be gone: then nobody asks
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
			return
		}
	}
}

// inWords is one line for `systemctl status`.
func inWords(s *publisher.Status) string {
	line := fmt.Sprintf("%s, slot %s", s.State, s.Slot)
	if s.ConfirmedLSN != "" {
		line += ", confirmed " + s.ConfirmedLSN
	}
	if s.Stall != nil {
		line += fmt.Sprintf("; stalled since %s: %s", s.Stall.Since.UTC().Format(time.RFC3339), human.OneLine(s.Stall.Cause))
	}
	return line
}

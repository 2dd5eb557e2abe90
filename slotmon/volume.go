package slotmon

import (
	"context"
	"fmt"
	"time"
)

// VolumeSource says how the volume of pg_wal is measured: by the command if
// there is one, else by the size if there is one, else by asking the file
// system, which needs the server to be on this machine. A source that fails is
// not replaced by the next one: nobody would notice.
type VolumeSource struct {
	// SizeBytes is the size of the volume. It makes sense only for a volume
	// that holds pg_wal and nothing else: what pg_wal does not use counts as
	// free.
	SizeBytes int64
	// FreeCommand is a program and its arguments. It prints the number of free
	// bytes, a decimal integer and nothing else.
	FreeCommand []string
	// Timeout bounds the command; 0 is 5 s.
	Timeout time.Duration
}

// measures tells if pg_wal itself is to be looked at.
func (v VolumeSource) measures() bool { return len(v.FreeCommand) == 0 && v.SizeBytes == 0 }

const howToTell = "; configure slot_monitor.volume.free_command or slot_monitor.volume.size"

// Look measures the volume. pgWAL is the server's own pg_wal on this machine,
// empty if there is none that could be proven to be, and why then says what
// stands against it. walDirectoryBytes is the size of pg_wal as the server says,
// nil if unknown. What cannot be known is never guessed: Volume.Unknown says
// why.
func (v VolumeSource) Look(ctx context.Context, pgWAL, why string, walDirectoryBytes *int64) Volume {
	switch {
	case len(v.FreeCommand) > 0:
		free, err := v.ask(ctx)
		if err != nil {
			return Volume{Source: "command", Unknown: fmt.Sprintf("the command %s %v", v.FreeCommand[0], err)}
		}
		return Volume{Source: "command", FreeBytes: &free}
	case v.SizeBytes > 0:
		return v.subtract(walDirectoryBytes)
	case pgWAL == "":
		return Volume{Unknown: why + howToTell}
	}
	free, size, err := statfs(pgWAL)
	if err != nil {
		return Volume{Unknown: fmt.Sprintf("statfs %s: %v", pgWAL, err) + howToTell}
	}
	return Volume{Source: "statfs " + pgWAL, FreeBytes: &free, SizeBytes: &size}
}

// subtract counts on the whole volume being for pg_wal. Where pg_wal is larger
// than that the configured size is wrong or everything is used up. Nobody can
// tell from here which, and only to say that nothing is free is safe.
func (v VolumeSource) subtract(walDirectoryBytes *int64) Volume {
	volume := Volume{Source: "configured size of a volume for pg_wal alone", SizeBytes: &v.SizeBytes}
	if walDirectoryBytes == nil {
		volume.Unknown = "the role may not see the size of pg_wal, which is to be subtracted from slot_monitor.volume.size: grant it pg_monitor"
		return volume
	}
	free := v.SizeBytes - *walDirectoryBytes
	if free < 0 {
		free = 0
		volume.Source += ", which pg_wal exceeds"
	}
	volume.FreeBytes = &free
	return volume
}

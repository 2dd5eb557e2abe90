package pgserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Options describe a server. The zero value is a server of the newest version
// on the machine with its data in a temporary directory.
type Options struct {
	// Version is as for Find. Ignored if Installation is set.
	Version string
	// Installation, if set, is used instead of a search.
	Installation Installation
	// Dir holds the data (Dir/data) and the log (Dir/postgres.log). An empty
	// Dir means a temporary one, which Close removes, as does the guard when
	// the process dies. A Dir that was given is kept, and a cluster that is in
	// it already is used.
	Dir string
	// Port is the TCP port on 127.0.0.1; 0 chooses a free one.
	Port int
	// Settings are server settings such as max_slot_wal_keep_size: "1GB". They
	// are written to a file, so ALTER SYSTEM can override them. wal_level is
	// logical unless set here.
	Settings map[string]string
	// Files are written into the data directory before each start, by name:
	// certificates, or pg_hba.conf. Only the server can read them.
	Files map[string]string
	// Password of the superuser postgres. If it is empty every user may
	// connect without one; if not, with SCRAM-SHA-256. It applies to new
	// clusters.
	Password string
	// Durable keeps fsync and full_page_writes on. Without them data survives
	// every end of the server, but not one of the machine.
	Durable bool
	// Progress, if set, gets a line before a download.
	Progress func(line string)
}

// settingsFile is included by postgresql.conf and written anew at each Start.
const settingsFile = "cdcpub.conf"

// config renders the settings file.
func (o Options) config(port int) string {
	settings := map[string]string{
		"wal_level":               "logical",
		"max_wal_senders":         "20",
		"max_replication_slots":   "20",
		"unix_socket_directories": "",
	}
	if !o.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, o.Settings)
	settings["listen_addresses"] = "127.0.0.1"
	settings["port"] = strconv.Itoa(port)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	return b.String()
}

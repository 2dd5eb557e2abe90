package config

import (
	"maps"
	"slices"
)

// OnPoison is what happens to a row that can never be published.
type OnPoison string

// OnPoisonStop stands still until a human has acted.
const OnPoisonStop OnPoison = "stop"

// OnStop is what happens to the process when a human must act.
type OnStop string

// The values of OnStop.
const (
	OnStopStay OnStop = "stay"
	OnStopExit OnStop = "exit"
)

// Preset is a set of defaults for the outbox columns.
type Preset string

// The values of Preset.
const (
	PresetNone     Preset = ""
	PresetDebezium Preset = "debezium"
)

// Compression is the codec of the record batches.
type Compression string

// The values of Compression.
const (
	CompressionNone   Compression = "none"
	CompressionGzip   Compression = "gzip"
	CompressionSnappy Compression = "snappy"
	CompressionLZ4    Compression = "lz4"
	CompressionZstd   Compression = "zstd"
)

// Level is the lowest level that is logged.
type Level string

// The values of Level.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Format is the form of the log's lines.
type Format string

// The values of Format.
const (
	FormatJSON    Format = "json"
	FormatConsole Format = "console"
)

// Header is one record header and the outbox column of its value.
type Header struct {
	Name   string
	Column string
}

// Headers are record headers in the order in which they are written.
type Headers []Header

func (h *Headers) put(name, column string) { *h = append(*h, Header{Name: name, Column: column}) }

func (h *Headers) entries() []entry {
	entries := make([]entry, 0, len(*h))
	for _, header := range *h {
		entries = append(entries, entry{key: header.Name, value: header.Column})
	}
	return entries
}

// Topics maps an aggregate type to its topic.
type Topics map[string]string

func (t *Topics) put(aggregateType, topic string) { put(t, aggregateType, topic) }

func (t *Topics) entries() []entry { return sortedEntries(*t) }

// BrokerDefault is a replication factor that the brokers choose (KIP-464).
const BrokerDefault = -1

// TopicConfigs maps a setting of a topic to its value.
type TopicConfigs map[string]string

func (t *TopicConfigs) put(name, value string) { put(t, name, value) }

func (t *TopicConfigs) entries() []entry { return sortedEntries(*t) }

// mapping is a setting whose keys the user chooses.
type mapping interface {
	// put adds an entry. The caller takes care that keys are unique.
	put(key, value string)
	// entries lists them in the order of printing.
	entries() []entry
}

type entry struct{ key, value string }

func put[M ~map[string]string](m *M, key, value string) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

func sortedEntries[M ~map[string]string](m M) []entry {
	entries := make([]entry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		entries = append(entries, entry{key: key, value: m[key]})
	}
	return entries
}

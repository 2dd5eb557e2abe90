package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Validate reports everything that is wrong with the values, as a *Problems.
// It changes nothing and looks at nothing else: whether files, tables or
// brokers exist shows when they are used. Load has called it already.
func (c *Config) Validate() error {
	v := validator{cfg: c}
	v.run()
	return asError(v.problems)
}

type validator struct {
	cfg *Config
	// failed has paths that are reported already; rules about them are silent.
	failed map[string]bool
	// unread says that a part of the file is unknown: nothing counts as missing.
	unread   bool
	problems []Problem
}

func (v *validator) run() {
	v.postgres(&v.cfg.Postgres)
	v.outbox(&v.cfg.Outbox)
	v.kafka(&v.cfg.Kafka)
	v.tls(&v.cfg.Kafka.TLS)
	v.sasl(&v.cfg.Kafka.SASL)
	v.createTopics(&v.cfg.Kafka.CreateTopics)
	v.process(v.cfg)
	v.slotMonitor(&v.cfg.SlotMonitor)
}

// fail reports a problem of path, unless a rule looked at a value that could
// not be read: path itself, or one of those involved.
func (v *validator) fail(path, message string, involved ...string) {
	for failed := range v.failed {
		for _, p := range append(involved, path) {
			if within(p, failed) || within(failed, p) {
				return
			}
		}
	}
	v.problems = append(v.problems, Problem{Origin: v.cfg.origin(path), Path: path, Message: message})
}

// required reports a missing value. Everything that is required is the
// stream's; what slots need is in serverToWatch.
func (v *validator) required(path string, missing bool, example string) bool {
	if missing && !v.unread && v.cfg.need == NeedStream {
		v.fail(path, "is required, for example "+v.example(path, example))
	}
	return !missing
}

// example shows how to state a value: in the file, or without one as a variable.
func (v *validator) example(path, value string) string {
	if v.cfg.file == "" {
		return envName(path) + "=" + strings.Trim(value, "[]")
	}
	return value
}

// oneOf reports a value that is not in the list.
func oneOf[T ~string](v *validator, path string, value T, allowed ...T) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	var names []string
	for _, a := range allowed {
		if a != "" {
			names = append(names, string(a))
		}
	}
	message := fmt.Sprintf("%q is not known; allowed: %s", value, strings.Join(names, ", "))
	if near := nearest(string(value), names); near != "" {
		message += fmt.Sprintf("; did you mean %s?", near)
	}
	v.fail(path, message)
	return false
}

// between reports a duration outside its limits.
func (v *validator) between(path string, d, least, most Duration) {
	if d < least || d > most {
		v.fail(path, fmt.Sprintf("%s is not from %s to %s", d, least, most))
	}
}

// process checks what belongs to the process as a whole.
func (v *validator) process(c *Config) {
	if c.Window.Records < 1 {
		v.fail("window.records", "must be at least 1")
	}
	if c.Window.Bytes < 64*KiB {
		v.fail("window.bytes", fmt.Sprintf("must be at least %s", 64*KiB))
	}
	oneOf(v, "on_poison", c.OnPoison, OnPoisonStop)
	oneOf(v, "on_stop", c.OnStop, OnStopStay, OnStopExit)
	v.between("shutdown_timeout", c.ShutdownTimeout, Duration(100*time.Millisecond), Duration(time.Hour))
	v.http(c.HTTP)
	oneOf(v, "log.level", c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError)
	oneOf(v, "log.format", c.Log.Format, FormatJSON, FormatConsole)
}

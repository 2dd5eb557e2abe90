package notify

import (
	"context"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Log is the sink that writes one line for each state of an alert: critical as
// an error, warning as a warning, resolved as information. The fields are
// event, always "alert", and status, alert, severity, server, slot, since,
// summary, cause and cure.
type Log struct{ log *zap.Logger }

// NewLog returns the sink that writes to log.
func NewLog(log *zap.Logger) *Log { return &Log{log} }

// Name implements Sink.
func (l *Log) Name() string { return "log" }

// Send implements Sink. It does not fail.
func (l *Log) Send(_ context.Context, alerts []slotmon.Alert) error {
	for i := range alerts {
		a := &alerts[i]
		fields := []zap.Field{
			zap.String("event", "alert"), zap.String("status", statusOf(a)),
			zap.String("alert", string(a.ID)), zap.Stringer("severity", a.Severity),
			zap.String("server", a.Server), zap.String("slot", a.Slot), zap.Time("since", a.Since),
			zap.String("summary", a.Summary), zap.String("cause", a.Cause), zap.String("cure", a.Cure),
		}
		if !a.Resolved.IsZero() {
			fields = append(fields, zap.Time("resolved", a.Resolved))
		}
		l.log.Log(level(a), "alert "+statusOf(a), fields...)
	}
	return nil
}

func level(a *slotmon.Alert) zapcore.Level {
	switch {
	case !a.Resolved.IsZero():
		return zapcore.InfoLevel
	case a.Severity == slotmon.Critical:
		return zapcore.ErrorLevel
	default:
		return zapcore.WarnLevel
	}
}

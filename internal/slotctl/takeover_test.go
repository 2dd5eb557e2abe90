package slotctl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTakeoverEndsOnlyTheHolderThatItWasShown(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		if slot, err := CheckTakeover(s.Context(), s.conn, name, []string{"cdcpub"}); err != nil || slot.Active {
			s.Fatal(slot, err)
		}
		pid, release := s.hold(name, "debezium", false)
		_, err := CheckTakeover(s.Context(), s.conn, name, []string{"cdcpub"})
		refused[*RefusedError](s.T, err, pidText(pid), `"debezium"`, "not a cdcpub", `--from "debezium"`)

		slot, err := CheckTakeover(s.Context(), s.conn, name, []string{"cdcpub", "debezium"})
		if err != nil || slot.Holder.PID != pid {
			s.Fatal(slot, err)
		}
		// While a human thinks, the holder goes and another comes.
		release()
		s.free(name, pid)
		refused[*HolderChangedError](s.T, End(s.Context(), s.conn, name, slot.Holder), "nobody holds it now", "nobody was ended")
		successor, _ := s.hold(name, "debezium", false)
		refused[*HolderChangedError](s.T, End(s.Context(), s.conn, name, slot.Holder), pidText(successor), "nobody was ended")
		other := *slot.Holder
		other.PID, other.ApplicationName = successor, "cdcpub" // a pid that was used again
		refused[*HolderChangedError](s.T, End(s.Context(), s.conn, name, &other), `"debezium"`)
		if now := s.find(name); !now.Active || now.Holder.PID != successor {
			s.Fatalf("the successor was ended: %+v", now)
		}

		if err := End(s.Context(), s.conn, name, s.find(name).Holder); err != nil {
			s.Fatal(err)
		}
		s.free(name, successor)
	})
}

func TestAwaitReleaseReportsTheNextHolder(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		pid, _ := s.hold(name, "cdcpub", false)
		ctx, cancel := context.WithTimeoutCause(s.Context(), time.Second, errors.New("time is over"))
		defer cancel()
		conn := connectTo(s.T, s.server.URL(s.database))
		if _, err := AwaitRelease(ctx, conn, name, pid); err == nil || err.Error() != "time is over" {
			s.Errorf("while it is held: %v", err)
		}
		slot, err := AwaitRelease(s.Context(), s.conn, name, pid+1)
		if err != nil || slot.Holder == nil || slot.Holder.PID != pid {
			s.Errorf("held by another: %+v, %v", slot, err)
		}
	})
}

func TestTakeoverWithoutTheRightSaysWhichOneIsMissing(t *testing.T) {
	on(t, []string{"15", "18"}, func(s *stand) {
		name := s.slot()
		role := s.role("REPLICATION")
		user := role.Config().User
		s.hold(name, "cdcpub", false)
		slot := s.find(name)
		err := End(s.Context(), role, name, slot.Holder)
		refused[*RightsError](s.T, err, "end pid", "belongs to a superuser")

		owner := "owner_" + strings.TrimPrefix(s.database, "db_")
		s.exec("CREATE ROLE " + owner + " LOGIN REPLICATION")
		defer s.exec("DROP ROLE " + owner)
		if err := End(s.Context(), s.conn, name, slot.Holder); err != nil {
			s.Fatal(err)
		}
		s.free(name, slot.Holder.PID)
		config := s.config()
		config.User = owner
		stream, err := openStream(s.Context(), config, name, []string{"pub"})
		if err != nil {
			s.Fatal(err)
		}
		defer stream.close()
		err = End(s.Context(), role, name, s.find(name).Holder)
		refused[*RightsError](s.T, err, "end pid", "GRANT pg_signal_backend TO \""+user+"\"")
		s.exec("GRANT pg_signal_backend TO " + user)
		if err := End(s.Context(), role, name, s.find(name).Holder); err != nil {
			s.Fatal(err)
		}
		s.free(name, stream.pid())
		// The server may have noted it before the process was gone.
		s.exec("REVOKE pg_signal_backend FROM " + user)
	})
}

package main

import (
	"context"
	"errors"
	"sync"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// sample takes one sample on a connection of its own. The error is one of
// connect's.
func (s *sqlServer) sample(ctx context.Context, question slotmon.Question) (*slotmon.Sample, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer closeConn(conn)
	ctx, cancel := s.bound(ctx)
	defer cancel()
	sample, err := slotmon.Read(ctx, conn, question)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return sample, nil
}

// sampleWithout is sample with errors that do not name the server again.
func (s *sqlServer) sampleWithout(ctx context.Context, question slotmon.Question) (*slotmon.Sample, error) {
	sample, err := s.sample(ctx, question)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	return sample, nil
}

// question is what a sample of the server should hold: with ours, also what
// concerns the configured slot.
func (s *slotServer) question(ours bool) slotmon.Question {
	q := slotmon.Question{Volume: volumeOf(&s.config.SlotMonitor)}
	if ours && s.config.Postgres.Publication != "" {
		q.Expected = expectedOf(s.config, s.database)
	}
	return q
}

// standbys are the servers of slot_monitor.standbys.
func standbys(c *config.Config) ([]*sqlServer, error) {
	return standbysAt(c, c.SlotMonitor.Standbys, "slot_monitor.standbys")
}

// standbysAt are standbys of the server of postgres.url. stated says where the
// connection strings come from.
func standbysAt(c *config.Config, urls []config.ConnString, stated string) ([]*sqlServer, error) {
	servers := make([]*sqlServer, len(urls))
	for i, url := range urls {
		var err error
		if servers[i], err = standbyServer(c, url, stated); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// askStandbys asks all standbys of the primary at once for the slot.
func askStandbys(ctx context.Context, servers []*sqlServer, primary *slotmon.Sample, slot string) []slotmon.Standby {
	answers := make([]slotmon.Standby, len(servers))
	var asked sync.WaitGroup
	for i, server := range servers {
		answers[i].Address = server.name
		asked.Go(func() {
			sample, err := server.sample(ctx, slotmon.Question{})
			if err != nil {
				answers[i].Unreachable = reason(err)
				return
			}
			answers[i] = slotmon.StandbyAt(server.name, primary, sample, slot)
		})
	}
	asked.Wait()
	return answers
}

// reason is an error without the name of the server.
func reason(err error) string {
	var failed *serverError
	if errors.As(err, &failed) {
		return failed.reason()
	}
	return human.OneLine(err.Error())
}

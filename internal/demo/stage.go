package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
)

// stage is what the demo runs on: a database with an outbox, a topic, and the
// publisher's configuration for the two.
type stage struct {
	database *database
	broker   *broker
	config   *config.Config
}

// open makes the stage, both halves at the same time. It gives up when ctx ends
// or stop is closed. On an error nothing is left.
func open(ctx context.Context, o Options, stop <-chan struct{}) (*stage, error) {
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-stop:
			cancel(errInterrupted)
		case <-opening.Done():
		}
	}()
	fmt.Fprintln(o.Notes, beginning(o))
	s := &stage{}
	var halves sync.WaitGroup
	var databaseErr, brokerErr error
	halves.Go(func() {
		if s.database, databaseErr = openDatabase(opening, o); databaseErr != nil {
			cancel(databaseErr)
		}
	})
	halves.Go(func() {
		if s.broker, brokerErr = openBroker(opening, o); brokerErr != nil {
			cancel(brokerErr)
		}
	})
	halves.Wait()
	if databaseErr == nil && brokerErr == nil {
		s.config = configuration(o, s.database, s.broker)
		if err := s.config.Validate(); err != nil {
			return nil, errors.Join(err, s.close())
		}
		return s, nil
	}
	// The cause is the first error; the other half ended because of it.
	return nil, errors.Join(context.Cause(opening), s.close())
}

// beginning is the first line that a user sees.
func beginning(o Options) string {
	postgres, kafka := "a PostgreSQL server", "a Kafka broker"
	if o.Postgres != "" {
		postgres = "schema " + objectName + " on your PostgreSQL server"
	}
	if len(o.Brokers) > 0 {
		kafka = "topic " + sharedTopic + " on your Kafka"
	}
	return "Preparing " + postgres + " and " + kafka + " ..."
}

// configuration is the default one, but for where things are.
func configuration(o Options, d *database, b *broker) *config.Config {
	c := config.Default()
	c.Postgres.URL = d.url
	c.Postgres.Slot, c.Postgres.Publication = objectName, objectName
	c.Outbox.Tables = []config.Table{{Schema: objectName, Name: "outbox"}}
	c.Kafka.Brokers = b.addresses
	c.Kafka.Topic = b.topic
	c.HTTP.Listen, c.HTTP.Advertise = o.Listen, ""
	return c
}

// closeLimit bounds the removal of what was created on servers of the user.
const closeLimit = 15 * time.Second

// close removes what was created. It does not heed an interrupt: it is short,
// and what it removes would be in the user's way.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var errs []error
	if s.broker != nil {
		errs = append(errs, s.broker.close(ctx))
	}
	if s.database != nil {
		errs = append(errs, s.database.close(ctx))
	}
	return errors.Join(errs...)
}

// introduce says what runs where.
func (s *stage) introduce(to io.Writer, took time.Duration) {
	line := func(name, what string) { fmt.Fprintf(to, "%-18s%s\n", name, what) }
	line("PostgreSQL "+s.database.version, s.database.describe())
	line("Kafka", fmt.Sprintf("%s, topic %s, partitions: %d", s.broker.description, s.broker.topic, s.broker.partitions))
	status := ""
	if s.config.HTTP.Listen != "" {
		status = ", status page http://" + s.config.HTTP.Listen + "/"
	}
	line("cdcpub", fmt.Sprintf("slot %s, publication %s%s", objectName, objectName, status))
	fmt.Fprintf(to, "Ready after %.1f s. Records as a consumer gets them, topic[partition]@offset key headers value; Ctrl-C stops.\n\n", took.Seconds())
}

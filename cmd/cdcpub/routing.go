package main

import (
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/router"
)

// routing says how rows become records.
func routing(c *config.Config) router.Config {
	columns := c.Outbox.Columns
	column := func(name string) router.Column {
		return router.Column{Name: name, Optional: columns.Optional(name)}
	}
	headers := make([]router.HeaderColumn, 0, len(c.Outbox.Headers))
	for _, h := range c.Outbox.Headers {
		headers = append(headers, router.HeaderColumn{
			Header: h.Name, Column: column(h.Column), OmitNull: h.Column == columns.SchemaVersion,
		})
	}
	return router.Config{
		Columns: router.Columns{
			EventID: column(columns.EventID), AggregateType: column(columns.AggregateType),
			AggregateID: column(columns.AggregateID), Payload: column(columns.Payload),
			Headers: column(columns.Headers), Timestamp: column(columns.Timestamp),
			OccurredAt: column(columns.OccurredAt),
		},
		Headers: headers,
		Topic:   c.Kafka.Topic, Topics: c.Kafka.Topics,
	}
}

// requiredColumns are those that every outbox table must publish.
func requiredColumns(c *config.Config) []string { return routing(c).RequiredColumns() }

package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/admin"
	"github.com/cdcpub/cdcpub/internal/check"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/slotview"
)

// checkTimeout bounds a connection to PostgreSQL and each statement.
const checkTimeout = 15 * time.Second

const checkApplication = "cdcpub check"

// askPostgres opens a replication connection, as the publisher does, and an
// ordinary one, as the monitor does. A password that cannot be had is a failure
// to connect, not one of the configuration: Kafka is looked at all the same.
func askPostgres(ctx context.Context, c *config.Config, facts *check.Facts) {
	pg := &facts.Postgres
	server, err := unprovenServer(c, checkApplication, checkTimeout)
	if err != nil {
		pg.Unreachable, pg.Replication.Refused = failureOf(err), failureOf(err)
		return
	}
	own := askReplication(ctx, c, server, &pg.Replication)
	pg.Server, pg.User, pg.Database = server.name, server.user, server.database
	if pg.Database == "" {
		pg.Database = server.user // as the server does
	}
	conn, err := server.connect(ctx)
	if err != nil {
		pg.Unreachable = failureOf(err)
		return
	}
	defer closeConn(conn)
	check.Read(ctx, conn, &facts.Setup, own, pg)
}

// askReplication returns the process id of the walsender, 0 if there was none.
func askReplication(ctx context.Context, c *config.Config, server *sqlServer, r *check.Replication) uint32 {
	ctx, cancel := server.bound(ctx)
	defer cancel()
	params := []config.Param{
		{Name: "wal_sender_timeout", Value: strconv.FormatInt(time.Duration(c.Postgres.WALSenderTimeout).Milliseconds(), 10) + "ms"},
	}
	for _, setting := range check.SessionSettings() {
		params = append(params, config.Param{Name: setting[0], Value: setting[1]})
	}
	conn, err := server.connectForReplication(ctx, params...)
	if err != nil {
		r.Refused = failureOf(err)
		return 0
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found, err := check.ReplicationFacts(ctx, conn)
	if err != nil {
		r.Refused = failureOf(err)
		return conn.PID()
	}
	*r = found
	return conn.PID()
}

// askListen tries http.listen, and if it is taken asks who is there.
func askListen(ctx context.Context, c *config.Config) check.Listen {
	found := check.Listen{Address: c.HTTP.Listen}
	if found.Address == "" {
		return found
	}
	listener, err := admin.Listen(found.Address)
	if err == nil {
		_ = listener.Close()
		return found
	}
	found.Refused = human.OneLine(err.Error())
	if c.HTTP.Advertise != "" {
		found.Ours = slotview.Ask(ctx, c.HTTP.Advertise, c.Postgres.Slot, checkTimeout).Unanswered == ""
	}
	return found
}

// failureOf makes one line of an error, and of PostgreSQL's own its SQLSTATE.
func failureOf(err error) *check.Failure {
	failure := &check.Failure{Text: reason(err)}
	var explained *serverError
	var refused *pgconn.PgError
	if errors.As(err, &explained) {
		failure.Text = explained.text
	}
	if errors.As(err, &refused) {
		failure.SQLState = refused.Code
		failure.Text = human.OneLine(refused.Message) + " (SQLSTATE " + refused.Code + ")"
	}
	return failure
}

// askKafka looks at the cluster and the topics. systemID is PostgreSQL's, empty
// if it did not answer.
func askKafka(ctx context.Context, c *config.Config, topics []string, systemID string) check.Kafka {
	client, err := kafkaClient(c)
	if err != nil {
		return check.Kafka{Failed: human.OneLine(err.Error())}
	}
	defer client.Close()
	cluster, err := client.Describe(ctx, topics)
	found := kafkaFacts(cluster)
	if err != nil {
		found.Failed = human.OneLine(err.Error())
		return found
	}
	found.Fencing = askFencing(ctx, client, transactionalID(c, systemID), systemID)
	return found
}

func askFencing(ctx context.Context, client *kafka.Client, id, systemID string) check.Fencing {
	if id == "" {
		return check.Fencing{}
	}
	if systemID == "" {
		return check.Fencing{ID: id + "SYSTEM_IDENTIFIER", Unseen: "PostgreSQL did not say its system identifier"}
	}
	permission, err := client.MayFence(ctx, id)
	fencing := check.Fencing{ID: id, Allowed: allowed(permission)}
	if err != nil {
		fencing.Unseen = human.OneLine(err.Error())
	}
	return fencing
}

// kafkaFacts are those of a cluster, in the terms of the checks.
func kafkaFacts(cluster *kafka.Cluster) check.Kafka {
	found := check.Kafka{Refused: cluster.BootstrapUnreachable, ClusterID: cluster.ClusterID, ProducerIDs: allowed(cluster.CanUseProducerIDs)}
	for _, b := range cluster.Brokers {
		found.Brokers = append(found.Brokers, check.Broker{ID: b.ID, Address: b.Address, Unreachable: b.Unreachable})
	}
	for i := range cluster.Topics {
		t := &cluster.Topics[i]
		found.Topics = append(found.Topics, check.Topic{
			Name: t.Name, Missing: t.Missing, Failed: t.Unseen, Partitions: t.Partitions, Replicas: t.MinReplicas,
			Offline: t.OfflinePartitions, UnderMin: t.UnderMinISR, MinInSyncCapped: t.MinISRCapped, Configs: t.Configs, ConfigsUnseen: t.ConfigsUnseen,
			Write: allowed(t.CanWrite), Create: allowed(t.CanCreate),
		})
	}
	if found.AutoCreateUnseen = cluster.DefaultsUnseen; found.AutoCreateUnseen == "" {
		found.AutoCreate = &cluster.AutoCreate
	}
	return found
}

func allowed(p kafka.Permission) *bool {
	if p == kafka.PermissionUnknown {
		return nil
	}
	granted := p == kafka.PermissionGranted
	return &granted
}

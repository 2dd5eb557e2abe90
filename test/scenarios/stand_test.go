package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// patience bounds every wait of a scenario. It is long: a slow machine is no
// failure, and nothing waits longer than it must.
const patience = 120 * time.Second

// options say how a stand differs from the usual one.
type options struct {
	postgres *pgserver.Server   // nil: the shared server
	kafka    *harness.Cluster   // nil: the shared cluster
	fake     *harness.FakeKafka // instead of kafka
	binary   string             // "": the shared build, with the race detector
	// partitions of each topic; 0 means 3.
	partitions int
	replicas   int
	topic      map[string]string // configuration of the topics
	// types are further aggregate types, each with a topic of its own.
	types []string
	// withoutTopic leaves the creation of the topics to the scenario.
	withoutTopic bool
	// brokers for cdcpub; nil: the cluster's.
	brokers []string
	// address of PostgreSQL for cdcpub as host:port; "": the server's own.
	address string
	// login is the connection string for cdcpub; "": the superuser's.
	login string
	// publication is its name; "": that of the slot.
	publication string
	// tables are the outbox tables as the configuration and test_decoding write
	// them; nil: public.outbox.
	tables []string
	// oracle says more about the tables; its Tables, if it has any, are the
	// names under which test_decoding shows them.
	oracle harness.OracleOptions
	// http serves /status and the like on a free port.
	http bool
	// sections holds further lines of the configuration file, indented by two
	// spaces: {"kafka": "  linger: 0s\n"}; "" holds lines of the top level.
	sections map[string]string
	// unprepared leaves init to the scenario.
	unprepared bool
	// patience for waits; 0 means the usual.
	patience time.Duration
}

// stand is one publisher's world: a database and topics of its own, the oracle
// of its outbox, and what was seen while it worked.
type stand struct {
	t       testing.TB
	ctx     context.Context
	options options
	began   time.Time
	pg      *pgserver.Server
	kafka   *harness.Cluster // nil with a fake
	brokers brokers          // kafka or the fake
	url     string           // of the database
	slot    string
	topic   string   // of aggregate type order
	topics  []string // that and those of the further types
	listen  string   // http.listen of the next process
	oracle  *harness.Oracle
	sql     *pgx.Conn
	prefix  string // of the aggregate ids that load writes
	next    int    // number of the next event of load

	started  int // processes
	logs     []*harness.Process
	restarts []verify.Sample
	sampler  sampler
	rows     []verify.Row // of the history, as far as it was read
}

// brokers are what records go to.
type brokers interface {
	Brokers() []string // for clients
	Direct() []string  // for witnesses
	CreateTopic(ctx context.Context, name string, partitions, replicas int, configs map[string]string) error
}

const aggregates = 50

func newStand(t testing.TB, o options) *stand {
	t.Helper()
	s := &stand{t: t, options: o, began: time.Now(), pg: o.postgres, kafka: o.kafka, prefix: "o", listen: "off"}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	s.ctx = ctx
	if s.pg == nil {
		s.pg = shared.Postgres(t, "")
	}
	if s.kafka == nil && o.fake == nil {
		s.kafka = shared.Kafka(t, harness.KafkaOptions{})
	}
	if s.brokers = s.kafka; o.fake != nil {
		s.brokers = o.fake
	}
	if s.options.binary == "" {
		s.options.binary = shared.Binary(t, harness.BuildOptions{Race: true})
	}
	setDefault(&s.options.patience, patience)
	setDefault(&s.options.partitions, 3)
	setDefault(&s.options.replicas, 1)
	if s.options.tables == nil {
		s.options.tables = []string{"public.outbox"}
	}
	if s.options.oracle.Tables == nil {
		s.options.oracle.Tables = s.options.tables
	}
	if o.http {
		s.listen = s.freeAddress()
	}
	database := harness.Database(t, s.pg)
	s.url, s.slot = s.pg.URL(database), database
	s.topic = s.topicOf("order")
	s.topics = []string{s.topic}
	for _, kind := range o.types {
		s.topics = append(s.topics, s.topicOf(kind))
	}
	if !o.withoutTopic {
		s.createTopics()
	}
	if !o.unprepared {
		s.prepare()
	}
	return s
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// topicOf is the topic of an aggregate type.
func (s *stand) topicOf(kind string) string { return "scenario." + s.slot + "." + kind }

func (s *stand) createTopics() {
	s.t.Helper()
	for _, topic := range s.topics {
		s.no(s.brokers.CreateTopic(s.ctx, topic, s.options.partitions, s.options.replicas, s.options.topic))
	}
}

// prepare runs `cdcpub init` and creates the oracle, before any load.
func (s *stand) prepare() {
	s.t.Helper()
	p := s.command("init", "-c", "{config}")
	if code, err := p.Wait(s.ctx); code != 0 || err != nil {
		s.t.Fatalf("cdcpub init: exit %d %v\n%s", code, err, p.Stderr())
	}
	s.oracle = harness.NewOracle(s.t, s.url, s.options.oracle)
	s.sql = s.connect()
	s.sampler.begin(s)
}

// config is the configuration file.
func (s *stand) config() string {
	url := s.url
	if s.options.login != "" {
		url = s.options.login
	}
	if s.options.address != "" {
		url = strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", s.pg.Port()), s.options.address, 1)
	}
	brokers := s.options.brokers
	if brokers == nil {
		brokers = s.brokers.Brokers()
	}
	var tables strings.Builder
	for _, table := range s.options.tables {
		fmt.Fprintf(&tables, "    - '%s'\n", table)
	}
	extra := s.options.sections
	kind := cmp.Or(s.options.oracle.Columns["aggregate_type"], "aggregate_type")
	publication := cmp.Or(s.options.publication, s.slot)
	return fmt.Sprintf("postgres:\n  url: %s\n  slot: %s\n  publication: %q\n%s", url, s.slot, publication, extra["postgres"]) +
		fmt.Sprintf("outbox:\n  tables:\n%s%s", tables.String(), extra["outbox"]) +
		fmt.Sprintf("kafka:\n  brokers: [%s]\n  topic: %s\n%s", strings.Join(brokers, ", "), s.topicOf("{"+kind+"}"), extra["kafka"]) +
		fmt.Sprintf("http:\n  listen: %q\n%s", s.listen, extra[""])
}

func (s *stand) freeAddress() string {
	s.t.Helper()
	ports, err := pgserver.FreePorts(1)
	s.no(err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

// no fails the scenario on an error that the scenario did not provoke.
func (s *stand) no(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

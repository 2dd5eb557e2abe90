package harness

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// KafkaOptions describe a cluster.
type KafkaOptions struct {
	// Brokers is 1 or 3; 0 means 1. Each is broker and controller.
	Brokers int
	// ViaProxy puts a Proxy before each broker's client listener; Cluster.Proxy
	// returns them.
	ViaProxy bool
	// Advertised, when set, is what every broker tells its clients to use
	// instead of its own address, which Listeners still returns.
	Advertised string
	// Listeners are further ones for clients, by name in capitals, with the
	// security protocol of each: SSL, SASL_SSL, SASL_PLAINTEXT or PLAINTEXT.
	// What they need is in Config. Cluster.Listener tells their addresses. The
	// name CLIENT gives the usual one another protocol.
	Listeners map[string]string
	// Optimized gives the brokers the JVM's optimizing compiler, which costs
	// their start and pays off in load that lasts.
	Optimized bool
	// Config are broker settings that override the harness's own.
	Config map[string]string
}

// Cluster is a real Apache Kafka, in KRaft mode, by itself without
// authentication.
// Brokers are counted from 0; broker i has node id i+1. Methods are safe from
// any goroutine; those that start or end brokers wait for each other.
type Cluster struct {
	software software
	optimize bool
	dir      string
	id       string // the cluster's
	nodes    []node
	proxies  []*Proxy // empty without ViaProxy
	guard    *guard.Guard
	admin    *kgo.Client

	mu       sync.Mutex
	children []*guard.Child // nil before the first start
	frozen   []bool
	closed   bool
}

// Kafka starts a cluster for one test and closes it at the test's end.
func Kafka(t testing.TB, o KafkaOptions) *Cluster {
	t.Helper()
	cluster, err := startKafka(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.LogTail(15))
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

func startKafka(o KafkaOptions) (*Cluster, error) {
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	if o.Brokers != 1 && o.Brokers != 3 {
		return nil, fmt.Errorf("KafkaOptions.Brokers is %d, want 1 or 3", o.Brokers)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	software, err := findSoftware(ctx)
	if err != nil {
		return nil, err
	}
	return runCluster(ctx, software, o)
}

func runCluster(ctx context.Context, s software, o KafkaOptions) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "cdcpub-kafka-")
	if err != nil {
		return nil, err
	}
	watch, err := guard.New(guard.Options{Remove: []string{dir}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{
		software: s, optimize: o.Optimized, dir: dir, id: newClusterID(), guard: watch,
		children: make([]*guard.Child, o.Brokers), frozen: make([]bool, o.Brokers),
	}
	if err := c.startAll(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("Apache Kafka did not start: %w\n%s", err, c.LogTail(20)), c.Close())
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context, o KafkaOptions) error {
	if err := c.layOut(o); err != nil {
		return err
	}
	errs := make(chan error, len(c.nodes))
	for i := range c.nodes {
		go func() { errs <- c.format(ctx, i) }()
	}
	var err error
	for range c.nodes {
		err = errors.Join(err, <-errs)
	}
	for i := range c.nodes {
		if err == nil {
			err = c.launch(i)
		}
	}
	if err != nil {
		return err
	}
	c.admin, err = kgo.NewClient(kgo.SeedBrokers(c.Direct()...), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

// layOut chooses ports and writes every node's configuration.
func (c *Cluster) layOut(o KafkaOptions) error {
	names := o.extraListeners()
	portsPerNode := 3 + len(names)
	ports, err := pgserver.FreePorts(portsPerNode * o.Brokers)
	if err != nil {
		return err
	}
	for i := range o.Brokers {
		id := strconv.Itoa(i + 1)
		n := node{
			id:         i + 1,
			client:     ports[portsPerNode*i],
			internal:   ports[portsPerNode*i+1],
			controller: ports[portsPerNode*i+2],
			dir:        filepath.Join(c.dir, "node-"+id),
			properties: filepath.Join(c.dir, "node-"+id+".properties"),
			log:        filepath.Join(c.dir, "node-"+id+".log"),
		}
		n.listeners = map[string]int{}
		for j, name := range names {
			n.listeners[name] = ports[portsPerNode*i+3+j]
		}
		n.advertised = loopback(n.client)
		if o.ViaProxy {
			proxy, err := NewProxy(n.advertised)
			if err != nil {
				return err
			}
			c.proxies = append(c.proxies, proxy)
			n.advertised = proxy.Addr()
		}
		if o.Advertised != "" {
			n.advertised = o.Advertised
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		if err := os.WriteFile(n.properties, []byte(properties(n, c.nodes, o)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.dir, "log4j2.properties"), []byte(logging), 0o644)
}

// command is the Java program of one node.
func (c *Cluster) command(i int, args ...string) (guard.Command, error) {
	log, err := os.OpenFile(c.nodes[i].log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return guard.Command{}, err
	}
	jvm := []string{
		"-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto",
		"-Dlog4j2.configurationFile=" + filepath.Join(c.dir, "log4j2.properties"),
		"-cp", filepath.Join(c.software.jars, "*"),
	}
	if !c.optimize {
		jvm = append(jvm, "-XX:TieredStopAtLevel=1")
	}
	return guard.Command{Path: c.software.java, Args: append(jvm, args...), Dir: c.dir, Output: log}, nil
}

// format writes the cluster's id and the node's into its data directory.
func (c *Cluster) format(ctx context.Context, i int) error {
	command, err := c.command(i, c.software.toolFlag(), "kafka.tools.StorageTool", "format", "-t", c.id, "-c", c.nodes[i].properties)
	if err != nil {
		return err
	}
	defer command.Output.Close()
	child, err := c.guard.Start(command)
	if err != nil {
		return err
	}
	select {
	case <-child.Gone():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("format node %d: %w", c.nodes[i].id, context.Cause(ctx)), child.Kill())
	}
	if !child.State().Success() {
		return fmt.Errorf("format node %d: %v", c.nodes[i].id, child.State())
	}
	return nil
}

// launch starts the broker's process and does not wait for anything.
func (c *Cluster) launch(i int) error {
	command, err := c.command(i, c.software.brokerFlag(), "kafka.Kafka", c.nodes[i].properties)
	if err != nil {
		return err
	}
	defer command.Output.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("the Kafka cluster is closed")
	}
	if child := c.children[i]; child != nil && !ended(child) {
		return fmt.Errorf("Kafka broker %d runs already", i)
	}
	c.children[i], err = c.guard.Start(command)
	c.frozen[i] = false
	return err
}

func ended(child *guard.Child) bool {
	select {
	case <-child.Gone():
		return true
	default:
		return false
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// newClusterID makes a random id in the form that Kafka wants: 16 bytes in
// URL-safe base64, 22 characters, not beginning with a dash.
func newClusterID() string {
	id := make([]byte, 16)
	rand.Read(id)
	id[0] &= 0x7f // the first character is then a letter
	return base64.RawURLEncoding.EncodeToString(id)
}

// PID is the process id of a broker that runs.
func (c *Cluster) PID(i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.children[i].PID()
}

// Brokers are the addresses for clients: the proxies', if there are any.
func (c *Cluster) Brokers() []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = n.advertised
	}
	return addresses
}

// Listeners are the addresses where the brokers listen for clients, whatever
// they advertise.
func (c *Cluster) Listeners() []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = loopback(n.client)
	}
	return addresses
}

// Listener are the addresses of one of KafkaOptions.Listeners.
func (c *Cluster) Listener(name string) []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = loopback(n.listeners[name])
	}
	return addresses
}

// Controllers are the addresses of the quorum, which serves no clients.
func (c *Cluster) Controllers() []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = loopback(n.controller)
	}
	return addresses
}

// Direct are addresses that no proxy is before: for witnesses, whatever the
// proxies do.
func (c *Cluster) Direct() []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = loopback(n.internal)
	}
	return addresses
}

// Proxy is the proxy before broker i. It exists with KafkaOptions.ViaProxy.
func (c *Cluster) Proxy(i int) *Proxy { return c.proxies[i] }

// Dir is the directory with the data and the logs of all brokers.
func (c *Cluster) Dir() string { return c.dir }

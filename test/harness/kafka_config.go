package harness

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// node is the fixed part of one broker: it is set before the cluster starts
// and never changes.
type node struct {
	id         int
	client     int            // port that clients use
	internal   int            // port of the other brokers and of the harness itself
	controller int            // port of the quorum
	listeners  map[string]int // ports of KafkaOptions.Listeners
	advertised string
	dir        string // data
	properties string // path of the configuration file
	log        string // path of the log
}

// extraListeners are the names of Listeners but CLIENT, sorted.
func (o KafkaOptions) extraListeners() []string {
	names := slices.Sorted(maps.Keys(o.Listeners))
	return slices.DeleteFunc(names, func(name string) bool { return name == "CLIENT" })
}

// logging prints to standard output, which is the broker's log file.
const logging = `status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
`

// properties renders the configuration of one broker of a cluster. Clients have
// a listener of their own, so that a proxy before it does not touch the traffic
// among brokers.
func properties(n node, all []node, o KafkaOptions) string {
	voters := make([]string, len(all))
	for i, other := range all {
		voters[i] = fmt.Sprintf("%d@127.0.0.1:%d", other.id, other.controller)
	}
	copies, inSync := strconv.Itoa(len(all)), strconv.Itoa(len(all)/2+1)
	p := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      fmt.Sprintf("CLIENT://127.0.0.1:%d,INTERNAL://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", n.client, n.internal, n.controller),
		"advertised.listeners":           fmt.Sprintf("CLIENT://%s,INTERNAL://127.0.0.1:%d", n.advertised, n.internal),
		"listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "INTERNAL",
		"log.dirs":                       n.dir,
		"auto.create.topics.enable":      "false",

		"default.replication.factor":                       copies,
		"min.insync.replicas":                              inSync,
		"offsets.topic.replication.factor":                 copies,
		"offsets.topic.num.partitions":                     "3",
		"transaction.state.log.replication.factor":         copies,
		"transaction.state.log.min.isr":                    inSync,
		"transaction.state.log.num.partitions":             "3",
		"share.coordinator.state.topic.replication.factor": copies,
		"share.coordinator.state.topic.min.isr":            inSync,
		"group.initial.rebalance.delay.ms":                 "0",

		// A dead broker is noticed, and its leaders move, within this time.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		"controlled.shutdown.enable":   "true",
		// Kafka deletes by the records' timestamps. Tests have old ones.
		"log.retention.ms": "-1",
		// Files grow on demand on one machine; a small index saves memory maps.
		"log.index.size.max.bytes": "1048576",
	}
	for name, port := range n.listeners {
		p["listeners"] += fmt.Sprintf(",%s://127.0.0.1:%d", name, port)
		p["advertised.listeners"] += fmt.Sprintf(",%s://127.0.0.1:%d", name, port)
	}
	for name, protocol := range o.Listeners {
		if name == "CLIENT" {
			p["listener.security.protocol.map"] = strings.Replace(p["listener.security.protocol.map"], "CLIENT:PLAINTEXT", "CLIENT:"+protocol, 1)
			continue
		}
		p["listener.security.protocol.map"] += "," + name + ":" + protocol
	}
	maps.Copy(p, o.Config)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", key, p[key])
	}
	return b.String()
}

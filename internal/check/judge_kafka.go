package check

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

func (j *judge) kafka() {
	k := &j.Kafka
	refused := make([]string, 0, len(k.Refused))
	for _, address := range slices.Sorted(maps.Keys(k.Refused)) {
		refused = append(refused, k.Refused[address])
	}
	switch {
	case k.Failed != "" && len(refused) > 0:
		j.add(idKafka, fail("no broker of kafka.brokers can be used: %s", strings.Join(refused, "; ")).
			cured("correct what is said of each address: in kafka.brokers, kafka.tls or kafka.sasl, at the broker (listeners), or between: firewall, container network, VPN"))
	case k.Failed != "":
		j.add(idKafka, fail("nothing can be learned of the cluster: %s", k.Failed).cured("check kafka.brokers, kafka.tls and kafka.sasl"))
	case len(refused) > 0:
		j.add(idKafka, warn("%d of %d addresses of kafka.brokers cannot be used: %s; cdcpub starts as long as one can", len(refused), len(j.Setup.Brokers), strings.Join(refused, "; ")).
			cured("correct kafka.brokers, or start these brokers"))
	default:
		j.add(idKafka, ok("cluster %s, %s", k.ClusterID, plural(len(k.Brokers), "broker")))
	}
	if k.Failed != "" {
		j.skip(clusterIDs, "depends on %s", idKafka)
		return
	}
	for i := range k.Brokers {
		j.advertised(&k.Brokers[i])
	}
	if len(k.Brokers) == 0 {
		j.add(idBrokers, fail("the cluster has no brokers").cured("start them"))
	}
	j.add(idProducerID, j.producerID())
	j.add(idFencing, j.fencing())
	j.add(idAutoCreate, k.autoCreate())
}

// producerID: batches are numbered, so that one that is sent twice is stored
// once. Kafka before 2.8 wants a right of its own for that (KIP-679).
func (j *judge) producerID() outcome {
	switch allowed := j.Kafka.ProducerIDs; {
	case allowed == nil:
		return skip("the brokers do not say whether cdcpub may have a producer id")
	case !*allowed:
		return fail("cdcpub may not have a producer id, which every batch carries").
			cured("grant Write on a topic; brokers before Kafka 2.8 want this instead", j.tool("kafka-acls.sh")+" --add --allow-principal "+j.principal()+" --operation IdempotentWrite --cluster")
	}
	return ok("cdcpub may have one")
}

// fencing: without it publishing goes on, and a late request of a publisher
// that was thought dead may repeat records behind newer ones.
func (j *judge) fencing() outcome {
	switch f := &j.Kafka.Fencing; {
	case f.ID == "":
		return ok("kafka.fencing is off: a late request of an earlier publisher may repeat records out of order")
	case f.Allowed == nil:
		return skip("whether the transactional id %s may be used is not known: %s", f.ID, f.Unseen)
	case !*f.Allowed:
		return warn("cdcpub may not use the transactional id %s, and would publish unfenced: a late request of an earlier publisher may repeat records out of order", f.ID).
			cured("grant Write on it", j.tool("kafka-acls.sh")+" --add --allow-principal "+j.principal()+" --operation Write --transactional-id "+f.ID)
	}
	return ok("cdcpub may use the transactional id %s", j.Kafka.Fencing.ID)
}

func (k *Kafka) autoCreate() outcome {
	switch {
	case k.AutoCreate == nil:
		return skip("the brokers' settings are not known: %s", k.AutoCreateUnseen)
	case *k.AutoCreate:
		return ok("auto.create.topics.enable is on: cdcpub never makes use of it, but consumers create topics that are missing, with the brokers' defaults")
	}
	return ok("auto.create.topics.enable is off")
}

// advertised: a client asks a bootstrap address who the brokers are, and from
// then on talks to the addresses that it is told.
func (j *judge) advertised(b *Broker) {
	subject := fmt.Sprintf("broker %d", b.ID)
	if b.Unreachable == "" {
		j.addFor(idBrokers, subject, ok("its advertised address can be used"))
		return
	}
	o := fail("%s", b.Unreachable)
	host, port, err := net.SplitHostPort(b.Address)
	if err != nil { // it is down
		j.addFor(idBrokers, subject, o.cured("start it"))
		return
	}
	cure := "see that this machine can reach that address, or correct advertised.listeners in server.properties of the broker"
	switch {
	case loopback(host) && !j.bootstrapIsLoopback():
		cure = "localhost is the machine or container where each client itself stands, here not the broker's: advertise a name that clients can reach, and restart the broker"
	case loopback(host):
		cure = "if the broker runs in a container, publish this very port on the host, the same number outside as inside; or correct advertised.listeners in server.properties of the broker"
	case !strings.Contains(host, ".") && net.ParseIP(host) == nil:
		cure = fmt.Sprintf("a name such as %s usually exists within one container network only: run cdcpub in that network, or give the broker one listener for clients inside and one for those outside", host)
	}
	j.addFor(idBrokers, subject, o.cured(cure, "advertised.listeners=PLAINTEXT://"+net.JoinHostPort("NAME-AS-SEEN-FROM-HERE", port)))
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// bootstrapIsLoopback: then a loopback address that is advertised is right.
func (j *judge) bootstrapIsLoopback() bool {
	return slices.ContainsFunc(j.Setup.Brokers, func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		return err == nil && loopback(host)
	})
}

// topics judges the topics that are known.
func (j *judge) topics() {
	names := j.topicNames()
	j.results = append(j.results, names...)
	wanted := j.Setup.Wanted(j.Facts.types())
	switch {
	case j.Kafka.Failed != "":
		j.skip(topicIDs[1:], "depends on %s", idKafka)
		return
	case len(wanted.Topics) == 0:
		j.skip(topicIDs[1:], "depends on %s: no topic is known", idTopicNames)
		return
	}
	for i := range j.Kafka.Topics {
		j.topic(&j.Kafka.Topics[i])
	}
}

// topicNames says which topics are looked at, and why no others.
func (j *judge) topicNames() []Result {
	types := j.Facts.types()
	wanted := j.Setup.Wanted(types)
	var results []Result
	add := func(o outcome) {
		results = append(results, Result{ID: idTopicNames, Status: o.status, Found: o.found, Cure: o.cure, Commands: o.commands})
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Illegal)) {
		add(fail("no topic can be made of the aggregate type %q: %s", name, wanted.Illegal[name]).
			cured("give it a topic of its own in kafka.topics, or change kafka.topic"))
	}
	known := fmt.Sprintf("%s: %s", plural(len(wanted.Topics), "topic"), list(wanted.Topics))
	if len(wanted.Topics) == 0 {
		known = "no topic is known"
	}
	source := ""
	switch {
	case len(wanted.OtherColumns) > 0:
		add(skip("%s; which others kafka.topic (%s) makes depends on column %s of each row, and cannot be known", known, j.Setup.Route.Topic, strings.Join(wanted.OtherColumns, ", ")))
		return results
	case !wanted.Open:
		add(ok("%s, as configured", known))
		return results
	case len(j.Setup.Types) > 0:
		source = "of the aggregate types in --types"
	default:
		from, all := j.typesSource()
		if !all {
			add(skip("%s, and there may be more: %s; name the aggregate types to have all looked at: --types a,b", known, from))
			return results
		}
		source = "of the aggregate types in the outbox tables today"
	}
	if len(wanted.Topics) == 0 && len(wanted.Illegal) == 0 {
		add(skip("the outbox tables are empty, so that no aggregate type is known; name them to have their topics looked at: --types a,b"))
		return results
	}
	add(ok("%s, %s", known, source))
	return results
}

// typesSource says why the types of the rows are not all that there are.
func (j *judge) typesSource() (why string, all bool) {
	if j.Postgres.Unreachable != nil {
		return "the outbox tables cannot be read", false
	}
	var unseen []string
	for i := range j.Postgres.Tables {
		t := &j.Postgres.Tables[i]
		name := t.Name.String()
		switch {
		case !t.Exists:
			unseen = append(unseen, name+" does not exist")
		case !t.Readable:
			unseen = append(unseen, fmt.Sprintf("%s may not SELECT from %s", j.Postgres.User, name))
		case t.RowsUnread != "":
			unseen = append(unseen, fmt.Sprintf("rows of %s could not be read (%s)", name, t.RowsUnread))
		case !t.TypesAll:
			unseen = append(unseen, "of "+name+" only some rows were read")
		}
	}
	return strings.Join(unseen, ", "), len(unseen) == 0
}

package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// brokerDefaults are the settings that a topic without its own inherits.
var brokerDefaults = []string{
	"auto.create.topics.enable", "default.replication.factor", "message.max.bytes",
	"min.insync.replicas", "num.partitions",
}

// inspection is what one visit to a broker at its advertised address showed.
type inspection struct {
	broker Broker
	// defaults is nil when they could not be read, unseen is then why.
	defaults map[string]string
	unseen   string
}

// tryBrokers visits every broker of the metadata where it says it is.
func (a *admin) tryBrokers(ctx context.Context, m *sarama.MetadataResponse, into *Cluster) {
	shared := make(map[string][]int32)
	for _, b := range m.Brokers {
		shared[b.Addr()] = append(shared[b.Addr()], b.ID())
	}
	inspections := inParallel(m.Brokers, func(b *sarama.Broker) inspection {
		i := a.inspect(ctx, b, into.ClusterID)
		if ids := shared[b.Addr()]; len(ids) > 1 && i.broker.Unreachable == "" {
			i.broker.Unreachable = fmt.Sprintf("brokers %s all tell their clients to use %s, so all but one of them cannot be reached: give each its own address in advertised.listeners",
				listed(ids), b.Addr())
		}
		return i
	})
	slices.SortFunc(inspections, func(x, y inspection) int { return cmp.Compare(x.broker.ID, y.broker.ID) })
	into.DefaultsUnseen = "no broker could be reached at its advertised address"
	seen := false
	for _, i := range inspections {
		into.Brokers = append(into.Brokers, i.broker)
		switch {
		case seen || i.broker.Unreachable != "":
		case i.defaults == nil:
			into.DefaultsUnseen = i.unseen
		default:
			seen = true
			into.setDefaults(i.defaults)
		}
	}
	into.Brokers = append(into.Brokers, absent(m)...)
	slices.SortFunc(into.Brokers, func(x, y Broker) int { return cmp.Compare(x.ID, y.ID) })
}

func (c *Cluster) setDefaults(of map[string]string) {
	c.DefaultsUnseen = ""
	c.AutoCreate = of["auto.create.topics.enable"] == "true"
	c.DefaultPartitions = int32(integer(of["num.partitions"]))
	c.DefaultReplication = int16(integer(of["default.replication.factor"]))
	c.DefaultMinISR = int(integer(of["min.insync.replicas"]))
	c.MaxMessageBytes = integer(of["message.max.bytes"])
}

// integer is 0 for what a broker would not accept as a number either.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// inspect visits one broker and makes sure that it is the one.
func (a *admin) inspect(ctx context.Context, of *sarama.Broker, clusterID string) inspection {
	i := inspection{broker: Broker{ID: of.ID(), Address: of.Addr(), Rack: of.Rack()}}
	g := &greeting{address: of.Addr()}
	g.err = a.visit(ctx, of.Addr(), func(b *sarama.Broker, offered offers) (err error) {
		i.broker.Version = offered.release()
		if g.metadata, err = askMetadata(b, nil); err != nil {
			return err
		}
		i.defaults, i.unseen = askDefaults(b, of.ID())
		return nil
	})
	switch {
	case g.err != nil:
		i.broker.Version = ""
		i.broker.Unreachable = fmt.Sprintf("the cluster tells its clients to use %s for broker %d, but %s; advertised.listeners of the broker must have an address that works from where cdcpub runs",
			of.Addr(), of.ID(), explain(of.Addr(), g.err))
	case g.clusterID() != clusterID:
		i.broker.Version = ""
		i.broker.Unreachable = fmt.Sprintf("the cluster tells its clients to use %s for broker %d, but from here a broker of another cluster answers at that address (its cluster id is %q, not %q); advertised.listeners of the broker must have an address that works from where cdcpub runs",
			of.Addr(), of.ID(), g.clusterID(), clusterID)
	case i.unseen == otherBroker:
		i.broker.Version = ""
		i.broker.Unreachable = fmt.Sprintf("the cluster tells its clients to use %s for broker %d, but another broker of the cluster answers at that address; give each broker its own address in advertised.listeners",
			of.Addr(), of.ID())
	}
	return i
}

// otherBroker is askDefaults' reason when it asked the wrong broker.
const otherBroker = "another broker answers"

// askDefaults reads the broker's own settings, which only the broker itself
// tells; another one calls the request invalid (ConfigHelper.describeConfigs).
func askDefaults(b *sarama.Broker, id int32) (defaults map[string]string, unseen string) {
	name := strconv.Itoa(int(id))
	answers, err := askConfigs(b, []*sarama.ConfigResource{{Type: sarama.BrokerResource, Name: name, ConfigNames: brokerDefaults}})
	switch r := answers[name]; {
	case err != nil:
		return nil, "the broker's settings cannot be read: " + explain(b.Addr(), err)
	case r == nil:
		return nil, "the broker's settings cannot be read: its answer lacks them"
	case r.code == sarama.ErrInvalidRequest:
		return nil, otherBroker
	case r.code != sarama.ErrNoError:
		return nil, configsRefused("the broker's settings", r)
	default:
		return r.values, ""
	}
}

// absent are the brokers that hold replicas but are not in the metadata.
func absent(m *sarama.MetadataResponse) []Broker {
	live := make(map[int32]bool)
	for _, b := range m.Brokers {
		live[b.ID()] = true
	}
	var down []Broker
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			for _, id := range p.Replicas {
				if live[id] {
					continue
				}
				live[id] = true
				down = append(down, Broker{ID: id, Unreachable: fmt.Sprintf(
					"broker %d has replicas of the topics but the cluster does not list it: it is down, or it has no listener of the kind that cdcpub uses", id)})
			}
		}
	}
	return down
}

func listed(ids []int32) string {
	slices.Sort(ids)
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ", ")
}

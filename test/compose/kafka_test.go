package compose

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/test/harness"
)

// placed are settings about addresses and directories, which are others on the
// harness.
var placed = []string{
	"process.roles", "node.id", "controller.quorum.voters", "listeners", "advertised.listeners",
	"listener.security.protocol.map", "controller.listener.names", "inter.broker.listener.name", "log.dirs",
}

// properties are the broker's settings, by the image's rule for variables:
// without KAFKA_, in lower case, and a dot for each underscore.
func properties(s types.ServiceConfig) map[string]string {
	settings := map[string]string{}
	for name, value := range s.Environment {
		if rest, ok := strings.CutPrefix(name, "KAFKA_"); ok && value != nil {
			settings[strings.ReplaceAll(strings.ToLower(rest), "_", ".")] = *value
		}
	}
	return settings
}

// kafkaOf is a real Apache Kafka with the settings of the service.
func kafkaOf(t *testing.T, s types.ServiceConfig) *harness.Cluster {
	t.Helper()
	settings := properties(s)
	for _, name := range placed {
		delete(settings, name)
	}
	return shared.Kafka(t, harness.KafkaOptions{Config: settings})
}

// knownSettings are the names of all settings of a broker.
func knownSettings(ctx context.Context, t *testing.T, cluster *harness.Cluster) []string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Direct()...))
	must(t, err)
	defer client.Close()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBroker, "1"
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(ctx, client)
	must(t, err)
	var names []string
	for _, c := range answer.Resources[0].Configs {
		// The broker also reports settings that it does not know; it has no type
		// for them.
		if c.ConfigType != kmsg.ConfigType(0) {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestTheBrokerIsReachableWhereItSays(t *testing.T) {
	s := load(t).Services["kafka"]
	settings := properties(s)
	listeners, advertised := addresses(settings["listeners"]), addresses(settings["advertised.listeners"])
	protocols := settings["listener.security.protocol.map"]
	for name := range listeners {
		if !strings.Contains(","+protocols, ","+name+":") {
			t.Errorf("listener %s has no protocol in %s", name, protocols)
		}
	}
	const clients, controllers = "PLAINTEXT", "CONTROLLER"
	if settings["inter.broker.listener.name"] != clients || settings["controller.listener.names"] != controllers {
		t.Errorf("other listeners than %s and %s: %v", clients, controllers, settings)
	}
	host, port, err := net.SplitHostPort(advertised[clients])
	must(t, err)
	if host != s.Name || !strings.HasSuffix(listeners[clients], ":"+port) {
		t.Errorf("it advertises %s and listens at %s: service %s is not there", advertised[clients], listeners[clients], s.Name)
	}
	voter := strings.TrimPrefix(settings["controller.quorum.voters"], settings["node.id"]+"@")
	if host, port, err = net.SplitHostPort(voter); err != nil || host != s.Name || !strings.HasSuffix(listeners[controllers], ":"+port) {
		t.Errorf("the controller %s is not at %s of service %s: %v", voter, listeners[controllers], s.Name, err)
	}
}

func TestTheBrokerKnowsEverySetting(t *testing.T) {
	s := load(t).Services["kafka"]
	known := knownSettings(t.Context(), t, kafkaOf(t, s))
	if unknown := unknownTo(known, properties(s)); len(unknown) > 0 {
		t.Errorf("service kafka: Apache Kafka knows no setting %v", unknown)
	}
	if unknown := unknownTo(known, map[string]string{"no.such.setting": ""}); len(unknown) == 0 {
		t.Error("the check above would find nothing")
	}
}

// addresses reads NAME://host:port,NAME://host:port.
func addresses(list string) map[string]string {
	found := map[string]string{}
	for _, item := range strings.Split(list, ",") {
		name, address, _ := strings.Cut(item, "://")
		found[name] = address
	}
	return found
}

func unknownTo(known []string, settings map[string]string) []string {
	var unknown []string
	for name := range settings {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

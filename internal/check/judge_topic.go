package check

import (
	"fmt"
	"strconv"
	"strings"
)

func (j *judge) topic(t *Topic) {
	switch {
	case t.Failed != "":
		j.addFor(idTopic, t.Name, fail("%s", t.Failed).
			cured("if the cluster has ACLs, as its administrator", j.acl(t.Name)))
	case t.Missing:
		j.addFor(idTopic, t.Name, j.missingTopic(t))
	default:
		j.addFor(idTopic, t.Name, ok("exists"))
		j.existing(t)
		return
	}
	j.skipFor(t.Name, topicIDs[2:], "depends on %s", idTopic)
}

// existing judges a topic that is there.
func (j *judge) existing(t *Topic) {
	j.addFor(idPartitions, t.Name, ok("%s; adding some later moves keys to other partitions", plural(t.Partitions, "partition")))
	j.addFor(idWrite, t.Name, j.write(t))
	j.addFor(idReplicas, t.Name, replication(t))
	j.addFor(idInSync, t.Name, inSync(t))
	for _, c := range []struct {
		id    string
		judge func(*Topic) outcome
	}{
		{idMinInSync, j.minInSync}, {idUnclean, j.unclean}, {idMessageSize, j.messageSize},
		{idCleanup, j.cleanup}, {idTimestamps, j.timestamps}, {idRetention, j.retention},
	} {
		o := skip("%s", t.ConfigsUnseen)
		if t.ConfigsUnseen == "" {
			o = c.judge(t)
		}
		j.addFor(c.id, t.Name, o)
	}
}

func (j *judge) missingTopic(t *Topic) outcome {
	o := fail("does not exist: publishing stands still at the first record for it, and goes on once it does")
	switch {
	case !j.Setup.CreateTopics:
		replicas := max(1, min(3, len(j.Kafka.Brokers)))
		return o.cured("create it (the numbers are an example), or set kafka.create_topics and let `cdcpub init` do it",
			j.tool("kafka-topics.sh")+fmt.Sprintf(" --create --topic %s --partitions 12 --replication-factor %d --config min.insync.replicas=%d", shell(t.Name), replicas, max(1, replicas-1)))
	case t.Create != nil && !*t.Create:
		return o.cured("init would create it (kafka.create_topics), but cdcpub may not; as an administrator of the cluster",
			j.tool("kafka-acls.sh")+fmt.Sprintf(" --add --allow-principal %s --operation Create --topic %s", j.principal(), shell(t.Name)))
	}
	command := j.Setup.command("init")
	if types := j.Facts.types(); len(types) > 0 {
		command += " --types " + shell(strings.Join(types, ","))
	}
	return o.cured("init creates it, as kafka.create_topics says", command)
}

// tool is a command of Kafka's own, up to its actions.
func (j *judge) tool(name string) string {
	command := name + " --bootstrap-server " + shell(strings.Join(j.Setup.Brokers, ","))
	if j.Setup.Tools {
		command += " --command-config client.properties"
	}
	return command
}

// principal is us, as ACLs name us.
func (j *judge) principal() string {
	user := j.Setup.KafkaUser
	if user == "" {
		user = "PRINCIPAL"
	}
	return shell("User:" + user)
}

// acl lets us write to the topic.
func (j *judge) acl(topic string) string {
	return j.tool("kafka-acls.sh") + fmt.Sprintf(" --add --allow-principal %s --operation Write --operation Describe --operation DescribeConfigs --topic %s", j.principal(), shell(topic))
}

// configCommand sets a setting of the topic.
func (j *judge) configCommand(topic, setting string) string {
	return j.tool("kafka-configs.sh") + fmt.Sprintf(" --alter --topic %s --add-config %s", shell(topic), setting)
}

func (j *judge) write(t *Topic) outcome {
	switch {
	case t.Write == nil:
		return skip("the brokers do not say whether cdcpub may write")
	case !*t.Write:
		return fail("cdcpub may not write to it").cured("as an administrator of the cluster", j.acl(t.Name))
	}
	return ok("cdcpub may write")
}

func replication(t *Topic) outcome {
	if t.Replicas < 2 {
		return warn("has a single replica: while its broker is down nothing is published, and if the broker's disk fails, acknowledged records are gone").
			cured("add replicas (kafka-reassign-partitions.sh), or create the topic with 3 before the first record")
	}
	return ok("%d replicas", t.Replicas)
}

func inSync(t *Topic) outcome {
	switch {
	case len(t.Offline) > 0:
		return fail("%s without a leader (%s): nothing can be written there", plural(len(t.Offline), "partition"), numbers(t.Offline)).
			cured("start the brokers that have it")
	case len(t.UnderMin) > 0:
		return fail("%s with fewer in-sync replicas than min.insync.replicas (%s): writing there is refused until they are back", plural(len(t.UnderMin), "partition"), numbers(t.UnderMin)).
			cured("start the brokers that are down, or wait until their replicas have caught up")
	}
	return ok("every partition has a leader and enough in-sync replicas")
}

func numbers(partitions []int32) string {
	names := make([]string, 0, len(partitions))
	for _, p := range partitions {
		names = append(names, strconv.Itoa(int(p)))
	}
	return list(names)
}

// number reads a setting; false if it is not there.
func (t *Topic) number(setting string) (int64, bool) {
	n, err := strconv.ParseInt(t.Configs[setting], 10, 64)
	return n, err == nil
}

// unset is the outcome for a setting that the broker did not send.
func unset(setting string) outcome { return skip("the brokers do not tell %s", setting) }

func (j *judge) minInSync(t *Topic) outcome {
	least, known := t.number("min.insync.replicas")
	replicas := int64(t.Replicas)
	switch {
	case !known:
		return unset("min.insync.replicas")
	case least > replicas && t.MinInSyncCapped && replicas > 1:
		return warn("min.insync.replicas is %d with %d replicas, so that all of them are needed: each restart of a broker stops publishing for that time", least, replicas).
			cured(fmt.Sprintf("add replicas (kafka-reassign-partitions.sh), or set it to %d", replicas-1), j.configCommand(t.Name, fmt.Sprintf("min.insync.replicas=%d", replicas-1)))
	case least > replicas && !t.MinInSyncCapped:
		return fail("min.insync.replicas is %d with %s: brokers before Kafka 3.7 refuse every write", least, plural(replicas, "replica")).
			cured(fmt.Sprintf("add replicas (kafka-reassign-partitions.sh), or set it to %d", max(1, replicas-1)), j.configCommand(t.Name, fmt.Sprintf("min.insync.replicas=%d", max(1, replicas-1))))
	case replicas < 2:
		return ok("%d; with a single replica it changes nothing", least)
	case least == 1:
		return warn("min.insync.replicas is 1 with %d replicas: acks=all waits for the replicas that are in sync, which may be the leader alone, and what only the leader has is lost with it", replicas).
			cured(fmt.Sprintf("set it to 2 (of %d replicas)", replicas), j.configCommand(t.Name, "min.insync.replicas=2"))
	case least == replicas:
		return warn("min.insync.replicas is %d, as many as there are replicas: each restart of a broker stops publishing for that time", least).
			cured("add a replica, or lower min.insync.replicas by one")
	}
	return ok("%d of %d replicas", least, replicas)
}

func (j *judge) unclean(t *Topic) outcome {
	switch t.Configs["unclean.leader.election.enable"] {
	case "":
		return unset("unclean.leader.election.enable")
	case "true":
		return warn("unclean.leader.election.enable is true: a replica that was behind may become leader, and acknowledged records are then gone").
			cured("turn it off for this topic", j.configCommand(t.Name, "unclean.leader.election.enable=false"))
	}
	return ok("off")
}

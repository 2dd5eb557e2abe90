// Package witness tells what really happened, without help from the parts that
// are judged: Oracle what PostgreSQL committed, by another slot, another plugin
// and another decoder than the publisher's; ReadAll, Follow and Consumer what is
// in a topic, by another Kafka client than the publisher's. Package verify
// compares the two.
package witness

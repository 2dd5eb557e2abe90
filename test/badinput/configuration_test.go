package badinput

// local is a complete configuration that needs no server to be refused.
func local(further string) string {
	return `
postgres: {url: "postgres://cdcpub@127.0.0.1:5432/shop", slot: cdcpub, publication: cdcpub}
outbox: {tables: [public.outbox]}
kafka: {brokers: ["127.0.0.1:9092"]}
` + further
}

// configuration are mistakes of the file and of its variables.
var configuration = []mistake{
	{name: "an empty file", config: "# nothing yet\n", code: 2, names: []string{"postgres.url", "kafka.brokers", "outbox.tables"}},
	{name: "not YAML", config: "postgres:\n\turl: x\n", code: 2, names: []string{"cdcpub.yaml:2"}},
	{name: "a quote that does not end", config: "postgres:\n  url: \"x\nkafka:\n", code: 2, names: []string{"cdcpub.yaml:"}},
	{name: "a setting that is too far to the left", config: "postgres:\n  url: x\n slot: y\n", code: 2, names: []string{"cdcpub.yaml:"}},
	{name: "a temporary table", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [pg_temp.outbox]}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"outbox.tables[0]", "temporary"}},
	{name: "an unknown setting", config: local("windows: {records: 10}\n"), code: 2, names: []string{"windows", "window"}},
	{name: "an unknown setting within a group", config: "kafka: {broker: [a:9092]}\n", code: 2, names: []string{"kafka.broker", "brokers"}},
	{name: "a setting at another level", config: local("brokers: [a:9092]\n"), code: 2, names: []string{"kafka.brokers"}},
	{name: "a setting stated twice", config: local("on_stop: stay\non_stop: exit\n"), code: 2, names: []string{"on_stop"}},
	{name: "a second document", config: local("---\nlog: {level: info}\n"), code: 2, names: []string{"second YAML document"}},
	{name: "a list where one value belongs", config: local("on_stop: [stay]\n"), code: 2, names: []string{"on_stop"}},
	{name: "one value where a list belongs", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: public.outbox}\nkafka: {brokers: 'a:9092'}\n", code: 2, names: []string{"outbox.tables", "kafka.brokers"}},
	{name: "a URL of another database", config: "postgres: {url: 'mysql://db.internal/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"postgres.url"}},
	{name: "a slot name with capitals", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: My-Slot, publication: cdcpub}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"postgres.slot", "My-Slot"}},
	{name: "a table without its schema", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [outbox]}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"outbox.tables[0]"}},
	{name: "a broker without its port", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [kafka-1]}\n", code: 2, names: []string{"kafka.brokers[0]", "kafka-1"}},
	{name: "a broker as a URL", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: ['kafka://kafka-1:9092']}\n", code: 2, names: []string{"kafka.brokers[0]", "host:port"}},
	{name: "a topic that no topic can be named", config: local("") + "log: {level: info}\n", env: []string{"CDCPUB_KAFKA_TOPIC=orders/{aggregate_type}"}, code: 2, names: []string{"kafka.topic", "CDCPUB_KAFKA_TOPIC"}},
	{name: "a duration without its unit", config: local("shutdown_timeout: 10\n"), code: 2, names: []string{"shutdown_timeout"}},
	{name: "a size that is none", config: local("window: {bytes: 8 megs}\n"), code: 2, names: []string{"window.bytes"}},
	{name: "a value outside its range", config: local("window: {records: 0}\n"), code: 2, names: []string{"window.records"}},
	{name: "an unknown choice", config: local("on_poison: skip\n"), code: 2, names: []string{"on_poison", "stop"}},
	{name: "an unknown preset", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox], preset: debezum}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"outbox.preset", "debezium"}},
	{name: "a header without the event id", config: "postgres: {url: 'postgres://127.0.0.1/shop', slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox], headers: {type: event_type}}\nkafka: {brokers: [a:9092]}\n", code: 2, names: []string{"outbox.headers", "event_id"}},
	{name: "an address to listen at that is none", config: local("http: {listen: 9477}\n"), code: 2, names: []string{"http.listen"}},
	{name: "an unknown variable", config: local(""), env: []string{"CDCPUB_KAFKA_BROKER=a:9092"}, code: 2, names: []string{"CDCPUB_KAFKA_BROKER", "CDCPUB_KAFKA_BROKERS"}},
	{name: "a variable that is no number", config: local(""), env: []string{"CDCPUB_WINDOW_RECORDS=many"}, code: 2, names: []string{"CDCPUB_WINDOW_RECORDS"}},
	{name: "three at once", config: local("window: {records: 0}\nlog: {level: loud}\non_stop: leave\n"), code: 2, names: []string{"window.records", "log.level", "on_stop"}},
}

// security are mistakes with passwords, certificates and modes.
var security = []mistake{
	{name: "two passwords", config: local("") + "", env: []string{"CDCPUB_POSTGRES_URL=postgres://cdcpub:SECRET@127.0.0.1/shop", "CDCPUB_POSTGRES_PASSWORD_FILE=/run/secrets/password"}, code: 2, names: []string{"postgres.password_file", "postgres.url"}},
	{name: "a password file that is not there", config: local(""), env: []string{"CDCPUB_POSTGRES_PASSWORD_FILE=/run/secrets/password"}, code: 2, names: []string{"postgres.password_file", "/run/secrets/password"}},
	{name: "a password file that is empty", config: local(""), env: []string{"CDCPUB_POSTGRES_PASSWORD_FILE=/dev/null"}, code: 2, names: []string{"postgres.password_file", "/dev/null"}},
	{name: "a password command that is not there", config: local(""), env: []string{"CDCPUB_POSTGRES_PASSWORD_COMMAND=no-such-program,--print"}, code: 2, names: []string{"postgres.password_command", "no-such-program"}},
	{name: "a password command as one text", config: local(""), env: []string{"CDCPUB_POSTGRES_PASSWORD_COMMAND=aws rds generate-db-auth-token"}, code: 2, names: []string{"postgres.password_command"}},
	{name: "a webhook's key that is not there", config: local(""), env: []string{"CDCPUB_SLOT_MONITOR_WEBHOOK_URL=https://alerts.internal/hook", "CDCPUB_SLOT_MONITOR_WEBHOOK_SECRET_FILE=/run/secrets/hook"}, code: 2, names: []string{"slot_monitor.webhook.secret_file", "/run/secrets/hook"}},
	{name: "SASL without a user", config: local(""), env: []string{"CDCPUB_KAFKA_SASL_MECHANISM=SCRAM-SHA-512"}, code: 2, names: []string{"kafka.sasl.user"}},
	{name: "an unknown SASL mechanism", config: local(""), env: []string{"CDCPUB_KAFKA_SASL_MECHANISM=SCRAM"}, code: 2, names: []string{"kafka.sasl.mechanism", "SCRAM-SHA-256"}},
	{name: "a SASL password file that is not there", config: local(""), env: []string{"CDCPUB_KAFKA_SASL_MECHANISM=PLAIN", "CDCPUB_KAFKA_SASL_USER=cdcpub", "CDCPUB_KAFKA_SASL_PASSWORD_FILE=/run/secrets/kafka"}, code: 2, names: []string{"kafka.sasl.password_file", "/run/secrets/kafka"}},
	{name: "AWS_MSK_IAM without a region", config: local(""), env: []string{"CDCPUB_KAFKA_SASL_MECHANISM=AWS_MSK_IAM", "CDCPUB_KAFKA_TLS_ENABLED=true", "AWS_REGION=", "AWS_DEFAULT_REGION="}, code: 2, names: []string{"kafka.sasl.aws.region"}},
	{name: "an unknown sslmode", config: local(""), env: []string{"CDCPUB_POSTGRES_URL=postgres://127.0.0.1/shop?sslmode=always"}, code: 2, names: []string{"postgres.url", "sslmode"}},
	{name: "a CA file of PostgreSQL that is not there", config: local(""), env: []string{"CDCPUB_POSTGRES_URL=postgres://127.0.0.1/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem"}, code: 2, names: []string{"/etc/ca.pem"}},
	{name: "TLS settings without TLS", config: local(""), env: []string{"CDCPUB_KAFKA_TLS_CA_FILE=/etc/ca.pem"}, code: 2, names: []string{"kafka.tls.ca_file", "kafka.tls.enabled"}},
	{name: "a CA file of Kafka that is not there", config: local(""), env: []string{"CDCPUB_KAFKA_TLS_ENABLED=true", "CDCPUB_KAFKA_TLS_CA_FILE=/etc/ca.pem"}, code: 2, names: []string{"kafka.tls.ca_file", "/etc/ca.pem"}},
	{name: "a certificate without its key", config: local(""), env: []string{"CDCPUB_KAFKA_TLS_ENABLED=true", "CDCPUB_KAFKA_TLS_CERT_FILE=/etc/cdcpub.pem"}, code: 2, names: []string{"cert_file", "key_file"}},
}

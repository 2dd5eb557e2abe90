package badinput

// commandLine are mistakes of typing.
var commandLine = []mistake{
	{name: "no command", args: []string{}, code: 2, names: []string{"run", "--help"}},
	{name: "no such command", args: []string{"start"}, code: 2, names: []string{"start", "--help"}},
	{name: "a command mistyped", args: []string{"rnu"}, code: 2, names: []string{"rnu", "run"}},
	{name: "no such flag", args: []string{"run", "--brokers", "kafka:9092"}, code: 2, names: []string{"--brokers"}},
	{name: "a flag without its value", args: []string{"run", "-c"}, code: 2, names: []string{"--config"}},
	{name: "a flag mistyped", args: []string{"run", "--confg", "cdcpub.yaml"}, code: 2, names: []string{"--confg", "--config"}},
	{name: "a value that a flag does not have", args: []string{"slot", "list", "-o", "xml"}, code: 2, names: []string{"xml", "json"}},
	{name: "a shell that is not known", args: []string{"completion", "tcsh"}, code: 2, names: []string{"tcsh", "bash"}},
	{name: "no shell", args: []string{"completion"}, code: 2, names: []string{"bash"}},
	{name: "an argument too many", args: []string{"run", "now"}, code: 2, names: []string{"now"}},
	{name: "no slot command", args: []string{"slot"}, code: 2, names: []string{"status"}},
	{name: "no such slot command", args: []string{"slot", "remove", "cdcpub"}, code: 2, names: []string{"remove"}},
	{name: "a duration without its unit", args: []string{"init", "--timeout", "5"}, code: 2, names: []string{"--timeout"}},
	{name: "no configuration file", args: []string{"run"}, code: 2, names: []string{"cdcpub.yaml", "-c FILE", "CDCPUB_"}},
	{name: "no configuration file, and variables that are not enough", args: []string{"run"}, env: []string{"CDCPUB_POSTGRES_URL=postgres://127.0.0.1/shop", "CDCPUB_KAFKA_BROKERS=a:9092"}, code: 2, names: []string{"CDCPUB_POSTGRES_SLOT=", "CDCPUB_OUTBOX_TABLES=", "-c FILE"}},
	{name: "a file that a variable names and is not there", args: []string{"run"}, config: " ", env: []string{"CDCPUB_CONFIG=elsewhere.yaml"}, code: 2, names: []string{"elsewhere.yaml"}},
	{name: "a configuration file that is not there", args: []string{"run", "-c", "production.yaml"}, code: 2, names: []string{"production.yaml"}},
	{name: "a directory for the configuration file", args: []string{"run", "-c", "/etc"}, code: 2, names: []string{"/etc"}},
	{name: "slot status of no server", args: []string{"slot", "list"}, code: 2, names: []string{"cdcpub.yaml", "--url"}},
	{name: "a URL that is none", args: []string{"slot", "list", "--url", "db.internal:5432"}, code: 2, names: []string{"--url"}},
}

package badinput

// commandLine are mistakes of typing.
var commandLine = []mistake{
	{name: "no command", args: []string{}, code: 2, names: []string{"run", "--help"}},
	{name: "no such command", args: []string{"start"}, code: 2, names: []string{"start", "--help"}},
	{name: "a command mistyped", args: []string{"rnu"}, code: 2, names: []string{"rnu", "run"}},
	{name: "no such flag", args: []string{"run", "--brokers", "kafka:9092"}, code: 2, names: []string{"--brokers"}},
	{name: "a flag without its value", args: []string{"run", "-c"}, code: 2, names: []string{"--config"}},
	{name: "an argument too many", args: []string{"run", "now"}, code: 2, names: []string{"now"}},
	{name: "no slot command", args: []string{"slot"}, code: 2, names: []string{"status"}},
	{name: "no such slot command", args: []string{"slot", "remove", "cdcpub"}, code: 2, names: []string{"remove"}},
	{name: "a duration without its unit", args: []string{"init", "--timeout", "5"}, code: 2, names: []string{"--timeout"}},
	{name: "no configuration file", args: []string{"run"}, config: " ", env: []string{"CDCPUB_CONFIG=elsewhere.yaml"}, code: 2, names: []string{"elsewhere.yaml"}},
	{name: "a configuration file that is not there", args: []string{"run", "-c", "production.yaml"}, code: 2, names: []string{"production.yaml"}},
	{name: "a directory for the configuration file", args: []string{"run", "-c", "/etc"}, code: 2, names: []string{"/etc"}},
	{name: "slot status of no server", args: []string{"slot", "list"}, code: 2, names: []string{"CDCPUB_POSTGRES_URL"}},
	{name: "a URL that is none", args: []string{"slot", "list", "--url", "db.internal:5432"}, code: 2, names: []string{"--url"}},
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cdcpub/cdcpub/internal/config"
)

// process is everything a command may touch of the process it runs in.
type process struct {
	args           []string
	env            []string
	stdout, stderr io.Writer
	signals        <-chan os.Signal
	// stdin can be asked if a human sits at it; nil if none does.
	stdin io.Reader
}

// configFile is the file that is read when the command line names none.
func (p *process) configFile() string {
	file := "cdcpub.yaml"
	for _, variable := range p.env {
		if value, ok := strings.CutPrefix(variable, "CDCPUB_CONFIG="); ok && value != "" {
			file = value
		}
	}
	return file
}

type commands struct {
	Run          runCommand        `cmd:"" help:"Publish the outbox until stopped."`
	Init         initCommand       `cmd:"" help:"Create, or print as SQL, roles, outbox tables, publication, slot and topics where they are missing."`
	Check        checkCommand      `cmd:"" help:"Look at PostgreSQL and Kafka before the first start: everything that would fail, each with its cure."`
	Slot         slotCommand       `cmd:"" help:"Look at, watch and change replication slots."`
	Config       configCommand     `cmd:"" help:"Look at the configuration."`
	Version      versionCommand    `cmd:"" help:"Print the version."`
	Completion   completionCommand `cmd:"" help:"Print a script that makes a shell complete commands and flags."`
	Complete     completeCommand   `cmd:"" hidden:"" help:"Print what the last word may become."`
	demoCommands `embed:""`
}

// configFile is the flag that every command shares.
type configFile struct {
	Config string `short:"c" name:"config" placeholder:"FILE" default:"${config}" help:"Configuration file; by default $CDCPUB_CONFIG, else cdcpub.yaml."`
}

func (f configFile) load(p *process) (*config.Config, error) {
	loaded, err := config.Load(f.Config, p.env)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return loaded, nil
}

// Exit codes, as the command's documentation lists them.
const (
	exitDone     = 0
	exitFailure  = 1
	exitUsage    = 2
	exitRefused  = 3
	exitDecision = 4
)

// exitError gives an error its exit code. silent: the error was reported.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// helped ends parsing after --help.
type helped struct{}

// run parses the arguments, executes the command and returns the exit code.
func run(ctx context.Context, p process) (code int) {
	defer func() {
		if stop := recover(); stop != nil {
			if _, ok := stop.(helped); !ok {
				panic(stop)
			}
			code = exitDone
		}
	}()
	var cli commands
	parser, err := kong.New(&cli, kong.Name("cdcpub"),
		kong.Description("Publishes a PostgreSQL outbox to Kafka, in commit order, losing nothing."),
		kong.Writers(p.stdout, p.stderr), kong.Exit(func(int) { panic(helped{}) }),
		kong.Vars{"config": p.configFile()},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&p))
	if err != nil {
		panic(err) // the command line's own definition is wrong
	}
	parsed, err := parser.Parse(p.args)
	if err != nil && p.misusedStatus(err) {
		return exitUnknown
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "cdcpub: %v\nTry: cdcpub --help\n", err)
		return exitUsage
	}
	return p.report(parsed.Run())
}

// report prints what went wrong, once, and returns the exit code.
func (p *process) report(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitDone
	case !errors.As(err, &exit):
		exit = &exitError{code: exitFailure, err: err}
	}
	if !exit.silent {
		fmt.Fprintf(p.stderr, "cdcpub: %s\n", strings.TrimSuffix(exit.Error(), "\n"))
	}
	return exit.code
}

type configCommand struct {
	Print configPrintCommand `cmd:"" help:"Print the effective configuration, secrets redacted, with the origin of each value."`
}

type configPrintCommand struct{ configFile }

// Help is shown below the flags' overview.
func (configPrintCommand) Help() string {
	return `What it prints is a configuration file again, with every setting. All problems of
a configuration are reported at once, with exit code 2.

Example:

    CDCPUB_WINDOW_BYTES=32MiB cdcpub config print -c cdcpub.yaml`
}

func (c *configPrintCommand) Run(p *process) error {
	loaded, err := c.load(p)
	if err != nil {
		return err
	}
	return loaded.Print(p.stdout)
}

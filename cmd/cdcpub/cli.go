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

// configFile is the file that CDCPUB_CONFIG names, "" if it names none.
func (p *process) configFile() (file string) {
	for _, variable := range p.env {
		if value, ok := strings.CutPrefix(variable, "CDCPUB_CONFIG="); ok {
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
	Config *string `short:"c" name:"config" placeholder:"FILE" help:"Configuration file; by default $CDCPUB_CONFIG, else cdcpub.yaml, else none if there are CDCPUB_ variables; an empty string for none."`
}

func (f configFile) load(p *process) (*config.Config, error) {
	return f.loadFor(p, config.NeedStream)
}

func (f configFile) loadFor(p *process, need config.Need) (*config.Config, error) {
	path, named, err := f.path(p)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	loaded, err := config.LoadFor(path, p.env, need)
	if err != nil && path == "" && !named {
		err = fmt.Errorf("%w\nthere is no %s in this directory, so only variables were read; name a file with -c FILE or CDCPUB_CONFIG, or state these too", err, config.DefaultFile)
	}
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return loaded, nil
}

// path is the file to read, "" for none. named tells that somebody said so.
func (f configFile) path(p *process) (path string, named bool, err error) {
	if f.Config != nil {
		return *f.Config, true, nil
	}
	if path = p.configFile(); path != "" {
		return path, true, nil
	}
	path, err = config.Locate(p.env)
	return path, false, err
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
		durationFlags, kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&p))
	if err != nil {
		panic(err) // the command line's own definition is wrong
	}
	parsed, err := parser.Parse(p.args)
	if err == nil {
		return p.report(parsed.Run())
	}
	wrong := misuse(parser.Model.Node, p.args, err)
	if p.misusedStatus(wrong) {
		return exitUnknown
	}
	return p.report(&exitError{code: exitUsage, err: wrong})
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
a configuration are reported at once, with exit code 2. One that names
slot_monitor.servers and states nothing of a stream is for "cdcpub slot watch", and
needs nothing else.

Example:

    CDCPUB_WINDOW_BYTES=32MiB cdcpub config print -c cdcpub.yaml`
}

func (c *configPrintCommand) Run(p *process) error {
	loaded, err := c.loadFor(p, config.NeedStated)
	if err != nil {
		return err
	}
	return loaded.Print(p.stdout)
}

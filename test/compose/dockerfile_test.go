package compose

import (
	"bufio"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// instruction is one of the Dockerfile: FROM with its arguments.
type instruction struct{ name, arguments string }

// dockerfile reads the instructions, with continued lines joined.
func dockerfile(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	must(t, err)
	var all []instruction
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(text), "\\\n", " ")))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, arguments, _ := strings.Cut(line, " ")
		all = append(all, instruction{name, strings.Join(strings.Fields(arguments), " ")})
	}
	return all
}

func only(t *testing.T, all []instruction, name string) string {
	t.Helper()
	var found []string
	for _, i := range all {
		if i.name == name {
			found = append(found, i.arguments)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the Dockerfile has %d times %s, want 1: %q", len(found), name, found)
	}
	return found[0]
}

// buildCommand matches from the first variable of a build to its package.
var buildCommand = regexp.MustCompile(`CGO_ENABLED=0 \S+ build .*\./cmd/cdcpub`)

// buildOf is the build command in text, with the names of the program and of
// its output, and the way a variable is written, made equal.
func buildOf(t *testing.T, text string) string {
	t.Helper()
	found := buildCommand.FindAllString(text, -1)
	if len(found) != 1 {
		t.Fatalf("found %d build commands, want 1:\n%s", len(found), text)
	}
	command := strings.NewReplacer("$(GO)", "go", "$(VERSION)", "$VERSION", "${VERSION}", "$VERSION").Replace(found[0])
	return regexp.MustCompile(` -o \S+`).ReplaceAllString(command, " -o OUTPUT")
}

func TestTheImageIsTheReleaseBuild(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	must(t, err)
	want, got := buildOf(t, string(makefile)), buildOf(t, only(t, dockerfile(t), "RUN"))
	if got != want {
		t.Errorf("the Dockerfile builds with\n%s\nmake build with\n%s", got, want)
	}
}

func TestTheImageHasOneProgramAndNoRoot(t *testing.T) {
	all := dockerfile(t)
	var stages []string
	for _, i := range all {
		if i.name == "FROM" {
			stages = append(stages, i.arguments)
		}
	}
	if len(stages) != 2 || stages[1] != "scratch" {
		t.Fatalf("stages %q, want a build and an empty image", stages)
	}
	image := strings.Fields(strings.TrimPrefix(stages[0], "--platform=$BUILDPLATFORM "))[0]
	if !exactVersion.MatchString(image) {
		t.Errorf("base image %q does not name one release", image)
	}
	if compiler, needed := version(t, image), version(t, readModule(t)); compiler != needed && !newer(compiler, needed) {
		t.Errorf("Go %s of the image is older than %s of go.mod, and images do not fetch another", compiler, needed)
	}
	if user := only(t, all, "USER"); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Errorf("USER %s is no number, or root", user)
	}
	if entry := only(t, all, "ENTRYPOINT"); entry != `["/cdcpub"]` {
		t.Errorf("ENTRYPOINT %s", entry)
	}
	last := ""
	for _, i := range all {
		if i.name == "WORKDIR" {
			last = i.arguments
		}
	}
	if last != filepath.Dir(configurationTarget) {
		t.Errorf("WORKDIR %s is not where the configuration is mounted", last)
	}
}

func TestTheBuildContextHasEverythingThatIsCopied(t *testing.T) {
	made := map[string]bool{"/cdcpub": true, "/etc/ssl/certs/ca-certificates.crt": true}
	for _, i := range dockerfile(t) {
		if i.name != "COPY" {
			continue
		}
		words := strings.Fields(i.arguments)
		fromStage := strings.HasPrefix(words[0], "--from=build")
		if fromStage {
			words = words[1:]
		}
		for _, source := range words[:len(words)-1] {
			if fromStage {
				if !made[source] {
					t.Errorf("COPY %s: the build stage has no %s", i.arguments, source)
				}
			} else if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("COPY %s: %v", i.arguments, err)
			}
		}
	}
	for _, line := range ignored(t) {
		for _, needed := range []string{"go.mod", "go.sum", "cmd", "internal", "wal", "router", "checkpoint", "slotmon"} {
			if line == needed || line == "*" {
				t.Errorf(".dockerignore leaves out %s, which is built", needed)
			}
		}
	}
}

// ignored are the lines of .dockerignore.
func ignored(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	must(t, err)
	return strings.Fields(string(text))
}

// TestTheBuildOfTheImageIsStaticAndHasNoDemo runs the build command of the
// Dockerfile in a copy of the build context.
func TestTheBuildOfTheImageIsStaticAndHasNoDemo(t *testing.T) {
	source, output := buildContext(t), filepath.Join(t.TempDir(), "cdcpub")
	run := only(t, dockerfile(t), "RUN")
	for strings.HasPrefix(run, "--mount=") {
		_, run, _ = strings.Cut(run, " ")
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(run, "-o /cdcpub", "-o "+output, 1))
	shell.Dir = source
	shell.Env = append(os.Environ(), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "VERSION=1.2.3")
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", run, err, out)
	}
	static(t, output)
	info, err := buildinfo.ReadFile(output)
	must(t, err)
	for _, module := range info.Deps {
		if strings.Contains(module.Path, "kfake") || strings.Contains(module.Path, "embedded-postgres") {
			t.Errorf("the image has %s, a part of the demo", module.Path)
		}
	}
	said := harness.StartProcess(t, harness.ProcessOptions{Binary: output, Args: []string{"version"}})
	if code, err := said.Wait(t.Context()); code != 0 || err != nil || strings.TrimSpace(said.Stdout()) != "cdcpub 1.2.3" {
		t.Errorf("version ends with %d, %v: %q", code, err, said.Stdout())
	}
	demo := harness.StartProcess(t, harness.ProcessOptions{Binary: output, Args: []string{"demo", "--events", "1"}})
	if code, err := demo.Wait(t.Context()); code != 2 || err != nil {
		t.Errorf("demo ends with %d, %v, want no such command (2): %s", code, err, demo.Stderr())
	}
}

// static fails unless the program needs no other file to run.
func static(t *testing.T, path string) {
	t.Helper()
	program, err := elf.Open(path)
	must(t, err)
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic loader, which the image has not")
		}
	}
	if libraries, err := program.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("the program needs %v, which the image has not", libraries)
	} else if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Error(err)
	}
}

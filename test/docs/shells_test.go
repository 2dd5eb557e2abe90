package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// Each program is given a script that completes `cdcpub slot status --output n`,
// `cdcpub slot dra` and `cdcpub run -c ` in the shell itself, and prints what it
// is offered, a line each.
var shells = map[string]string{
	"bash": `
eval "$(cdcpub completion bash)" || exit 1
complete -p cdcpub >/dev/null || exit 1
compopt() { echo "files: $*"; } # not allowed outside of a completion
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cdcpub; printf '%s\n' "${COMPREPLY[@]}"; }
try cdcpub slot status --output n
try cdcpub slot status --output = n
try cdcpub slot dra
try cdcpub run -c ''
`,
	"zsh": `
autoload -Uz compinit && compinit -u -d "$HOME/zcompdump" || exit 1
eval "$(cdcpub completion zsh)" || exit 1
[[ $_comps[cdcpub] == _cdcpub ]] || exit 1
_describe() { print -l -- "${(@P)2}" }
_files() { print files }
try() { words=("$@"); CURRENT=$#; _cdcpub }
try cdcpub slot status --output n
try cdcpub slot dra
try cdcpub run -c ''
`,
	"fish": `
cdcpub completion fish | source; or exit 1
complete -C 'cdcpub slot status --output n'
complete -C 'cdcpub slot dra'
complete -C 'cdcpub run -c fil'
`,
}

func TestShellsComplete(t *testing.T) {
	binary := shared.Binary(t, harness.BuildOptions{})
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Fatalf("%v\nto install it: apt-get update && apt-get install -y --no-install-recommends %s", err, shell)
			}
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, "files"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), program, "-c", script)
			command.Dir = home
			command.Env = []string{"PATH=" + filepath.Dir(binary) + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "LC_ALL=C.UTF-8"}
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{"nagios", "drain", "files"} {
				if !strings.Contains("\n"+string(out), "\n"+want) {
					t.Errorf("%s does not offer %s:\n%s", shell, want, out)
				}
			}
			for _, wrong := range []string{"table", "status", "not found", "rror"} {
				if strings.Contains(string(out), wrong) {
					t.Errorf("%s says %s:\n%s", shell, wrong, out)
				}
			}
		})
	}
}

package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// oldestJava is the oldest Java that runs Kafka's brokers (KIP-1013).
const oldestJava = 17

// repository is the directory of the module: two above this source file.
func repository() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("the harness does not know where its source is: build the tests without -trimpath")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
}

// Java is a program to run and the jars that test/NAME/pom.xml gives it.
type Java struct {
	Program string
	Jars    string // directory
}

// FindJava finds Java and fetches the jars of test/NAME/pom.xml.
func FindJava(t testing.TB, name string) Java {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	program, _, err := findJava(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := jars(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return Java{Program: program, Jars: dir}
}

// jars returns a directory with the jars that test/NAME/pom.xml names. It is
// made once per content of that file.
func jars(ctx context.Context, name string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	pom := filepath.Join(root, "test", name, "pom.xml")
	content, err := os.ReadFile(pom)
	if err != nil {
		return "", err
	}
	cache, err := pgserver.CacheDir()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(content)
	dir := filepath.Join(cache, name, hex.EncodeToString(hash[:8]))
	err = pgserver.Once(ctx, dir, func(empty string) error {
		maven, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("Maven is needed to fetch it: apt-get install -y maven")
		}
		fetch := exec.CommandContext(ctx, maven, "--quiet", "--batch-mode", "--file", pom, "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory="+empty)
		if out, err := fetch.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", fetch, err, out)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("no jars of %s: %w", pom, err)
	}
	return dir, nil
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava returns a java program that can run the broker, and what it says
// about its version.
func findJava(ctx context.Context) (java string, banner []byte, err error) {
	const install = "apt-get install -y openjdk-17-jre-headless"
	java, err = exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return "", nil, fmt.Errorf("no Java for Apache Kafka (%w): %s", err, install)
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", nil, fmt.Errorf("%s -version: %w\n%s", java, err, bytes.TrimSpace(out))
	}
	match := javaVersion.FindSubmatch(out)
	if match == nil {
		return "", nil, fmt.Errorf("%s -version says %q, which has no version", java, out)
	}
	if major, err := strconv.Atoi(string(match[1])); err != nil || major < oldestJava {
		return "", nil, fmt.Errorf("%s is Java %s, Apache Kafka needs %d or newer: %s", java, match[1], oldestJava, install)
	}
	return java, out, nil
}

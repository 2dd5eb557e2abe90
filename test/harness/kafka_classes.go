package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// software is what a broker is run with.
type software struct {
	java, jars string
	// classes is an archive of the classes that a broker loads, already parsed
	// and verified (JEP 350): with it a start costs half of the CPU time.
	classes string
	// recording makes the archive instead of using it.
	recording bool
}

// brokerFlag is the JVM's flag for the archive.
func (s software) brokerFlag() string {
	if s.recording {
		return "-XX:ArchiveClassesAtExit=" + s.classes
	}
	return s.toolFlag()
}

// toolFlag is the same for programs that only use the archive. The JVM starts
// without it if it does not exist.
func (s software) toolFlag() string { return "-XX:SharedArchiveFile=" + s.classes }

// findSoftware finds Java, fetches Kafka, and makes the class archive by one
// run of a broker. It is kept for the same Java and the same jars; with others
// the JVM would ignore it.
func findSoftware(ctx context.Context) (software, error) {
	java, banner, err := findJava(ctx)
	if err != nil {
		return software{}, err
	}
	jars, err := jars(ctx, "kafka")
	if err != nil {
		return software{}, err
	}
	cache, err := pgserver.CacheDir()
	if err != nil {
		return software{}, err
	}
	hash := sha256.Sum256(append([]byte(java+"\n"+jars+"\n"), banner...))
	dir := filepath.Join(cache, "kafka-classes", hex.EncodeToString(hash[:8]))
	const name = "classes.jsa"
	err = pgserver.Once(ctx, dir, func(empty string) error {
		archive := filepath.Join(empty, name)
		cluster, err := runCluster(ctx, software{java: java, jars: jars, classes: archive, recording: true}, KafkaOptions{Brokers: 1})
		if err != nil {
			return err
		}
		err = errors.Join(cluster.Stop(0), cluster.Close())
		if err == nil {
			_, err = os.Stat(archive)
		}
		return err
	})
	if err != nil {
		return software{}, err
	}
	return software{java: java, jars: jars, classes: filepath.Join(dir, name)}, nil
}

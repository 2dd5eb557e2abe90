package scenarios

import (
	"flag"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) {
	flag.Parse()
	// Which scenarios run at once is decided below, not by their order in the
	// source: all of them may wait.
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", "1000")
	}
	if os.Getenv(harness.VersionVariable) == "" {
		_ = os.Setenv(harness.VersionVariable, newest)
		shared.AtEnd(unplanned)
	}
	shared.AtEnd(func() error { printVerdicts(); return nil })
	harness.Main(m, &shared)
}

func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// places bounds how many scenarios run at the same time. They wait more than
// they work, so it is above the number of processors.
var places = make(chan struct{}, runtime.NumCPU()+2)

// besides has the names of the tests that run beside others.
var besides sync.Map

// beside is t.Parallel, which may be called only once, for tests that are also
// called by others.
func beside(t *testing.T) {
	t.Helper()
	if _, called := besides.LoadOrStore(t.Name(), true); called {
		return
	}
	t.Cleanup(func() { besides.Delete(t.Name()) })
	t.Parallel()
}

// parallel lets a scenario run beside others, once there is a place for it. A
// scenario may do so if it harms nothing but its own database and topics, or
// servers of its own.
func parallel(t *testing.T) {
	t.Helper()
	beside(t)
	t.Cleanup(func() { ended(t.Name(), t.Failed()) })
	places <- struct{}{}
	t.Cleanup(func() { <-places })
}

var proxiedCluster sync.Mutex

// proxied is parallel for a scenario that disturbs the one shared cluster
// behind proxies: it has the cluster to itself.
func proxied(t *testing.T) *harness.Cluster {
	t.Helper()
	beside(t)
	t.Cleanup(func() { ended(t.Name(), t.Failed()) })
	proxiedCluster.Lock()
	t.Cleanup(proxiedCluster.Unlock)
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	cluster := shared.Kafka(t, harness.KafkaOptions{ViaProxy: true})
	t.Cleanup(func() {
		if err := cluster.Proxy(0).Restore(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

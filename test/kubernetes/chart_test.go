package kubernetes

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Paths from this directory.
const (
	repository   = "../.."
	manifestsDir = "../../deploy/kubernetes"
	chartDir     = "../../deploy/helm/cdcpub"
)

// release is what is installed: `helm install NAME --namespace NAMESPACE`.
type release struct {
	name, values string
	// cluster is its version; "" is the oldest.
	cluster string
}

// oldest is the version of Kubernetes that manifests and chart need.
const oldest = "v1.27.0"

// standard is the release that the plain manifests are.
var standard = release{name: "cdcpub"}

// rendered is what a chart makes of values.
type rendered struct {
	// objects are installed, tests are those of `helm test`.
	objects, tests []object
	notes          string
}

// render does what `helm template` does, validation of the values included.
func (r release) render() (*rendered, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	stated, err := chartutil.ReadValues([]byte(r.values))
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(r.cluster, oldest))
	if err != nil {
		return nil, err
	}
	capabilities.KubeVersion = *version
	if !chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("kubeVersion %s excludes %s", chart.Metadata.KubeVersion, capabilities.KubeVersion)
	}
	values, err := chartutil.ToRenderValues(chart, stated, chartutil.ReleaseOptions{Name: r.name, Namespace: "events", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	all := &rendered{}
	for path, text := range files {
		if filepath.Base(path) == "NOTES.txt" {
			all.notes = text
			continue
		}
		objects, err := split(path, strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			switch o.hook() {
			case "":
				all.objects = append(all.objects, o)
			case "test":
				all.tests = append(all.tests, o)
			default:
				return nil, fmt.Errorf("%s: hook %q", o, o.hook())
			}
		}
	}
	return all, nil
}

// must renders, or ends the test.
func (r release) must(t *testing.T) *rendered {
	t.Helper()
	all, err := r.render()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// manifests are the objects of the files in a directory, as `kubectl apply -f`
// reads it: without the directories in it.
func manifests(t *testing.T, directory string) []object {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(manifestsDir, directory, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no manifests in %q: %v", directory, err)
	}
	var all []object
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := split(path, file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects...)
	}
	return all
}

// split reads the objects of a stream of YAML documents.
func split(path string, stream io.Reader) ([]object, error) {
	var all []object
	documents := yaml.NewYAMLReader(bufio.NewReader(stream))
	for {
		text, err := documents.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		o, err := decode(path, text)
		if err != nil {
			return nil, err
		}
		if o != nil {
			all = append(all, *o)
		}
	}
}

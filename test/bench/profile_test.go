package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileTime is how long processor time is recorded.
const profileTime = 5 * time.Second

// keepProfile writes NAME.heap, a second after the start, and NAME.cpu, for `go
// tool pprof`. A subject that ends earlier leaves what there is.
func keepProfile(address, name string) {
	time.Sleep(time.Second)
	for _, one := range []struct{ kind, query string }{
		{"heap", "heap"},
		{"cpu", fmt.Sprintf("profile?seconds=%d", profileTime/time.Second)},
	} {
		// The benchmark may be over by then.
		if err := fetch("http://"+address+"/debug/pprof/"+one.query, filepath.Join(*profiles, name+"."+one.kind)); err != nil {
			fmt.Fprintf(os.Stderr, "profile %s of %s: %v\n", one.kind, name, err)
		}
	}
}

func fetch(url, path string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, response.Body)
	return err
}

package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// profileTime is how long processor time is recorded, a second after the start.
const profileTime = 5 * time.Second

// keepProfile writes NAME.cpu and NAME.heap, for `go tool pprof`. A subject that
// ends earlier leaves what there is.
func keepProfile(b *testing.B, address, name string) {
	time.Sleep(time.Second)
	for kind, query := range map[string]string{
		"cpu":  fmt.Sprintf("profile?seconds=%d", profileTime/time.Second),
		"heap": "heap",
	} {
		if err := fetch("http://"+address+"/debug/pprof/"+query, filepath.Join(*profiles, name+"."+kind)); err != nil {
			b.Logf("profile %s of %s: %v", kind, name, err)
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

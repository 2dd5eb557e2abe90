package scenarios

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// watchStatus collects what the publishers name as the causes of their stalls.
func (w *chaosWorld) watchStatus(ctx context.Context) {
	client := http.Client{Timeout: time.Second}
	for ctx.Err() == nil {
		for _, p := range w.publishers {
			if kind := stallOf(ctx, &client, p.listen); kind != "" {
				w.mu.Lock()
				w.stalls[kind] = true
				w.mu.Unlock()
			}
		}
		pause(ctx, 300*time.Millisecond)
	}
}

// stallOf is the kind of the stall, "" for none and for no answer.
func stallOf(ctx context.Context, client *http.Client, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", nil)
	if err != nil {
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var status struct {
		Stall *struct {
			Kind string `json:"kind"`
		} `json:"stall"`
	}
	if json.NewDecoder(response.Body).Decode(&status) != nil || status.Stall == nil {
		return ""
	}
	return status.Stall.Kind
}

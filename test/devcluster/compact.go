package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Compact compacts the control plane's storage to its latest revision, as the API server does every five minutes: older
// versions are gone for watches and lists that continue from them.
func (c *Cluster) Compact(ctx context.Context) error {
	var now struct {
		Header struct{ Revision string }
	}
	if err := c.etcdCall(ctx, "kv/range", map[string]any{"key": "AA=="}, &now); err != nil {
		return fmt.Errorf("compacting: %w", err)
	}
	if err := c.etcdCall(ctx, "kv/compaction", map[string]any{"revision": now.Header.Revision}, nil); err != nil {
		return fmt.Errorf("compacting: %w", err)
	}
	return nil
}

// etcdCall calls etcd's JSON gateway.
func (c *Cluster) etcdCall(ctx context.Context, path string, ask, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	url := "http://" + c.plane.address("etcd") + "/v3/" + path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of etcd: %s", path, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

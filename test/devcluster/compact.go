package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// compacted is what etcd says if nothing was written since the last compaction (server/storage/mvcc of etcd).
const compacted = "required revision has been compacted"

// Compact compacts the control plane's storage to its latest revision, as the API server does every five minutes: older
// versions are gone for watches and lists that continue from them.
func (c *Cluster) Compact(ctx context.Context) error {
	var now struct {
		Header struct{ Revision string }
	}
	if err := c.etcdCall(ctx, "kv/range", map[string]any{"key": "AA=="}, &now); err != nil {
		return fmt.Errorf("compacting: %w", err)
	}
	err := c.etcdCall(ctx, "kv/compaction", map[string]any{"revision": now.Header.Revision}, nil)
	if err != nil && !strings.Contains(err.Error(), compacted) {
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
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s of etcd: %s: %s", path, response.Status, why)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

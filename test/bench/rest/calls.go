package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/rig"
)

// patience is for a whole fleet to be seen, and for a request to be in a plan.
const patience = 30 * time.Second

func (f *fleet) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.heliostat.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := f.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// seen waits until every RayCluster was decided about with what its head said.
func (f *fleet) seen(ctx context.Context) error {
	begun := time.Now()
	for {
		var list apiv1.ClusterList
		if err := f.get(ctx, "/v1/rayclusters", &list); err != nil {
			return err
		}
		ready := 0
		for _, cluster := range list.Items {
			if cluster.Workers.Ready == 1 {
				ready++
			}
		}
		if ready == len(f.keys) {
			fmt.Printf("\n%d RayClusters decided about %.1f s after Heliostat was ready\n", ready,
				time.Since(begun).Seconds())
			return nil
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("only %d of %d RayClusters are seen with their worker; the log ends with:\n%s", ready,
				len(f.keys), f.heliostat.LastLines(5))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// served waits until requests of owners are kept: their definition is noticed while Heliostat runs.
func (f *fleet) served(ctx context.Context) error {
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		err := f.ask(ctx, f.keys[0], "first", 1)
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

// ask makes or replaces a request of an owner. Its bundle is one nobody else asks for, by which it is known again in a
// plan.
func (f *fleet) ask(ctx context.Context, key nodepool.ClusterKey, id string, amount int) error {
	body := fmt.Sprintf(`{"bundles":[{"resources":{"CPU":%d},"count":1}],"holdUntilDeleted":true}`, amount)
	return f.call(ctx, http.MethodPut, rig.RequestPath(key.Namespace, key.Name)+"/"+id, body)
}

// askPlainly replaces the request that has no owner.
func (f *fleet) askPlainly(ctx context.Context, key nodepool.ClusterKey, amount int) error {
	body := fmt.Sprintf(`{"bundles":[{"CPU":%d}]}`, amount)
	return f.call(ctx, http.MethodPost, rig.RequestPath(key.Namespace, key.Name), body)
}

func (f *fleet) call(ctx context.Context, method, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, f.heliostat.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s %s: %s %s", errTooMuch, method, path, response.Status, bytes.TrimSpace(answer))
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return nil
}

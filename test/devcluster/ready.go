package devcluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// readyTimeout bounds how long one part may take to be ready on a busy machine.
const readyTimeout = 2 * time.Minute

// Awaiting writes to Options.Out every 15 s that the cluster still waits for something, until the caller calls done.
func (c *Cluster) Awaiting(what string) (done func()) { return awaiting(c.options.Out, what) }

// ready waits until a part is ready.
func (c *Cluster) ready(ctx context.Context, part Part) error {
	checks := map[Part]func(context.Context) error{
		Etcd:              c.etcdReady,
		APIServer:         c.apiReady,
		ControllerManager: func(ctx context.Context) error { return defaultsExist(ctx, c.client) },
		Operator: func(ctx context.Context) error {
			return httpReady(ctx, "http://"+c.plane.address("operator-health")+"/readyz")
		},
		Kueue: c.kueueReady,
		Karpenter: func(ctx context.Context) error {
			return httpReady(ctx, "http://"+c.plane.address("karpenter-health")+"/readyz")
		},
		Kwok: func(ctx context.Context) error { return httpReady(ctx, "http://"+c.plane.address("kwok")+"/readyz") },
	}
	check, ok := checks[part]
	if !ok { // the scheduler serves nothing; a pod that comes too early waits for it
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	defer c.Awaiting(string(part))()
	if err := poll(ctx, 50*time.Millisecond, check); err != nil {
		return fmt.Errorf("waiting for %s: %w", part, err)
	}
	return nil
}

// etcdReady returns an error until etcd serves.
func (c *Cluster) etcdReady(ctx context.Context) error {
	return httpReady(ctx, "http://"+c.plane.address("etcd")+"/health")
}

// apiReady returns an error until the API server serves all of its API.
func (c *Cluster) apiReady(ctx context.Context) error {
	_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).DoRaw(ctx)
	return err
}

// httpReady returns an error unless a health endpoint answers 200.
func httpReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// restConfig reads a kubeconfig for tests, which send more than client-go's default of 5 requests per second.
func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 500, 1000
	return config, nil
}

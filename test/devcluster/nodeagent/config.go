package nodeagent

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config has the nodes to register and what their pods use on this machine.
type Config struct {
	// REST is the connection to the API server. Nil means Kubeconfig.
	REST *rest.Config
	// Kubeconfig is the path of a kubeconfig file, for a nil REST.
	Kubeconfig string
	// Nodes to register, with unique names.
	Nodes []NodeSpec
	// AdoptProvider is the beginning of spec.providerID of Nodes that others create, such as a node autoscaler. The
	// agent runs the pods of each such Node until the Node is deleted. Empty means none.
	AdoptProvider string
	// Images that containers can use. SetImage changes them later.
	Images Images
	// Dir is the directory for volumes, which the agent removes with their pods, and for logs, which stay. An absolute
	// path.
	Dir string
	// PodCIDR is the block of loopback addresses for nodes and pods, such as 127.1.2.0/24. Each agent on a machine
	// needs its own.
	PodCIDR string
	// APIServer is the host:port for the pods' KUBERNETES_SERVICE_HOST and _PORT.
	APIServer string
	// CAFile is the certificate authority of the API server, the ca.crt of a pod's service account.
	CAFile string
	// ClientCAFile, if set, makes the log and exec endpoints require a client certificate that this authority signed.
	// Without it, all users of this machine can use them. They listen on loopback addresses only.
	ClientCAFile string
	// MaxGracePeriod caps the time between SIGTERM and SIGKILL for a pod. Zero means no cap.
	MaxGracePeriod time.Duration
	// RestartBackoff is the pause before a container's second restart. It doubles up to 30 times this value. Zero means
	// 10 s, as for the kubelet.
	RestartBackoff time.Duration
	// RayStart, if set, is called before a Ray node starts and returns when the node may start. The agent calls done
	// when the node is ready or has failed. It limits how many nodes start at the same time.
	RayStart func(ctx context.Context) (done func(), err error)
	// Log is the agent's log. Nil discards it.
	Log *slog.Logger
}

// withDefaults returns the Config with its defaults and a copy of REST, or an error if a field is invalid.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.REST == nil {
		config, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		if err != nil {
			return cfg, fmt.Errorf("reading kubeconfig %q: %w", cfg.Kubeconfig, err)
		}
		cfg.REST = config
	}
	cfg.REST = rest.CopyConfig(cfg.REST)
	// One agent serves many nodes. client-go's default of 5 requests per second would slow it down.
	cfg.REST.QPS, cfg.REST.Burst = 500, 1000
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.RestartBackoff == 0 {
		cfg.RestartBackoff = 10 * time.Second
	}
	if !filepath.IsAbs(cfg.Dir) {
		return cfg, fmt.Errorf("directory %q is not an absolute path", cfg.Dir)
	}
	if cfg.Images == nil {
		cfg.Images = Images{}
	}
	for _, n := range cfg.Nodes {
		if err := n.Validate(); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

package podruntime

import (
	"context"
	"log/slog"
	"time"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/volume"
)

// Objects reads what pods refer to.
type Objects interface {
	volume.Source
	// ServiceAddress returns the address of a pod that the Service selects.
	ServiceAddress(ctx context.Context, namespace, name string) (string, error)
}

// Runtime is what all pods of an agent use.
type Runtime struct {
	Spawner   *sandbox.Spawner
	Addresses *loopback.Addresses
	Dirs      *volume.Dirs
	Objects   Objects
	// ImageDirectory returns the directory of an image's programs, or false if the image is unknown.
	ImageDirectory func(image string) (string, bool)
	// LogDir is the parent of the pods' log directories.
	LogDir string
	// APIServer is the host:port for KUBERNETES_SERVICE_HOST and _PORT.
	APIServer string
	// CAFile is the file with the certificate authority of the API server.
	CAFile string
	// MaxGracePeriod caps the time between SIGTERM and SIGKILL. Zero means no cap.
	MaxGracePeriod time.Duration
	// RestartBackoff is the pause before a container's second restart. It doubles up to 30 times this value.
	RestartBackoff time.Duration
	// RayStart, if set, is called before a Ray node starts and returns when the node may start. The pod calls done when
	// the node is ready or has failed.
	RayStart func(ctx context.Context) (done func(), err error)
	Log      *slog.Logger
}

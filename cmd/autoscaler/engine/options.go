package engine

import (
	"heliostat.dev/heliostat/internal/addon/costs"
	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// options are the flags of `serve` and of the sidecar, and what the process makes of them when it starts.
type options struct {
	loop                controller.Config
	features            features
	kubeconfig          string
	ports               portFlags
	logFormat, logLevel string
	kube                kube.Options
	gcsAddress          string
	nodes               cli.NodeReaderFlags
	// apiQPS limits requests to the API server; 0 is the default of kube.Manager.
	apiQPS float32
	// charts are the series that the page draws.
	charts api.Charts
	// ready tracks startup for the readiness probe.
	ready readiness
	// park ends the engine of a sidecar, which then starts again and waits until its RayCluster is given back.
	park func()
	// bounds knows how much of each bound of what the process keeps is in use.
	bounds telemetry.Bounds
	// recorder records decisions for callers of the REST API.
	recorder *Recorder
	// giveBack takes what callers want back.
	giveBack *giveback.Desk
	// prices are those of nodes, and costs adds up what workers cost.
	prices price.Book
	costs  *costs.Costs
}

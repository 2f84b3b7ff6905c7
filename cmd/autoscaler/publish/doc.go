// Package publish exposes the controller's decisions: as the REST server's views, history and comparisons, as metrics,
// and as spans. Besides engine it is the only package where the controller, the REST server and telemetry meet. It must
// not change a decision, write to Kubernetes, or start servers.
package publish

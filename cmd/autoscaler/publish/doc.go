// Package publish shows the controller's decisions to the outside: as the REST server's views, history and comparisons,
// and as metrics. Beside main it is the only package where the controller, the REST server and telemetry meet. It must
// not change a decision, write to Kubernetes, or start servers.
package publish

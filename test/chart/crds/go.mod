// This module compiles nothing: it pins where the resource definitions of others come from.
module heliostat.dev/heliostat/test/chart/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)

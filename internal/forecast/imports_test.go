package forecast

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestForecastsComeFromValuesAlone(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"net/": "a history is given", "net": "a history is given", "os": "a history is given",
		"log/slog": "a forecast is a result", "log": "a forecast is a result",
		"math/rand": "equal histories must give equal forecasts", "math/rand/v2": "equal histories must give equal forecasts",
		"k8s.io/": "package pkg/nodepool/kube/forecasts stores histories",
	})
}

package arrival

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestArrivalPackageStaysPure(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"net": "times are values", "os": "times are values", "log": "a state is a result", "log/slog": "a state is a result",
		"math/rand": "equal input must give an equal answer",
	})
}

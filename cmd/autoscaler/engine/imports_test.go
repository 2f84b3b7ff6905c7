package engine

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheProcessOnlyConnectsWhatServes(t *testing.T) {
	importtest.Imports(t, map[string]string{
		"internal/planner":         "the loop plans",
		"internal/planner/":        "the loop plans",
		"internal/snapshotfile":    "commands plan files",
		"internal/snapshotfile/":   "commands plan files",
		"internal/doctor":          "the command doctor examines objects",
		"internal/doctor/":         "the command doctor examines objects",
		"internal/cli/printer":     "a process that serves prints no answers",
		"internal/cli/table":       "a process that serves prints no answers",
		"internal/cli/watch":       "commands show answers",
		"internal/httpapi/client":  "commands call servers",
		"internal/access":          "package listen decides who may call",
		"internal/access/":         "package listen decides who may call",
		"golang.org/x/net/netutil": "package listen bounds connections",
		"net/http/pprof":           "package listen serves profiles",
		"runtime/metrics":          "package memorylimit reads what the runtime measures",
	})
}

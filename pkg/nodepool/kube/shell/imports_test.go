package shell_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestACommandIsReadAndNotRun(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"os":      "variables of this process are not those of the container",
		"os/exec": "a command is read, not run",
	})
}

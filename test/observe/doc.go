// Package observe tests what users monitor Heliostat with: alerts and dashboards on a real Prometheus, metrics and
// traces at a real OTLP receiver. Its tests run both beside a dev cluster with real Ray, cause scale-ups and a crash,
// and check every expression and every span. It must not use a fake Prometheus or a fake receiver.
package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// root is the path from this package to the root of the repository.
const root = "../.."

// program returns the path of a program from a Debian package. It installs the package if the program is missing.
func program(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".ci/debian"), name)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, errors.Join(err, errors.New(strings.TrimSpace(errOut.String()))))
	}
	return strings.TrimSpace(string(out)), nil
}

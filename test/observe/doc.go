// Package observe proves what people watch Heliostat by: alerts and dashboards on a real Prometheus, metrics and traces
// at a real OTLP receiver. Its tests start both beside a dev cluster with a real Ray, let scale-ups and a crash happen,
// and ask for every expression and every span.
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

// root is the repository, seen from this package.
const root = "../.."

// program says where a program of a Debian package is, and installs it where it is missing.
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

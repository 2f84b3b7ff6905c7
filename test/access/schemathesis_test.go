package access

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// schemathesis generates calls from the API contract: valid calls, invalid calls, and sequences of calls.
var schemathesis = kit.Tool{Name: "schemathesis", Version: "4.32.5", Lock: "schemathesis.lock", MinPython: 10, MaxPython: 14}

// streams matches the paths that Schemathesis skips, because their responses do not end. internal/api tests them.
const streams = "/events$"

// budget is the time limit of Schemathesis. It stops earlier if it has run all its cases.
const budget = 30 * time.Second

func TestEveryOperationKeepsToTheContractWhateverItIsSent(t *testing.T) {
	t.Parallel()
	bin, err := kit.EnsureTool(t.Context(), schemathesis)
	must(t, err)
	settings, err := filepath.Abs("schemathesis.toml")
	must(t, err)
	everything := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "everything"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "list", "request", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
	}}
	if _, err := lab.Client().RbacV1().ClusterRoles().Create(t.Context(), everything, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tester := newAccount(t, "tester")
	must(t, bindAll(t.Context(), "everything", "everything", account("ml", "tester")))
	until(t, "the role to count", func() bool { status, _ := tester.call("GET", "/v1/nodepools", ""); return status == 200 })

	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*budget)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "schemathesis"), "--config-file", settings, "run", fleet.url+"/openapi.yaml",
		"--url", fleet.url, "--tls-verify", fleet.ca, "--header", "Authorization: Bearer "+tester.token, "--exclude-path-regex", streams,
		"--seed", "1", "--max-examples", "15", "--max-time", strconv.Itoa(int(budget.Seconds())), "--request-timeout", "20",
		"--generation-database", "none", "--no-shrink", "--no-color", "--warnings", "off")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH"), "TERM=dumb", "COLUMNS=160", "REQUESTS_CA_BUNDLE=" + fleet.ca}
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	err = cmd.Run()
	text := output.String()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		t.Errorf("Schemathesis: %v\n%s", err, text)
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(text, "generated"):
		t.Errorf("Schemathesis tried nothing:\n%s", text)
	}
	t.Logf("Schemathesis took %v:\n%s", time.Since(start).Round(time.Second), summary(text))
	if log := fleet.logged(); strings.Contains(log, "REST call failed") || strings.Contains(log, "panic") {
		t.Errorf("the server made a mistake; its log ends with:\n%s", last(log, 4000))
	}
	select {
	case <-fleet.Ended():
		t.Error("the server ended")
	default:
	}
}

// summary returns the last part of Schemathesis' output.
func summary(text string) string {
	if at := strings.LastIndex(text, " SUMMARY "); at >= 0 {
		return text[at:]
	}
	return last(text, 1000)
}

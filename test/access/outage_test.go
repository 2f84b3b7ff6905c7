package access

import (
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/test/devcluster"
)

func TestWithoutTheAPIServerNobodyIsLetIn(t *testing.T) {
	known := newAccount(t, "known", "heliostat-viewer")
	until(t, "the role to count", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusOK })
	token, err := tokenOf(t.Context(), "ml", "known")
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.KillPart(devcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	unseen := callerWith(t, token)
	if text := unseen.want(503, "GET "+mine, ""); !strings.Contains(text, "cannot be reviewed now") || strings.Contains(text, lab.APIServer()) {
		t.Errorf("a token that was never seen: %s", text)
	}
	unseen.want(200, "GET /healthz", "")
	until(t, "what is remembered of a caller to end", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusServiceUnavailable })
	if err := lab.RestartPart(t.Context(), devcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	until(t, "callers to be let in again", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusOK })
}

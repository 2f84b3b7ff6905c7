package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

func TestTheDashboardGetsTheTokenOfTheHeadUnlessEverybodyCouldReadIt(t *testing.T) {
	var tokens []string
	dashboard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"applications": {}}`)
	}))
	defer dashboard.Close()
	ip, text, err := net.SplitHostPort(dashboard.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	at := nodepool.Head{IP: ip, DashboardPort: int32(port)}
	read := func(token string, cluster nodepool.Cluster) error {
		serves := servesWith(func(context.Context, nodepool.Cluster) (kube.Credentials, error) {
			return kube.Credentials{Token: token}, nil
		}, 0)
		_, err := serves(t.Context(), cluster)
		return err
	}
	if err := errors.Join(read("", nodepool.Cluster{Head: at}), read("secret", nodepool.Cluster{Head: at})); err != nil {
		t.Fatal(err)
	}
	secured := nodepool.Cluster{Head: at, Auth: nodepool.Auth{TLSSecret: "tls"}}
	if err := read("secret", secured); err == nil || !strings.Contains(err.Error(), "its dashboard has no TLS") {
		t.Errorf("with TLS and a token: %v", err)
	}
	if err := read("", secured); err != nil {
		t.Errorf("with TLS and no token: %v", err)
	}
	if err := read("", nodepool.Cluster{}); !errors.Is(err, head.ErrNoAddress) {
		t.Errorf("without an address: %v", err)
	}
	if got := strings.Join(tokens, ", "); got != ", Bearer secret, " {
		t.Errorf("the dashboard got %q", got)
	}
}

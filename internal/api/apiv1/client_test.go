package apiv1

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheErrorHasTheStatusOfAProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }))
	defer server.Close()
	caller, err := NewClient(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Clusters(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("error %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:8090", "ftp://host", "http://", ":"} {
		if _, err := NewClient(address, nil); err == nil {
			t.Errorf("address %q is accepted", address)
		}
	}
}

func TestAnAddressWithoutASchemeIsRefused(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8090", "localhost:8090", "heliostat"} {
		if _, err := NewClient(address, nil); err == nil || !strings.Contains(err.Error(), "write https://host:port") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheErrorSaysThatNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	caller, err := NewClient(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Clusters(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "nothing listens there: start the server") {
		t.Errorf("%v", err)
	}
}

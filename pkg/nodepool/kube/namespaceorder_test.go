package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// slowNamespaces answers a Get with what was stored when it was called, and lets something happen before the answer
// arrives.
type slowNamespaces struct {
	*namespaceFake
	meanwhile func()
	err       error
}

func (s *slowNamespaces) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error) {
	answer, err := s.namespaceFake.Get(ctx, name, options)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	if s.err != nil {
		return nil, s.err
	}
	return answer, err
}

func modeAt(mode, version string) *corev1.Namespace {
	namespace := withMode(mode)
	namespace.ResourceVersion = version
	return namespace
}

func TestAnOlderReadingOfANamespaceNeverBringsBackAMode(t *testing.T) {
	gone := modeAt("", "8")
	gone.Annotations = nil
	for name, c := range map[string]struct {
		// stored is what a read by name finds, before what the watch reports meanwhile.
		stored  *corev1.Namespace
		reports func(*namespaceWatch) error
		want    nodepool.Mode
		unknown bool
	}{
		"the watch reports that the mode was taken back": {modeAt("managed", "5"),
			func(n *namespaceWatch) error { return n.store().Update(modeAt("shadow", "6")) }, nodepool.Shadow, false},
		"the watch lags behind": {modeAt("shadow", "6"),
			func(n *namespaceWatch) error { return n.store().Update(modeAt("managed", "5")) }, nodepool.Shadow, false},
		"the namespace goes": {modeAt("managed", "5"),
			func(n *namespaceWatch) error { return n.store().Delete(gone) }, "", true},
		"the namespace was not there and is made": {nil,
			func(n *namespaceWatch) error { return n.store().Add(modeAt("managed", "9")) }, nodepool.Managed, false},
		"a list": {modeAt("managed", "5"),
			func(n *namespaceWatch) error { return n.store().Replace([]any{modeAt("shadow", "6")}, "7") }, nodepool.Shadow, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := &slowNamespaces{namespaceFake: &namespaceFake{stored: map[string]*corev1.Namespace{}}}
			if c.stored != nil {
				client.set(c.stored)
			}
			n, _ := watchedNamespaces(client)
			if err := n.store().Replace([]any{modeAt("managed", "4")}, "4"); err != nil {
				t.Fatal(err)
			}
			client.meanwhile = func() {
				if err := c.reports(n); err != nil {
					t.Error(err)
				}
			}
			n.Refresh(t.Context(), "ml")
			got := n.readInto(nodepool.Cluster{})
			if got.NamespaceMode != c.want || (got.NamespaceUnknown != "") != c.unknown {
				t.Errorf("mode %q, unknown %q; want %q, unknown %v", got.NamespaceMode, got.NamespaceUnknown, c.want, c.unknown)
			}
		})
	}
}

// TestAListThatIsOlderThanAReadingKeepsTheReading because lists may come from a cache of the API server.
func TestAListThatIsOlderThanAReadingKeepsTheReading(t *testing.T) {
	client := &namespaceFake{}
	client.set(modeAt("shadow", "6"))
	n, _ := watchedNamespaces(client)
	n.Refresh(t.Context(), "ml")
	for _, list := range [][]any{{modeAt("managed", "5")}, {}} {
		if err := n.store().Replace(list, "5"); err != nil {
			t.Fatal(err)
		}
		if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != nodepool.Shadow || got.NamespaceUnknown != "" {
			t.Errorf("after list %v: mode %q, unknown %q; want shadow", list, got.NamespaceMode, got.NamespaceUnknown)
		}
	}
	if err := n.store().Replace(nil, "7"); err != nil {
		t.Fatal(err)
	}
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceUnknown == "" {
		t.Error("a namespace that a newer list lacks is still known")
	}
}

func TestAModeThatCannotBeReadAgainIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		named []string
		err   error
	}{
		"polled, and the API server does not answer":     {[]string{"ml"}, errors.New("the server is currently unable to handle the request")},
		"read once by name, and not polled from then on": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := &slowNamespaces{namespaceFake: &namespaceFake{}, err: c.err}
			client.set(modeAt("managed", "5"))
			n, _ := watchedNamespaces(client, c.named...)
			if err := n.store().Replace([]any{modeAt("managed", "5")}, "5"); err != nil {
				t.Fatal(err)
			}
			client.meanwhile = func() { n.forbid(errForbidden) }
			n.Refresh(t.Context(), "ml")
			if got := n.readInto(nodepool.Cluster{}); got.NamespaceUnknown == "" {
				t.Errorf("mode %q counts as known", got.NamespaceMode)
			}
			if client.err, client.meanwhile = nil, nil; c.named == nil {
				return
			}
			n.Refresh(t.Context(), "ml")
			if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != nodepool.Managed {
				t.Errorf("mode %q, unknown %q after it was read again; want managed", got.NamespaceMode, got.NamespaceUnknown)
			}
		})
	}
}

// TestNamespacesThatAreGoneAreForgotten when they are many, and those that exist are not.
func TestNamespacesThatAreGoneAreForgotten(t *testing.T) {
	n, _ := watchedNamespaces(&namespaceFake{})
	if err := n.store().Add(modeAt("managed", "4")); err != nil {
		t.Fatal(err)
	}
	for i := range maxGone + 100 {
		gone := modeAt("", "5")
		gone.Name = fmt.Sprint("gone-", i)
		if err := n.store().Delete(gone); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(n.versions); got < 2 || got > 101 {
		t.Errorf("%d namespaces are remembered, want the one that exists and those that went last", got)
	}
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != nodepool.Managed {
		t.Errorf("mode %q of the namespace that exists", got.NamespaceMode)
	}
}

package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// All tests share a control plane and one Heliostat. The control plane has RayClusters in two namespaces, and no
// operator acts on them. Heliostat manages them with the rights of its ServiceAccount.
var (
	lab   *devcluster.Cluster
	fleet *heliostat
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	rig.Quiet()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "")
	if err == nil {
		defer os.RemoveAll(dir)
		lab, err = devcluster.Start(ctx, devcluster.Options{Nodes: []nodeagent.NodeSpec{}, NoOperator: true, Out: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := lab.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}()
	if err := prepare(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer fleet.stop()
	return m.Run()
}

// prepare creates the objects and starts Heliostat.
func prepare(ctx context.Context, dir string) error {
	for _, namespace := range []string{"heliostat", "ml", "dev"} {
		if _, err := lab.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	resource := schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
	for _, namespace := range []string{"ml", "dev"} {
		manifest := rig.Cluster{Namespace: namespace, Name: "llm", Groups: []rig.Group{{Name: "gpu", Max: 9}}}.Manifest()
		if _, err := lab.Dynamic().Resource(resource).Namespace(namespace).Create(ctx, manifest, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	definitions, err := filepath.Glob("../../deploy/chart/crds/*.yaml")
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("finding the resource definitions of the chart: %d, %w", len(definitions), err)
	}
	for _, definition := range definitions {
		err = errors.Join(err, applyFile(ctx, definition))
	}
	err = errors.Join(err, applyFile(ctx, "../../deploy/rbac.yaml"))
	err = errors.Join(err, bindAll(ctx, "heliostat-reviews", "system:auth-delegator", account("heliostat", "heliostat")))
	if err != nil {
		return err
	}
	token, err := tokenOf(ctx, "heliostat", "heliostat")
	if err != nil {
		return err
	}
	fleet, err = startHeliostat(ctx, dir, token)
	return err
}

// account returns a ServiceAccount as a subject of bindings.
func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// tokenOf creates a token of a ServiceAccount. If audiences are given, they replace the API server's own.
func tokenOf(ctx context.Context, namespace, name string, audiences ...string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	made, err := lab.Client().CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making a token of %s/%s: %w", namespace, name, err)
	}
	return made.Status.Token, nil
}

// bindAll binds a ClusterRole to a subject in the whole cluster.
func bindAll(ctx context.Context, name, role string, subject rbacv1.Subject) error {
	_, err := lab.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	return err
}

// bindIn binds a ClusterRole to a subject in one namespace.
func bindIn(ctx context.Context, namespace, role string, subject rbacv1.Subject) error {
	_, err := lab.Client().RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + subject.Name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	return err
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

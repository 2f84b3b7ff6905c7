package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// lab is the cluster of all tests: a real control plane, and nodes that run pods as processes.
var lab *devcluster.Cluster

// image is the image in the chart's own values. Its programs are the ones under test.
const image = "registry.example/heliostat"

// accounts are the ServiceAccounts of the two installs. The tests record their API requests.
var accounts = []string{"system:serviceaccount:heliostat:heliostat", "system:serviceaccount:team:scaler-heliostat"}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	rig.Quiet()
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program, err := rig.Build(ctx, dir)
	if err == nil && program != filepath.Join(dir, "autoscaler") {
		err = os.Symlink(program, filepath.Join(dir, "autoscaler"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	nodes := []nodeagent.NodeSpec{{Name: "cpu-0", Capacity: map[string]string{"cpu": "32", "memory": "64Gi"}}}
	if lab, err = devcluster.Start(ctx, devcluster.Options{Nodes: nodes, Images: nodeagent.Images{image: dir}, Audit: accounts, Out: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := lab.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}()
	return m.Run()
}

// until waits until holds returns true. Ray takes longer on busy cores.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

// namespace creates a namespace if it does not exist.
func namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := lab.Client().CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// othersDefinitions are the custom resource definitions of the Prometheus operator and of cert-manager, by module and
// file pattern.
var othersDefinitions = map[string]string{
	"github.com/prometheus-operator/prometheus-operator": "example/prometheus-operator-crd/monitoring.coreos.com_*[srm]*.yaml",
	"github.com/cert-manager/cert-manager":               "deploy/crds/cert-manager.io_*.yaml",
}

// others installs these definitions once.
var others = sync.OnceValue(func() error {
	for module, pattern := range othersDefinitions {
		command := exec.Command("go", "mod", "download", "-json", module)
		command.Dir = "crds"
		out, err := command.Output()
		if err != nil {
			return fmt.Errorf("fetching %s: %w: %s", module, err, out)
		}
		var at struct{ Dir string }
		if err := json.Unmarshal(out, &at); err != nil {
			return fmt.Errorf("fetching %s: %w", module, err)
		}
		files, err := filepath.Glob(filepath.Join(at.Dir, pattern))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no resource definitions in %s: %v", at.Dir, err)
		}
		for _, file := range files {
			if err := define(file); err != nil {
				return err
			}
		}
	}
	return nil
})

// define creates the custom resource definition in a file and waits until the API server serves it.
func define(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	client := lab.Dynamic().Resource(definitions)
	if _, err := client.Create(context.Background(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", object.GetName(), err)
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		discovered, err := discovers(object)
		if err != nil {
			return err
		}
		if discovered {
			return nil
		}
	}
	return fmt.Errorf("%s is not served", object.GetName())
}

// discovers reports whether the API server's discovery lists the resource of a definition. Discovery lists it some time
// after the condition Established.
func discovers(definition *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	groups, err := restmapper.GetAPIGroupResources(lab.Client().Discovery())
	if err != nil {
		return false, err
	}
	_, err = restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

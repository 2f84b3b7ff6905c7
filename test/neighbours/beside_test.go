package neighbours

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/rig"
)

// beside is a dev cluster with Kueue and Heliostat.
type beside struct {
	*testing.T
	lab       *rig.Rig
	heliostat *rig.Heliostat
	began     time.Time
}

// besideKueue starts a dev cluster with a queue, and Heliostat with its default settings.
func besideKueue(t *testing.T, options rig.Options) *beside {
	t.Helper()
	b := &beside{T: t, began: time.Now()}
	options.Out, options.Kueue = os.Stderr, true
	var err error
	if b.lab, err = rig.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if b.heliostat != nil {
			b.heliostat.Stop(ctx)
			if t.Failed() {
				fmt.Fprintf(os.Stderr, "Heliostat's last lines:\n%s\n", b.heliostat.LastLines(20))
			}
		}
		if err := b.lab.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	b.makeQueue()
	if b.heliostat, err = b.lab.Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// say logs a message with the time since the start.
func (b *beside) say(format string, args ...any) {
	b.Helper()
	b.Logf("%7.2fs %s", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// makeQueue creates a queue with enough quota for everything that the tests start. It covers every resource that a pod
// requests.
func (b *beside) makeQueue() {
	b.Helper()
	quota := func(name, amount string) any { return map[string]any{"name": name, "nominalQuota": amount} }
	covered := []any{"cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpu.shared"}
	for _, made := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		object    map[string]any
	}{
		{flavors, "", map[string]any{"kind": "ResourceFlavor", "metadata": map[string]any{"name": "default"}}},
		{clusterQueues, "", map[string]any{"kind": "ClusterQueue", "metadata": map[string]any{"name": "all"},
			"spec": map[string]any{
				"namespaceSelector": map[string]any{},
				"resourceGroups": []any{map[string]any{"coveredResources": covered,
					"flavors": []any{map[string]any{"name": "default", "resources": []any{
						quota("cpu", "100"), quota("memory", "1000Gi"), quota("nvidia.com/gpu",
							"8"), quota("nvidia.com/gpu.shared", "8"),
					}}}}},
			}}},
		{localQueues, team, map[string]any{"kind": "LocalQueue", "metadata": map[string]any{"name": queueName,
			"namespace": team},
			"spec": map[string]any{"clusterQueue": "all"}}},
	} {
		made.object["apiVersion"] = "kueue.x-k8s.io/v1beta2"
		object := &unstructured.Unstructured{Object: made.object}
		var err error
		if made.namespace == "" {
			_, err = b.lab.Dynamic.Resource(made.resource).Create(b.Context(), object, metav1.CreateOptions{})
		} else {
			err = b.lab.CreateAny(b.Context(), made.resource, object)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.until("the queue to be active", func() error {
		queue, err := b.lab.Dynamic.Resource(localQueues).Namespace(team).Get(b.Context(), queueName,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		return wantCondition(queue, "Active")
	})
}

// wantCondition returns an error unless the condition of an object is True.
func wantCondition(object *unstructured.Unstructured, kind string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s is not %s: %v", object.GetName(), kind, conditions)
}

// until calls check until it returns no error.
func (b *beside) until(what string, check func() error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	for err := check(); err != nil; err = check() {
		select {
		case <-ctx.Done():
			b.Fatalf("waiting for %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *beside) rayCluster(name string) *unstructured.Unstructured {
	b.Helper()
	object, err := b.lab.Dynamic.Resource(rig.RayClusters).Namespace(team).Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return object
}

// view is the response of Heliostat's REST API for a RayCluster.
type view struct {
	Mode, ModeReason string
	Groups           []struct {
		Name             string
		Current, Desired int
		NumGPUs          struct {
			Declared, Reported *float64
			Mismatch           bool
			Sync               struct{ Code, Why string }
		}
	}
	Findings []struct{ Code string }
}

func (b *beside) view(name string) view {
	b.Helper()
	var v view
	b.call(http.MethodGet, "/v1/namespaces/"+team+"/rayclusters/"+name, "", &v)
	return v
}

func (b *beside) call(method, path, body string, answer any) {
	b.Helper()
	status, text, err := b.heliostat.Call(b.Context(), method, path, body)
	if err != nil || status != http.StatusOK {
		b.Fatalf("%s %s: status %d, %v: %s", method, path, status, err, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		b.Fatal(err)
	}
}

// wants returns an error unless Heliostat wants pods of a group that do not exist.
func (v view) wants(group string) error {
	for _, g := range v.Groups {
		if g.Name == group && g.Desired > g.Current {
			return nil
		}
	}
	return fmt.Errorf("no more pods of group %s are wanted: %+v", group, v.Groups)
}

// event waits for an Event about a RayCluster, and returns its message.
func (b *beside) event(name, reason string) string {
	b.Helper()
	var message string
	b.until("Event "+reason+" on RayCluster "+name, func() error {
		selector := "involvedObject.kind=RayCluster,involvedObject.name=" + name + ",reason=" + reason
		events, err := b.lab.Kube.CoreV1().Events(team).List(b.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(events.Items) == 0 {
			return errors.Join(errors.New("there is none"), err)
		}
		message = events.Items[0].Message
		return nil
	})
	return message
}

// admitted waits until Kueue has admitted the Workload of an object.
func (b *beside) admitted(kind, name string) {
	b.Helper()
	b.until("Kueue to admit "+kind+" "+name, func() error {
		list, err := b.lab.Dynamic.Resource(workloads).Namespace(team).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			for _, owner := range list.Items[i].GetOwnerReferences() {
				if owner.Kind == kind && owner.Name == name {
					return wantCondition(&list.Items[i], "Admitted")
				}
			}
		}
		return fmt.Errorf("none of %d Workloads is of it", len(list.Items))
	})
	b.say("Kueue has admitted %s %s", kind, name)
}

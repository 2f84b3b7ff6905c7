package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

const (
	honestNamespace = "honest"
	// room is how many CPUs each RayCluster's worker has: nothing is launched.
	room = 100_000_000
	// patience is for what Heliostat does by itself.
	patience = 10 * time.Minute
)

// scene is Heliostat with a RayCluster `llm` in each namespace.
type scene struct {
	*rig.Rig
	heliostat *rig.Heliostat
	hostile   []string
	heads     []*simray.Head
	kube      kubernetes.Interface // without a limit of its own, as is objects
	objects   dynamic.Interface
	// profile is where serve answers for profiles.
	profile string
	asked   int
	made    int
	faults  []error
}

// newScene may return a scene beside an error; it is to be closed then too.
func newScene(ctx context.Context, r *rig.Rig, namespaces int) (*scene, error) {
	s := &scene{Rig: r}
	config, err := clientcmd.BuildConfigFromFlags("", r.Cluster.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	if s.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	for i := range namespaces {
		s.hostile = append(s.hostile, "hostile-"+strconv.Itoa(i))
	}
	for i, namespace := range append([]string{honestNamespace}, s.hostile...) {
		if err := s.cluster(ctx, namespace, i); err != nil {
			return s, err
		}
	}
	return s, nil
}

// cluster makes a RayCluster with a simulated head and one worker that has room for everything.
func (s *scene) cluster(ctx context.Context, namespace string, i int) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.kube.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the namespace %s: %w", namespace, err)
	}
	ip := fmt.Sprintf("127.78.0.%d", 1+i)
	head, err := simray.Start(simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: "llm-head", IP: ip}})
	if err != nil {
		return fmt.Errorf("starting the head of %s/llm: %w", namespace, err)
	}
	s.heads = append(s.heads, head)
	head.AddNode(
		simray.Node{
			Instance:  "llm-worker",
			Group:     "cpu",
			IP:        "10.0.0.1",
			Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(room)},
		},
	)
	manifest := rig.Cluster{
		Namespace:   namespace,
		Name:        "llm",
		Annotations: map[string]string{"heliostat.dev/mode": "managed"},
		Groups:      []rig.Group{{Name: "cpu", Replicas: 1, Min: 1, Max: 10, CPU: strconv.Itoa(room)}},
	}.Manifest()
	made, err := s.objects.Resource(rig.RayClusters).Namespace(namespace).Create(ctx, manifest, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making RayCluster %s/llm: %w", namespace, err)
	}
	if err := rig.StandInHead(ctx, s.kube, made, ip); err != nil {
		return err
	}
	return rig.StandInWorker(ctx, s.kube, made, "cpu", "llm-worker", "10.0.0.1")
}

func (s *scene) serve(ctx context.Context) (err error) {
	if s.profile, err = rig.FreeAddress("127.0.0.1"); err != nil {
		return err
	}
	s.heliostat, err = s.Serve(ctx, "--log-level", "info", "--pprof-bind-address", s.profile)
	return err
}

func (s *scene) restart(ctx context.Context) {
	ending, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s.heliostat.Stop(ending)
}

func (s *scene) close() {
	if s.heliostat != nil {
		s.heliostat.Kill()
	}
	for _, head := range s.heads {
		head.Close()
	}
}

func (s *scene) wrong(err error) {
	if err != nil {
		s.faults = append(s.faults, err)
	}
}

// keepProfile keeps a profile of the heap in the folder that PROFILES names.
func (s *scene) keepProfile(ctx context.Context, name string) error {
	folder := os.Getenv("PROFILES")
	if folder == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.profile+"/debug/pprof/heap", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".pprof"), text, 0o644)
}

// flood makes large objects, over all hostile namespaces in turn.
func (s *scene) flood(ctx context.Context, objects int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range objects {
		namespace := s.hostile[i%len(s.hostile)]
		group.Go(func() error {
			return s.create(ctx, namespace, "large-"+strconv.Itoa(i), "mallory", rig.LargestBundles(i))
		})
	}
	s.made += objects
	return group.Wait()
}

func (s *scene) create(ctx context.Context, namespace, name, owner string, bundles []any) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"rayCluster": "llm", "owner": owner, "holdUntilDeleted": true, "bundles": bundles},
	}}
	client := s.objects.Resource(rig.ResourceRequests).Namespace(namespace)
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making ResourceRequest %s/%s: %w", namespace, name, err)
	}
	return nil
}

// honest makes a small request in the honest owner's namespace, and waits until its status says that workers have room
// for it.
func (s *scene) honest(ctx context.Context, name string) error {
	s.asked++
	if err := s.create(ctx, honestNamespace, name, "ann",
		[]any{map[string]any{"count": int64(1), "resources": map[string]any{"CPU": int64(s.asked)}}}); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for {
		status, body, err := s.heliostat.Call(ctx, "GET", rig.RequestPath(honestNamespace, "llm")+"/"+name, "")
		var request struct {
			State  string
			Reason struct{ Code string }
		}
		if err == nil && status == 200 {
			if err = json.Unmarshal(body, &request); err == nil && request.State == "Satisfied" {
				return nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("request %s/%s is not served: %d %s %v", honestNamespace, name, status, body, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settled waits until each large object has a status, and counts what they say.
func (s *scene) settled(ctx context.Context) (lines []string, err error) {
	deadline := time.Now().Add(time.Duration(number("STATUS_SECONDS", int(patience.Seconds()))) * time.Second)
	for {
		counts, missing, err := s.statuses(ctx)
		if err != nil || missing == 0 || time.Now().After(deadline) {
			if err == nil && missing > 0 {
				err = fmt.Errorf("%d large objects do not have the right status", missing)
			}
			return counts, err
		}
		time.Sleep(time.Second)
	}
}

// samples are what serve used while something went on.
type samples struct {
	stop context.CancelFunc
	wait sync.WaitGroup
}

// sample prints what serve uses, every ten seconds.
func (s *scene) sample(ctx context.Context) *samples {
	ctx, stop := context.WithCancel(ctx)
	sampling := &samples{stop: stop}
	sampling.wait.Go(func() {
		for begun := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Second):
			}
			if u, err := rig.UsageOf(s.heliostat.PID()); err == nil {
				fmt.Printf("  %3.0f s: resident %d MiB, peak %d MiB, %.0f s of a core\n", time.Since(begun).Seconds(),
					u.Resident>>20, u.Peak>>20, u.CPU.Seconds())
			}
		}
	})
	return sampling
}

func (s *samples) end() { s.stop(); s.wait.Wait() }

// row prints what serve has used until now, and returns the peak.
func (s *scene) row(what, more string) int64 {
	u, err := rig.UsageOf(s.heliostat.PID())
	if err != nil {
		s.wrong(err)
		return 0
	}
	fmt.Printf("%s: resident %d MiB, peak %d MiB, %.1f s of a core%s\n", what, u.Resident>>20, u.Peak>>20,
		u.CPU.Seconds(), more)
	return u.Peak
}

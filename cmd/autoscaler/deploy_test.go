package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"heliostat.dev/heliostat/internal/httpapi"
)

// served is the container of deploy/heliostat.yaml, with the Deployment around it.
func served(t *testing.T) (appsv1.Deployment, corev1.Container) {
	t.Helper()
	d := deployed[appsv1.Deployment](t, "heliostat.yaml", "Deployment")
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers", n)
	}
	return d, d.Spec.Template.Spec.Containers[0]
}

func TestTheDeploymentHasACommandLineThatIsUnderstood(t *testing.T) {
	d, c := served(t)
	if !slices.Equal(c.Command, []string{"autoscaler"}) || len(c.Args) == 0 || c.Args[0] != "serve" {
		t.Fatalf("it runs %v %v", c.Command, c.Args)
	}
	command := newServeCommand()
	if err := command.ParseFlags(c.Args[1:]); err != nil {
		t.Error(err)
	}
	if args := command.Flags().Args(); len(args) > 0 {
		t.Errorf("arguments beside flags: %v", args)
	}
	elects, err := command.Flags().GetBool("leader-elect")
	if replicas := *d.Spec.Replicas; err != nil || replicas > 1 && !elects {
		t.Errorf("%d replicas without --leader-elect would all decide, %v", replicas, err)
	}
}

func TestTheDeploymentHasTheAccountAndTheLeaseThatTheRightsAreFor(t *testing.T) {
	d, c := served(t)
	binding := deployed[rbacv1.ClusterRoleBinding](t, "rbac.yaml", "ClusterRoleBinding")
	if s := binding.Subjects[0]; s.Name != d.Spec.Template.Spec.ServiceAccountName || s.Namespace != d.Namespace {
		t.Errorf("rights are those of %s/%s, the pods run as %s/%s", s.Namespace, s.Name, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)
	}
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == "POD_NAMESPACE" && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
	}) {
		t.Errorf("the lease would be in namespace default: %v", c.Env)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("pods have no label %s=%s", key, value)
		}
	}
}

func TestTheProbeOfTheDeploymentTellsReadyFromNot(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	_, c := served(t)
	var status atomic.Int64
	var path atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.Host + r.URL.Path)
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	probe := func() error {
		command := slices.Clone(c.ReadinessProbe.Exec.Command)
		last := len(command) - 1
		dev := strings.Replace(httpapi.DefaultListen, ":", "/", 1)
		if !strings.Contains(command[last], "/dev/tcp/"+dev) {
			t.Fatalf("the probe does not ask %s: %s", httpapi.DefaultListen, command[last])
		}
		command[last] = strings.Replace(command[last], dev, strings.Replace(server.Listener.Addr().String(), ":", "/", 1), 1)
		return exec.CommandContext(t.Context(), command[0], command[1:]...).Run()
	}
	for _, answer := range []int64{http.StatusOK, http.StatusServiceUnavailable} {
		status.Store(answer)
		if err := probe(); (err == nil) != (answer == http.StatusOK) || path.Load() != "localhost/readyz" {
			t.Errorf("status %d of %v: the probe says %v", answer, path.Load(), err)
		}
	}
	server.Close()
	if probe() == nil {
		t.Error("nobody listens, and the probe says ready")
	}
}

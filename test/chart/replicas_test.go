package chart

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leader returns the pod at the address in the release's Lease, or nil if there is none. All pods have the host's name
// here.
func (r *release) leader() *corev1.Pod {
	r.Helper()
	lease, err := lab.Client().CoordinationV1().Leases(r.namespace).Get(r.Context(), r.deployment().Name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return nil
	}
	for _, pod := range r.pods() {
		if pod.Status.PodIP != "" && strings.HasSuffix(*lease.Spec.HolderIdentity, "_"+pod.Status.PodIP+":8090") {
			return &pod
		}
	}
	return nil
}

// ready returns the pods that are endpoints of a Service.
func (r *release) ready() []corev1.Pod {
	return slices.DeleteFunc(r.pods(), func(pod corev1.Pod) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

// sees reports whether the pod lists the scene's RayCluster. If the pod cannot list it, the pod must return an error. A
// list without the RayCluster fails the test.
func (s *scene) sees(api caller, pod *corev1.Pod, token string) bool {
	s.Helper()
	status, list := api.callAt(pod, token, http.MethodGet, "/v1/namespaces/"+s.namespace+"/rayclusters", "")
	if status == http.StatusOK && !slices.Contains(names(s.T, list), s.namespace+"/"+s.name) {
		s.Errorf("pod %s lists %s", pod.Name, list)
	}
	if status != http.StatusOK && status != http.StatusServiceUnavailable && status != 0 {
		s.Errorf("pod %s answers %d: %s", pod.Name, status, list)
	}
	return status == http.StatusOK
}

// answersOnAll waits until the given number of pods return the same response as the leader, including the events of a
// stream.
func (s *scene) answersOnAll(api caller, pods int, token string) {
	s.Helper()
	until(s.T, "all pods to answer", func() bool {
		ready := api.release.ready()
		return len(ready) == pods && !slices.ContainsFunc(ready, func(pod corev1.Pod) bool { return !s.sees(api, &pod, token) })
	})
	for _, pod := range api.release.ready() {
		until(s.T, "a stream of pod "+pod.Name, func() bool { return s.streams(api, &pod, token) })
	}
}

// streams reports whether a pod sends a line of a stream of events. It may not answer, or may answer 503, while the
// leader changes.
func (s *scene) streams(api caller, pod *corev1.Pod, token string) bool {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+pod.Status.PodIP+":8090"+s.path()+"/events", nil)
	must(s, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := api.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		s.Fatalf("a stream of pod %s: %s", pod.Name, response.Status)
	}
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	return response.StatusCode == http.StatusOK && err == nil && line != ""
}

// outlivesItsLeader kills the leader pod, and calls the other pod until that pod is the leader.
func (s *scene) outlivesItsLeader(api caller, token string) {
	s.Helper()
	r := api.release
	old := r.leader()
	others := slices.DeleteFunc(r.ready(), func(pod corev1.Pod) bool { return old == nil || pod.Name == old.Name })
	if len(others) != 1 {
		s.Fatalf("%d pods beside the leader %v", len(others), old)
	}
	must(s, lab.Client().CoreV1().Pods(r.namespace).Delete(s.Context(), old.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	begin, refused := time.Now(), 0
	until(s.T, "another pod to decide", func() bool {
		if !s.sees(api, &others[0], token) {
			refused++
			return false
		}
		now := r.leader()
		return now != nil && now.Name != old.Name
	})
	s.Logf("another pod decided %v after the leader was killed; %d calls got 503 meanwhile", time.Since(begin).Round(time.Millisecond), refused)
}

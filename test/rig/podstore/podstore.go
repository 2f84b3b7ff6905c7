// Package podstore writes pods to the etcd of a dev cluster, past the API server, which then serves them like any other
// pods. It would take minutes to create thousands of pods with the API, because each takes two calls. The pods have no
// containers that run.
package podstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"heliostat.dev/heliostat/test/rig"
)

// Store writes the pods of one namespace, through etcd's own JSON API.
type Store struct {
	url, namespace string
	http           *http.Client
}

// New returns a store of the pods of a namespace. etcd is host:port.
func New(etcd, namespace string) *Store {
	return &Store{"http://" + etcd, namespace, &http.Client{Timeout: time.Minute}}
}

// most is how many operations etcd accepts in one transaction.
const most = 100

type put struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

type operation struct {
	Put    *put `json:"request_put,omitempty"`
	Delete *put `json:"request_delete_range,omitempty"`
}

func (s *Store) key(name string) []byte { return []byte("/registry/pods/" + s.namespace + "/" + name) }

// Add stores pods.
func (s *Store) Add(ctx context.Context, pods ...*corev1.Pod) error {
	for begin := 0; begin < len(pods); begin += most {
		var operations []operation
		for _, pod := range pods[begin:min(begin+most, len(pods))] {
			value, err := json.Marshal(pod)
			if err != nil {
				return fmt.Errorf("storing pod %s: %w", pod.Name, err)
			}
			operations = append(operations, operation{Put: &put{Key: s.key(pod.Name), Value: value}})
		}
		if err := s.commit(ctx, operations); err != nil {
			return fmt.Errorf("storing %d pods: %w", len(operations), err)
		}
	}
	return nil
}

// Remove deletes a pod.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.commit(ctx, []operation{{Delete: &put{Key: s.key(name)}}})
}

func (s *Store) commit(ctx context.Context, operations []operation) error {
	body, err := json.Marshal(map[string]any{"success": operations})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s", response.Status, bytes.TrimSpace(text))
	}
	return nil
}

// Owner is the RayCluster that a pod belongs to.
type Owner struct {
	Name string
	UID  types.UID
}

// Running returns a running pod as the operator and a kubelet would make it. kind is head or worker.
func (s *Store) Running(of Owner, kind, group, name, ip string) *corev1.Pod {
	now, controls, container := metav1.NewTime(time.Now().Truncate(time.Second)), true, "ray-"+kind
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, UID: uuid.NewUUID(), CreationTimestamp: now,
			Labels: map[string]string{
				"ray.io/cluster": of.Name, "ray.io/node-type": kind, "ray.io/group": group, "ray.io/is-ray-node": "yes",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: of.Name,
				UID: of.UID, Controller: &controls}},
		},
		Spec: corev1.PodSpec{
			NodeName:   rig.StandInNode,
			Containers: []corev1.Container{{Name: container, Image: rig.Image}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: container, Ready: true, Image: rig.Image,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
		},
	}
}

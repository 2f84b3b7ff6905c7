package main

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

// storage writes pods to etcd, through its own JSON API. The API server serves them like any other pods. It would take
// minutes to create so many, because each pod takes two calls.
type storage struct {
	url  string
	http *http.Client
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

func keyOfPod(name string) []byte { return []byte("/registry/pods/" + namespace + "/" + name) }

// add stores pods.
func (s storage) add(ctx context.Context, pods ...*corev1.Pod) error {
	for begin := 0; begin < len(pods); begin += most {
		var operations []operation
		for _, pod := range pods[begin:min(begin+most, len(pods))] {
			value, err := json.Marshal(pod)
			if err != nil {
				return fmt.Errorf("storing pod %s: %w", pod.Name, err)
			}
			operations = append(operations, operation{Put: &put{Key: keyOfPod(pod.Name), Value: value}})
		}
		if err := s.commit(ctx, operations); err != nil {
			return fmt.Errorf("storing %d pods: %w", len(operations), err)
		}
	}
	return nil
}

// remove deletes a pod.
func (s storage) remove(ctx context.Context, name string) error {
	return s.commit(ctx, []operation{{Delete: &put{Key: keyOfPod(name)}}})
}

func (s storage) commit(ctx context.Context, operations []operation) error {
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

// owner is the RayCluster that a pod belongs to.
type owner struct {
	name string
	uid  types.UID
}

// podOf returns a running pod as the operator and a kubelet would make it.
func podOf(of owner, kind, group, name, ip string) *corev1.Pod {
	now, controls, container := metav1.NewTime(time.Now().Truncate(time.Second)), true, "ray-"+kind
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: uuid.NewUUID(), CreationTimestamp: now,
			Labels: map[string]string{
				"ray.io/cluster": of.name, "ray.io/node-type": kind, "ray.io/group": group, "ray.io/is-ray-node": "yes",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: of.name,
				UID: of.uid, Controller: &controls}},
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

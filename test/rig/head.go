package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// gcsPort is the default port of the GCS.
const gcsPort = "6379"

var errNoHead = errors.New("no head pod has an address")

// HeadPod returns the running head pod of a RayCluster. It ignores a pod that is being deleted.
func (r *Rig) HeadPod(ctx context.Context, namespace, name string) (corev1.Pod, error) {
	selector := "ray.io/cluster=" + name + ",ray.io/node-type=head"
	pods, err := r.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return corev1.Pod{}, fmt.Errorf("finding the head of %s/%s: %w", namespace, name, err)
	}
	for _, pod := range pods.Items {
		if pod.Status.PodIP != "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			return pod, nil
		}
	}
	return corev1.Pod{}, fmt.Errorf("finding the head of %s/%s: %w", namespace, name, errNoHead)
}

// Head returns the address (host:port) of a RayCluster's GCS.
func (r *Rig) Head(ctx context.Context, namespace, name string) (string, error) {
	pod, err := r.HeadPod(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(pod.Status.PodIP, gcsPort), nil
}

// HeadAlive waits until the GCS of a RayCluster lists its head node as alive.
func (r *Rig) HeadAlive(ctx context.Context, namespace, name string) error {
	defer r.Cluster.Awaiting("the Ray head of " + namespace + "/" + name + " to start")()
	for {
		err := r.headAlive(ctx, namespace, name)
		if err == nil {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the head of %s/%s: %w (last seen: %w)",
				namespace, name, context.Cause(ctx), err)
		}
	}
}

func (r *Rig) headAlive(ctx context.Context, namespace, name string) error {
	client, err := r.GCS(ctx, namespace, name)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	state, err := client.State(ctx)
	if err != nil {
		return err
	}
	for _, node := range state.Nodes {
		if node.Head && node.Status != raydemand.Dead {
			return nil
		}
	}
	return errors.New("the GCS lists no head that is alive")
}

// ensureNamespace creates a namespace if it does not exist.
func (r *Rig) ensureNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := r.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

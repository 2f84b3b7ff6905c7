package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// pageSize keeps answers small on clusters with thousands of nodes and pods.
const pageSize = 500

// ListNodes asks the API server for all nodes, and for what tells of their GPUs beside them: pods, ResourceSlices and ResourceClaims, the Cluster
// Autoscaler's status, and Karpenter's NodePools and NodeClaims. Only nodes are a must: what may not be read, or is not
// there, is a note, and what it would tell is unknown.
func ListNodes(ctx context.Context, config *rest.Config) (*NodeSet, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to list nodes: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to list NodePools: %w", err)
	}
	set := &NodeSet{}
	if err := set.listNodes(ctx, client); err != nil {
		return nil, err
	}
	for _, source := range []struct {
		what, unknown string
		list          func() error
	}{
		{"pods", "what of the GPUs is free", func() error { return set.listPods(ctx, client) }},
		{"ResourceSlices and ResourceClaims", "GPUs of Dynamic Resource Allocation", func() error { return set.listDevices(ctx, client) }},
		{"the Cluster Autoscaler's status", "how far its node groups may grow", func() error { return set.readStatus(ctx, client) }},
		{"Karpenter's NodePools", "how far they may grow", func() error { return set.listNodePools(ctx, untyped) }},
		{"Karpenter's NodeClaims", "which nodes are on their way", func() error { return set.listNodeClaims(ctx, untyped) }},
	} {
		switch err := source.list(); {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			set.Notes = append(set.Notes, fmt.Sprintf("%s may not be read, so %s is not known: %v", source.what, source.unknown, err))
		default:
			return nil, fmt.Errorf("reading %s: %w", source.what, err)
		}
	}
	return set, nil
}

// paged calls list until the last page.
func paged(list func(metav1.ListOptions) (next string, err error)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		next, err := list(options)
		if options.Continue = next; err != nil || next == "" {
			return err
		}
	}
}

func (s *NodeSet) listNodes(ctx context.Context, client kubernetes.Interface) error {
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			s.nodes = append(s.nodes, nodeObjectOf(&list.Items[i]))
		}
		return list.Continue, nil
	})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return nil
}

// listPods keeps nothing of a list that broke off: half of the pods would make the other half's GPUs free.
func (s *NodeSet) listPods(ctx context.Context, client kubernetes.Interface) error {
	var read NodeSet
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		if read.pods == nil {
			read.pods = map[string][]nodegpu.PodObject{}
		}
		for i := range list.Items {
			if err := read.addPod(&list.Items[i]); err != nil {
				return "", err
			}
		}
		return list.Continue, nil
	})
	if err == nil {
		s.pods = read.pods
	}
	return err
}

func (s *NodeSet) listDevices(ctx context.Context, client kubernetes.Interface) error {
	var read devices
	if err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.ResourceV1().ResourceSlices().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			read.offer(&list.Items[i])
		}
		return list.Continue, nil
	}); err != nil {
		return err
	}
	read.claimed = map[deviceID]bool{}
	if err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.ResourceV1().ResourceClaims(corev1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			read.claim(&list.Items[i])
		}
		return list.Continue, nil
	}); err != nil {
		return err
	}
	s.devices = read
	return nil
}

func (s *NodeSet) readStatus(ctx context.Context, client kubernetes.Interface) error {
	config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, statusConfigMap, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := s.addStatus(config); err != nil {
		s.Notes = append(s.Notes, err.Error())
	}
	return nil
}

var nodePools = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}

func (s *NodeSet) listNodePools(ctx context.Context, client dynamic.Interface) error {
	list, err := client.Resource(nodePools).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		text, err := json.Marshal(item.Object)
		if err == nil {
			err = decodeInto(text, "nodepool", s.addNodePool)
		}
		if err != nil {
			s.Notes = append(s.Notes, err.Error())
		}
	}
	return nil
}

func (s *NodeSet) listNodeClaims(ctx context.Context, client dynamic.Interface) error {
	claims := []pools.NodeClaim{}
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.Resource(nodeClaims).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			claim, err := readNodeClaim(&list.Items[i])
			if err != nil {
				s.note(err)
				continue
			}
			claims = append(claims, claim)
		}
		return list.GetContinue(), nil
	})
	if err == nil {
		s.Claims = claims
	}
	return err
}

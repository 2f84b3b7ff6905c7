package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// pageSize keeps responses small on clusters with thousands of nodes and pods.
const pageSize = 500

// ListNodes reads all nodes from the API server, and what describes their GPUs besides: pods, ResourceSlices and
// ResourceClaims, the Cluster Autoscaler's status, and Karpenter's NodePools and NodeClaims. Only nodes are required.
// Other objects that are forbidden are a note, and what they would say is unknown.
func ListNodes(ctx context.Context, config *rest.Config) (*decode.NodeSet, error) {
	config = limited(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to list nodes: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to list NodePools: %w", err)
	}
	set := &decode.NodeSet{}
	if err := listNodes(ctx, client, set); err != nil {
		return nil, err
	}
	for _, source := range []struct {
		what, unknown string
		list          func() error
	}{
		{"pods", "what of the GPUs is free",
			func() error { return listPods(ctx, client, set) }},
		{"ResourceSlices and ResourceClaims", "GPUs of Dynamic Resource Allocation",
			func() error { return listDevices(ctx, client, set) }},
		{"the Cluster Autoscaler's status", "how far its node groups may grow",
			func() error { return getStatus(ctx, client, set) }},
		{"Karpenter's NodePools", "how far they may grow",
			func() error { return listNodePools(ctx, untyped, set) }},
		{"Karpenter's NodeClaims", "which nodes are being added",
			func() error { return listNodeClaims(ctx, untyped, set) }},
	} {
		switch err := source.list(); {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			set.Notes = append(set.Notes,
				fmt.Sprintf("%s may not be read, so %s is unknown: %v", source.what, source.unknown, err))
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

func listNodes(ctx context.Context, client kubernetes.Interface, set *decode.NodeSet) error {
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			set.AddNode(&list.Items[i])
		}
		return list.Continue, nil
	})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return nil
}

// listPods adds all pods or none.
func listPods(ctx context.Context, client kubernetes.Interface, set *decode.NodeSet) error {
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		set.AddPods(list.Items)
		return list.Continue, nil
	})
	if err != nil {
		set.DropPods()
	}
	return err
}

// listDevices adds all ResourceSlices with all ResourceClaims, or nothing.
func listDevices(ctx context.Context, client kubernetes.Interface, set *decode.NodeSet) error {
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.ResourceV1().ResourceSlices().List(ctx, options)
		if err != nil {
			return "", err
		}
		set.AddResourceSlices(list.Items)
		return list.Continue, nil
	})
	if err == nil {
		err = paged(func(options metav1.ListOptions) (string, error) {
			list, err := client.ResourceV1().ResourceClaims(corev1.NamespaceAll).List(ctx, options)
			if err != nil {
				return "", err
			}
			set.AddResourceClaims(list.Items)
			return list.Continue, nil
		})
	}
	if err != nil {
		set.DropDevices()
	}
	return err
}

func getStatus(ctx context.Context, client kubernetes.Interface, set *decode.NodeSet) error {
	config, err := client.CoreV1().
		ConfigMaps(metav1.NamespaceSystem).
		Get(ctx, decode.StatusConfigMap, metav1.GetOptions{})
	if err == nil {
		set.AddStatus(config)
	}
	return err
}

func listNodePools(ctx context.Context, client dynamic.Interface, set *decode.NodeSet) error {
	list, err := client.Resource(decode.NodePoolResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		set.AddNodePool(&list.Items[i])
	}
	return nil
}

func listNodeClaims(ctx context.Context, client dynamic.Interface, set *decode.NodeSet) error {
	claims := []landing.NodeClaim{}
	err := paged(func(options metav1.ListOptions) (string, error) {
		list, err := client.Resource(decode.NodeClaimResource).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			claim, err := decode.ReadNodeClaim(&list.Items[i])
			if err != nil {
				set.Notes = append(set.Notes, err.Error())
				continue
			}
			claims = append(claims, claim)
		}
		return list.GetContinue(), nil
	})
	if err == nil {
		set.Claims = claims
	}
	return err
}
